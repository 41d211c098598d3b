"""The recorder for any loop: what it accepts, what it refuses, and that nothing acknowledged is lost."""

import json
import random

import numpy as np
import pytest
import torch
from torch import nn

from fedre_audit.figures import RESULTS
from fedre_audit.figures.record_killed import kill_one
from fedre_audit.record import Recorder, Truth, as_label_encoding
from knowledge_forms.check import check
from knowledge_forms.errors import AuditError
from knowledge_forms.store import read_entries, read_folder, read_tensors


def recorder(path, form="prototype", **more):
    return Recorder(path, system="mine", form=form, classes=3, **more)


def test_tensors_arrays_and_dictionaries_give_the_same_file(tmp_path):
    values = np.arange(8, dtype=np.float32).reshape(2, 4)
    means = {2: torch.from_numpy(values[1]), 0: values[0].tolist()}
    first = recorder(tmp_path / "a").upload(1, 5, representation=means)
    tensor = torch.from_numpy(values).requires_grad_().to(torch.bfloat16)
    second = recorder(tmp_path / "b").upload(1, 5, representation=tensor, label_encoding=torch.tensor([0, 2]))
    assert first.read_bytes() == second.read_bytes()
    entries, metadata = read_entries(first)
    np.testing.assert_array_equal(entries[1, 5]["representation"], values)
    assert metadata["feature_width"] == 4
    assert check([tmp_path / "a"]).problems == []


def test_an_upload_recorded_again_replaces_the_earlier_one(tmp_path):
    for value in (1.0, 2.0):
        path = recorder(tmp_path).upload(0, 0, representation={1: np.full(4, value)})
    assert read_entries(path)[0][0, 0]["representation"][0, 0] == 2
    assert len(list(read_folder(tmp_path))) == 1


@pytest.mark.parametrize(
    "classifier",
    [
        nn.Linear(4, 3),
        nn.Sequential(nn.ReLU(), nn.Linear(4, 3)),
        {"head.weight": torch.ones(3, 4), "head.bias": torch.zeros(3)},
        (np.ones((3, 4)), None),
    ],
)
def test_broadcast_takes_a_layer_a_state_dict_or_a_pair(tmp_path, classifier):
    entries, _ = read_entries(recorder(tmp_path).broadcast(2, classifier=classifier))
    assert entries[0, 2]["classifier.weight"].shape == (3, 4)
    assert check([tmp_path]).problems == []


@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        ("holds NaN", {"representation": [np.nan, 1], "label_encoding": [0]}),
        ("is \\[2, 3\\], must be \\[1, 3\\]", {"representation": [1.0, 1], "label_encoding": np.eye(3)[:2]}),
        ("class ids run from 3 to 3", {"representation": [1.0, 1], "label_encoding": [3]}),
        ("do not sum to 1", {"representation": [1.0, 1], "label_encoding": [0.5, 0.2, 0]}),
        ("negative weights", {"representation": [1.0, 1], "label_encoding": [1.5, -0.5, 0]}),
        ("name several classes", {"representation": [1.0, 1], "label_encoding": [0.5, 0.5, 0]}),
        ("has no label_encoding", {"representation": [1.0, 1]}),
        ("no client/round/name", {"representation": [1.0, 1], "label_encoding": [0], "a/b": [1.0]}),
    ],
)
def test_what_no_auditor_could_read_is_refused_at_once(tmp_path, named, arguments):
    with pytest.raises(AuditError, match=named):
        recorder(tmp_path).upload(0, 0, **arguments)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_wrong_recorders_and_classifiers_are_refused(tmp_path):
    with pytest.raises(AuditError, match="form is one of"):
        recorder(tmp_path, form="gradient")
    with pytest.raises(AuditError, match=r"must be \[1,d\]"):
        recorder(tmp_path, form="entangled").upload(0, 0, representation=np.ones((2, 4)), label_encoding=[0, 1])
    with pytest.raises(AuditError, match="2 arrays named 'weight'"):
        recorder(tmp_path).broadcast(0, classifier=nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3)))
    with pytest.raises(AuditError, match="without NaN"):
        recorder(tmp_path).broadcast(0, classifier=nn.Linear(4, 2))
    with pytest.raises(AuditError, match="at most nine digits"):
        recorder(tmp_path).upload(-1, 0, representation={0: [1.0]})


def test_soft_labels_of_every_spelling():
    assert as_label_encoding(np.array([0.25, 0.75]), 2).tolist() == [[0.25, 0.75]]
    assert as_label_encoding({1: torch.tensor(1.0)}, 2).tolist() == [[0, 1]]


def test_truth_keeps_pixels_and_refuses_normalised_ones(tmp_path):
    images = torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    tensors, _ = read_tensors(Truth(tmp_path).images(2, images, torch.tensor([0, 1, 1])))
    np.testing.assert_allclose(tensors["images"] / 255, images.numpy(), atol=1 / 510 + 1e-6)
    assert tensors["ids"].tolist() == [0, 1, 2]
    for bad in (images * 2 - 1, images.log()):
        with pytest.raises(AuditError, match=r"leave \[0,1\]"):
            Truth(tmp_path).images(2, bad, [0, 1, 1])
    with pytest.raises(AuditError, match="repeat"):
        Truth(tmp_path).images(2, images, [0, 1, 1], ids=[4, 4, 5])
    with pytest.raises(AuditError, match="neither"):
        Truth(tmp_path).members(2, 0, [0, 1], row=[0, 0])


def test_two_processes_one_killed_lose_nothing_acknowledged(tmp_path):
    found = kill_one(tmp_path, 200, random.Random())
    assert found.pop("acknowledged") >= 1
    assert set(found.values()) == {0}, found


def test_the_stored_figure_lost_nothing():
    stored = json.loads((RESULTS / "record_killed.json").read_text())["values"]
    for found in stored["tries"]:
        assert found.pop("acknowledged") >= 1
        assert set(found.values()) == {0}, found
