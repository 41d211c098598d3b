"""A run whose images have changed since its training is refused: its sample ids would name other images."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from fedre_audit import pipeline
from fedre_audit.cli import main
from fedre_audit.comparison import arms_of, train_arms
from fedre_audit.config import AuditConfig
from fedre_audit.federation.recorder import Recorder
from fedre_audit.stages.train import DONE, STARTED
from knowledge_forms.errors import AuditError

OPTIONS = AuditConfig(clients=2, rounds=2, private_images=60, auxiliary_images=40, workers=1, curves=[])


def paint(folder, seed, count=60):
    """Two classes of random images."""
    draw = np.random.default_rng(seed)
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            Image.fromarray(draw.integers(0, 256, (28, 28), np.uint8)).save(folder / name / f"{seed}-{i:03d}.png")


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Images of one's own, private and public ones apart; nothing runs but the training."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(pipeline, "STAGES", ("train",))
    paint(tmp_path / "private", 0)
    paint(tmp_path / "public", 1)
    named = {name: f"imagefolder:{tmp_path / folder}" for name, folder in
             (("dataset", "private"), ("auxiliary", "public"))}  # fmt: skip
    return replace(OPTIONS, **named)


@pytest.mark.parametrize(("folder", "option"), [("private", "dataset"), ("public", "auxiliary")])
def test_a_finished_run_refuses_changed_images(config, tmp_path, folder, option, capsys):
    out = tmp_path / "run"
    pipeline.audit(config, out, quiet=True)
    pipeline.audit(config, out, quiet=True)  # the same images: goes on
    paint(tmp_path / folder, 2, count=5)
    with pytest.raises(AuditError, match=rf"trained when --{option} imagefolder:.* held other images .* another --out"):
        pipeline.audit(config, out, quiet=True)
    assert main(["attack", str(out)]) == 2
    assert f"--{option} imagefolder:" in capsys.readouterr().err
    for image in (tmp_path / folder).rglob("2-*.png"):
        image.unlink()
    pipeline.audit(config, out, quiet=True)  # restored


def test_a_run_recorded_before_knows_nothing_of_its_auxiliary_images(config, tmp_path):
    out = tmp_path / "run"
    pipeline.audit(config, out, quiet=True)
    manifest = json.loads((out / DONE).read_text())
    del manifest["auxiliary_sha256"]
    (out / DONE).write_text(json.dumps(manifest))
    paint(tmp_path / "public", 2, count=5)
    pipeline.audit(config, out, quiet=True)
    assert json.loads((out / DONE).read_text()) == manifest  # nothing to compare with: goes on, and trains nothing anew


def test_training_again_takes_the_images_that_are_there(config, tmp_path):
    out = tmp_path / "run"
    pipeline.audit(config, out, quiet=True)
    before = (out / DONE).read_text()
    paint(tmp_path / "private", 2, count=5)
    assert main(["train", str(out)]) == 0
    assert json.loads((out / DONE).read_text())["dataset_sha256"] not in before
    pipeline.audit(config, out, quiet=True)


def test_every_seed_is_asked(config, tmp_path):
    out, seeds = tmp_path / "run", replace(config, seeds=[0, 1])
    pipeline.audit(seeds, out, quiet=True)
    paint(tmp_path / "private", 2, count=5)
    shutil.rmtree(out / "seed-0")  # what is left was trained on other images
    with pytest.raises(AuditError, match=r"seed-1 was trained when --dataset"):
        pipeline.audit(seeds, out, quiet=True)


def test_an_interrupted_training_refuses_changed_images(config, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Recorder, "record", stop)
        with pytest.raises(KeyboardInterrupt):
            pipeline.audit(config, tmp_path / "run", quiet=True)
    assert not (tmp_path / "run" / DONE).exists()
    assert set(json.loads((tmp_path / "run" / STARTED).read_text())) == {"dataset_sha256", "auxiliary_sha256"}
    paint(tmp_path / "private", 2, count=5)
    with pytest.raises(AuditError, match=r"trained when --dataset imagefolder:"):
        pipeline.audit(config, tmp_path / "run", quiet=True)


def test_every_arm_of_a_comparison_is_asked(config, tmp_path):
    arms = arms_of(config, ["raw", "entangled:RAP"], own_system=False)
    train_arms(arms, tmp_path / "run", quiet=True)
    train_arms(arms, tmp_path / "run", quiet=True)
    paint(tmp_path / "public", 2, count=5)
    with pytest.raises(AuditError, match=r"raw was trained when --auxiliary imagefolder:"):
        train_arms(arms, tmp_path / "run", quiet=True)
