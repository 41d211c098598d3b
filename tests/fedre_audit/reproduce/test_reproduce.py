"""Reproductions: the exact table, what may be claimed from rows, and pages that show the same numbers."""

import json
import re

import numpy as np
import pytest
import torch

from fedre_audit.cli import main
from fedre_audit.reproduce import competent
from fedre_audit.reproduce.base import REPRODUCTIONS, Request, Row, reproduce
from fedre_audit.reproduce.communication import rows as traffic_rows
from fedre_audit.reproduce.competent import gain_row
from fedre_audit.reproduce.document import ROOT, document
from fedre_audit.reproduce.pixel_attack import PUBLISHED, Scored, chosen_rows, distance_to_published, score_row
from fedre_audit.reproduce.privacy import STORED, implied_spread, published_like, reading
from fedre_audit.reproduce.sweep import plain_grid, setting_of
from fedre_audit.reproduce.toy import accuracy, make_toy, train_server
from knowledge_forms.base import ServerView, Upload
from knowledge_forms.errors import AuditError
from reports.reproduction import load_reproduction, write_page_of
from reports.schema import SchemaError

EXACT = {
    "LG-FedAvg upload": 513.00,
    "FedGH upload": 257.02,
    "FedProto upload": 257.02,
    "FedProto broadcast": 512.00,
    "FedMRL upload": 8863.08,
    "FedRE upload": 5.12,
    "FedRE broadcast": 513.00,
}


@pytest.fixture(scope="module")
def traffic():
    return {row.what: row for row in traffic_rows()}


@pytest.mark.parametrize("what", EXACT)
def test_published_traffic_comes_out_exactly(traffic, what):
    assert traffic[what].ours == EXACT[what]
    assert traffic[what].published == EXACT[what]


def test_rows_that_do_not_come_out_say_why(traffic):
    for what in ("FedGen upload", "FedGen broadcast", "FedKD upload"):
        assert abs(traffic[what].difference) > 1
        assert len(traffic[what].note) > 60
    assert traffic["FedRE upload, honest count"].ours == 6.12


def test_command_writes_json_and_page_with_the_same_numbers(tmp_path, capsys):
    assert main(["reproduce", "communication", "--out", str(tmp_path)]) == 0
    assert f"report: {tmp_path / 'reproduce.html'}" in capsys.readouterr().out
    content = json.loads((tmp_path / "reproduce.json").read_text())
    page = (tmp_path / "reproduce.html").read_text()
    shown = [float(value) for value in re.findall(r'data-value="([^"]+)"', page)]
    for row in content["rows"]:
        for key in ("published", "ours", "difference"):
            if row[key] is not None:
                assert row[key] in shown
    first = (tmp_path / "reproduce.html").read_bytes()
    write_page_of(tmp_path)
    assert (tmp_path / "reproduce.html").read_bytes() == first


@pytest.mark.parametrize(
    ("words", "needle"),
    [(["everything"], "unknown reproduction 'everything'"), (["toy", "--preset", "big"], "unknown preset 'big'"),
     ([], "usage"), (["toy", "--nonsense"], "nonsense")],
)  # fmt: skip
def test_bad_input_is_one_sentence(words, needle, capsys):
    assert main(["reproduce", *words]) == 2
    assert needle in capsys.readouterr().err


def test_damaged_json_is_named(tmp_path):
    with pytest.raises(SchemaError, match="does not exist"):
        load_reproduction(tmp_path / "reproduce.json")
    (tmp_path / "reproduce.json").write_text("{}")
    with pytest.raises(SchemaError, match="not a reproduce"):
        load_reproduction(tmp_path / "reproduce.json")


def test_every_reproduction_has_a_title_and_a_protocol(tmp_path):
    assert set(REPRODUCTIONS) == {"accuracy", "communication", "mechanisms", "overhead", "privacy", "toy"}
    for _, one in REPRODUCTIONS.items():
        assert one.title
        assert len(one.protocol) > 80
    with pytest.raises(AuditError, match="unknown preset"):
        reproduce("toy", Request("huge", tmp_path, 0, "cpu", None))


def test_toy_classifier_learns_from_every_form_and_depends_on_the_seed_alone():
    toy = make_toy(3)
    scores = [accuracy(train_server(toy, "entangled", 3, fixed=fixed), toy) for fixed in (False, True)]
    again = accuracy(train_server(make_toy(3), "entangled", 3, fixed=False), make_toy(3))
    assert scores[0] == again
    assert scores[0] > 25.0
    assert not torch.equal(make_toy(4).points, toy.points)


def test_distance_is_zero_at_the_published_figures_and_one_at_its_edge():
    assert distance_to_published(dict(PUBLISHED)) == 0
    moved = dict(PUBLISHED)
    moved["raw"] = (moved["raw"][0] + 0.5, moved["raw"][1])
    assert distance_to_published(moved) == pytest.approx(1.0)


def test_rows_are_spread_over_the_last_upload_of_a_client():
    early, late = (Upload(0, round_, "raw", torch.zeros(10, 2), torch.eye(10)) for round_ in (3, 5))
    single = [Upload(1, round_, "entangled", torch.zeros(1, 2), torch.ones(1, 1)) for round_ in range(5)]
    assert chosen_rows(ServerView("", "raw", "", 2, 10, (early, late)), 4) == [(0, 5, row) for row in (0, 3, 6, 9)]
    assert chosen_rows(ServerView("", "entangled", "", 2, 1, tuple(single)), 2) == [(1, 4, 0)]


