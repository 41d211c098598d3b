"""Images a block at a time: the same numbers, whatever the size of a block."""

import json
import shutil

import numpy as np
import pytest
import torch

from attacks.base import ATTACKS, Attack
from attacks.knowledge import Q0
from fedre_audit import pictures
from fedre_audit.audit.intervals import Floats
from fedre_audit.audit.retrieval import retrieve
from fedre_audit.audit.scoring import ATTACK, PERMUTED, PairScores
from fedre_audit.cli import main
from fedre_audit.pictures import Answers, Chosen, Joined, Pixels, Stored, answer, at_once, blocks, take_rows
from fedre_audit.stages.answers import copy_answers, read_answers
from knowledge_forms.base import ServerView, Upload
from knowledge_forms.store import read_tensors, write_tensors

SHAPE = (1, 28, 28)
TINY = [
    "--clients", "2", "--rounds", "4", "--private-images", "100", "--auxiliary-images", "120", "--quiet",
    "--attacks", '["ridge", "nearest_auxiliary_embedding"]', "--curves", '["rounds"]',
]  # fmt: skip


@pytest.fixture
def seven(monkeypatch):
    monkeypatch.setattr(pictures, "SCALARS", 7 * 28 * 28)
    assert at_once((100, *SHAPE)) == 7


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "whole"
    assert main([*TINY, "--out", str(out)]) == 0
    return out


