"""Which streams are followed over rounds."""

from types import SimpleNamespace

import pytest
import torch

from fedre_audit.stages import curves


@pytest.mark.parametrize(("form", "followed"), [("prototype", 1), ("raw", 0)])
def test_representations_in_the_clear_are_not_followed(form, followed, monkeypatch, tmp_path):
    point = SimpleNamespace(folder="half")
    latest = SimpleNamespace(label_encoding=torch.eye(2))
    recovered = SimpleNamespace(form=form, latest=latest)
    monkeypatch.setattr(curves, "points", lambda config, axis: [point])
    monkeypatch.setattr(curves, "client_file", lambda *_, **__: tmp_path / "there")
    monkeypatch.setattr(curves, "read_unmixed", lambda *_: (recovered, {"rounds": 3, "status": "validated"}))
    monkeypatch.setattr(curves, "by_class", lambda *_: None)
    monkeypatch.setattr(curves, "replace", lambda case, **_: case)
    monkeypatch.setattr(curves, "parts_of", lambda *_: [point])
    (tmp_path / "there").touch()
    data = SimpleNamespace(labels=torch.tensor([0, 1]))
    contribution = SimpleNamespace(sample_ids=torch.tensor([0, 1]))
    run = SimpleNamespace(config=None)
    case = SimpleNamespace(stream=6, client=0, run=run, contribution=contribution, prepared=SimpleNamespace(data=data))
    assert len(list(curves.follow(case, None))) == followed  # type: ignore[arg-type]