def test_targets_are_all_members_the_nearest_or_their_mixture():
    image, mean = torch.full((1, 2, 2), 0.5), torch.full((1, 2, 2), 0.25)
    members = torch.stack([torch.full((1, 2, 2), 0.4), torch.full((1, 2, 2), 1.0)])
    weights = torch.tensor([3.0, 1.0])  # mixture: 0.55
    expected = {
        "members": ((20.0 + 10 * np.log10(4)) / 2, 65025 * (0.01 + 0.25) / 2),
        "nearest": (20.0, 650.25),
        "mixture": (-20 * np.log10(0.05), 65025 * 0.0025),
    }
    for target, (psnr, mse) in expected.items():
        found = score_row(image, members, weights, mean, target)
        assert found[:2] == pytest.approx((psnr, mse), rel=1e-4)
    assert score_row(image, members, weights, mean, "mixture")[2] == pytest.approx(-20 * np.log10(0.3), rel=1e-4)


def test_the_implied_spread_is_that_of_normal_psnr():
    draw = np.random.default_rng(0)
    psnr = 12.0 + 2.5 * draw.standard_normal(200_000)
    assert implied_spread(psnr.mean(), (65025 * 10 ** (-psnr / 10)).mean()) == pytest.approx(2.5, abs=0.03)


def test_reading_claims_what_the_rows_show_and_nothing_more():
    def scored(psnr, mse, floor):
        client = np.arange(5)
        spread = np.linspace(-0.1, 0.1, 5)
        return Scored(client, psnr + spread, mse + spread, np.full(5, floor))

    good = {form: [(1, scored(*PUBLISHED[form], 11.67))] for form in PUBLISHED}
    text = reading(published_like(good, "s"))
    assert "disjoint intervals" in text
    assert "Below the mean image, which uses no upload at all: prototype, entangled." in text
    flat = {form: [(1, scored(12.0, 4000.0, 11.67))] for form in PUBLISHED}
    text = reading(published_like(flat, "s"))
    assert "entangled does not hold." in text
    near = {form: [(1, scored(12.0 - 0.01 * i, 4000.0, 11.67))] for i, form in enumerate(PUBLISHED)}
    assert "holds with overlapping intervals" in reading(published_like(near, "s"))
    assert "no upload at all: none" in text


@pytest.mark.parametrize("parts", [[], [[]], [[(1.0, 0, 0, 1), (float("nan"), 1, 1, 1)]]])
def test_an_attacker_without_numbers_is_not_assessed_and_never_reads_as_safe(parts):
    made = gain_row("raw, ridge, gain over the floor, one upload", parts, "validated on 0 of 3 seeds")
    assert made.ours is None
    assert made.ci95 is None
    assert made.note.startswith("NOT ASSESSED")
    client = np.arange(5)
    good = {form: [(1, Scored(client, psnr + 0.0 * client, mse + 0.0 * client, 11.0 + 0.0 * client))]
            for form, (psnr, mse) in PUBLISHED.items()}  # fmt: skip
    text = reading([*published_like(good, "s"), made])
    assert "not on: none." in text
    assert "NOT ASSESSED, so neither leak nor safety is shown: raw, ridge, one upload." in text


def audit_folder(path, rows, lines):
    path.mkdir()
    row = {"form": "entangled", "attack": "ridge", "metric": "psnr", "target": "members", "slice": "all"}
    made = [{**row, "stream": stream, "status": status, "best_floor": "mean_image"} for stream, status in rows]
    head = "form,attack,stream,target,metric,client,row,members,value,mean_image"
    text = [f"entangled,ridge,{s},members,psnr,{c},{r},{m},{v},10" for s, c, r, m, v in lines]
    (path / "scores.csv").write_text("\n".join([head, *text]) + "\n")
    return {"entangled": path}, made


def test_only_validated_seeds_count_and_the_longest_stream_speaks(tmp_path, monkeypatch):
    first, good = audit_folder(tmp_path / "a", [(1, "ok"), (9, "ok")], [(1, 0, 0, 3, 10), (9, 0, 0, 1, 13)])
    other, bad = audit_folder(tmp_path / "b", [(9, "not_validated")], [(9, 0, 0, 1, 5)])
    rows = {tmp_path / "a": good, tmp_path / "b": bad}
    monkeypatch.setattr(competent, "audited", lambda folder, form: rows[folder])
    assert competent.validated([first, other], "entangled", stream=True) == [[(3.0, 0, 0, 1)]]
    assert competent.validated([first, other], "entangled", stream=False) == [[(0.0, 0, 0, 3)]]


def test_difference_needs_both_numbers():
    assert Row("a", "s", 2.0).difference is None
    assert Row("a", "s", 2.0, 1.5).difference == 0.5


def test_the_document_is_what_the_results_say():
    text, pictures = document(ROOT / "results")
    assert (ROOT / "docs" / "reproduction.md").read_text() == text
    for name, svg in pictures.items():
        assert (ROOT / "docs" / name).read_text() == svg


def test_the_stored_setting_is_the_nearest_of_the_sweep():
    stored = json.loads((ROOT / "results" / "privacy_sweep.json").read_text())
    assert setting_of(plain_grid(stored["values"]["settings"])[0]) == STORED