def same(found, expected, where=""):
    """Equal structure and words; numbers to a relative 1e-5."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected:
            same(found[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, pair in enumerate(zip(found, expected, strict=True)):
            same(*pair, f"{where}[{i}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-7), where
    else:
        assert found == expected, where


def test_an_audit_in_blocks_of_seven_images_gives_the_same_scores(whole, tmp_path, seven):
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    shutil.rmtree(out / "attacks")
    shutil.rmtree(out / "strips")
    (out / "scores.json").unlink()
    assert main([*TINY, "--out", str(out)]) == 0
    found, expected = (json.loads((one / "scores.json").read_text()) for one in (out, whole))
    for one in (found, expected):
        one.pop("volatile")
        one["run"].pop("command")  # names the folder
    same(found, expected)
    for name in ("ridge", "nearest_auxiliary_embedding"):
        path = f"attacks/raw/{name}/client-000.safetensors"
        in_parts, kept = read_answers(out / path)[0], read_tensors(whole / path)[0]
        every = torch.arange(in_parts[ATTACK].shape[0])
        assert len(every) > 14
        for who, key in ((ATTACK, "images"), (PERMUTED, "permuted")):
            np.testing.assert_allclose(in_parts[who][every].numpy(), kept[key], atol=1e-5)
    parts = sorted((out / "attacks/raw/ridge").glob("client-000*"))
    rows = np.concatenate([read_tensors(path)[0]["rows"] for path in parts])
    assert len(parts) == -(-len(rows) // 7)
    assert sorted(rows.tolist()) == list(range(len(rows)))
    assert (out / "strips/strips.json").read_bytes() == (whole / "strips/strips.json").read_bytes()


def test_answers_are_copied_with_all_their_parts(tmp_path):
    images = np.random.default_rng(0).random((5, 1, 2, 2), dtype=np.float32)
    source = tmp_path / "client-000.safetensors"
    for part, name in ((images[:3], source.name), (images[3:], "client-000-part-001.safetensors")):
        write_tensors(tmp_path / name, {"images": part, "permuted": 1 - part}, {"parts": 2})
    copy_answers(source, tmp_path / "there" / source.name)
    found, _ = read_answers(tmp_path / "there" / source.name)
    index = torch.tensor([4, 0, 2, 4])
    torch.testing.assert_close(found[ATTACK][index], torch.from_numpy(images)[index])
    torch.testing.assert_close(found[PERMUTED][index], 1 - torch.from_numpy(images)[index])
    assert tuple(found[ATTACK].shape) == (5, 1, 2, 2)


def test_lazy_images_are_those_in_memory(tmp_path):
    stored = torch.randint(256, (9, 3, 4, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    memory = stored.float() / 255
    ids, index = torch.tensor([8, 3, 3, 0]), torch.tensor([2, 0, 3, 1])
    chosen = Chosen(Pixels(stored), ids)
    assert torch.equal(chosen[index], memory[ids][index])
    joined = Joined(chosen, memory)
    assert tuple(joined.shape) == (13, 3, 4, 5)
    order = torch.tensor([12, 0, 4, 3])
    assert torch.equal(joined[order], torch.cat([memory[ids], memory])[order])
    write_tensors(tmp_path / "a.safetensors", {"images": memory.numpy()}, {})
    assert torch.equal(Stored((tmp_path / "a.safetensors",), "images")[ids], memory[ids])


@pytest.mark.parametrize("name", ["random_image", "class_mean", "nearest_auxiliary"])
def test_a_floor_answers_some_rows_as_it_answers_all(name, seven):
    generator = torch.Generator().manual_seed(0)
    images, labels = torch.rand(11, *SHAPE, generator=generator), torch.arange(11) % 3
    encoding = torch.eye(3)[torch.randint(3, (30,), generator=generator)]
    view = ServerView("", "raw", "", 4, 3, (Upload(0, 0, "raw", torch.rand(30, 4, generator=generator), encoding),))
    floor = ATTACKS[name]().fit(Q0(images=images, labels=labels, num_classes=3, seed=1))
    expected = floor.reconstruct(view).images
    index = torch.tensor([29, 3, 3, 17])
    torch.testing.assert_close(Answers(floor, view)[index], expected[index])
    every = torch.cat([answer(floor, view, rows) for rows in blocks(expected)])
    torch.testing.assert_close(every, expected)


class Aligned(Attack):
    """Answers each row relative to the mean of all, as the query-free attacker does."""

    name = "shadow"

    def _reconstruct(self, upload):
        return (upload.representation - upload.representation.mean(0)).reshape(-1, 1, 2, 2)


def test_rows_that_depend_on_each_other_are_answered_together():
    z = torch.arange(48.0).reshape(12, 4).sqrt()
    view = ServerView("", "raw", "", 4, 1, (Upload(0, 0, "raw", z, torch.ones(12, 1)),))
    images = torch.rand(2, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    attack = Aligned().fit(Q0(images=images, labels=torch.zeros(2, dtype=torch.int64), num_classes=1, seed=0))
    expected = attack.reconstruct(view).images
    assert torch.equal(answer(attack, view, torch.tensor([11, 2])), expected[[11, 2]])


@pytest.mark.parametrize("rows", [40, 8])
def test_ranks_do_not_depend_on_the_size_of_a_block(rows, monkeypatch):
    draw = torch.Generator().manual_seed(0)
    images, pool = torch.rand(40, *SHAPE, generator=draw), torch.rand(50, *SHAPE, generator=draw)
    pool[:10] = images[:10]  # duplicates tie with the member itself
    row = np.arange(40) % rows
    label = row % 2
    index = PairScores(np.zeros(40, dtype=int), row, np.arange(40), np.full(40, 40 // rows), label, label * 0 + 20)
    answers = {who: torch.rand(rows, *SHAPE, generator=draw) + images[:rows] for who in (ATTACK, PERMUTED)}
    answers[PERMUTED][3] = torch.nan

    def found() -> tuple[dict[str, dict[str, Floats]], Floats]:
        table, sizes = retrieve(index, answers, images, pool, torch.arange(50) % 2)
        return table.values, sizes

    expected, sizes = found()
    assert np.isnan(expected[PERMUTED]["retrieval_mrr"]).any()
    monkeypatch.setattr(pictures, "SCALARS", 7 * 28 * 28)
    again, same_sizes = found()
    np.testing.assert_array_equal(same_sizes, sizes)
    for who, named in expected.items():
        for metric, column in named.items():
            np.testing.assert_allclose(again[who][metric], column)


def test_rows_are_taken_from_what_has_one_value_a_row_and_the_rest_stays():
    extra = {"scale": torch.tensor(1.5), "noise": torch.arange(3.0), "head": torch.zeros(2, 4)}
    view = ServerView(
        "s", "raw", "", 2, 5, (Upload(0, 0, "raw", torch.arange(6.0).view(3, 2), torch.eye(3, 5), extra),)
    )
    cut = take_rows(view, torch.tensor([2, 0])).latest
    assert cut.representation.tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert cut.extra["noise"].tolist() == [2.0, 0.0]
    assert cut.extra["scale"] == 1.5
    assert cut.extra["head"].shape == (2, 4)
