"""Stage 1: train the federation and record what each client uploads."""

import hashlib
import platform
from functools import partial
from importlib.metadata import version
from typing import Any

import torch

from fedre_audit.federation.engine import last_rounds, run_federation
from fedre_audit.federation.forms import make_form
from fedre_audit.federation.recorder import Recorder
from fedre_audit.federation.systems import SYSTEMS
from fedre_audit.models import build_clients
from fedre_audit.progress import progress
from fedre_audit.runs import Run
from fedre_audit.stages.prepare import Prepared

CEILING = "raw"
DONE = "manifest.json"


def versions() -> dict[str, str]:
    """Versions of what computes the numbers."""
    names = ("fedre-audit", "torch", "torchvision", "numpy", "scipy", "scikit-learn", "piq")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def upload_hashes(run: Run) -> dict[str, str]:
    """SHA-256 of every upload file, by its path in the run folder."""
    paths = sorted((run.path / "uploads").rglob("*.safetensors"))
    return {str(p.relative_to(run.path)): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def train(run: Run, prepared: Prepared, *, quiet: bool = False) -> None:
    """Train and record; the manifest, written last, marks the stage complete."""
    config = run.config
    form = make_form(config.form, config)
    data = prepared.data
    clients = prepared.client_data()
    models = build_clients(
        config.family,
        len(clients),
        data.shape,
        len(data.classes),
        config.feature_width,
        config.seed,
        config.mapping,
    )
    recorder = Recorder(
        run_dir=run.path,
        system=config.system,
        form=form,
        feature_width=config.feature_width,
        num_classes=len(data.classes),
        seed=config.seed,
        also={} if config.form == CEILING else {CEILING: last_rounds(len(clients), config)},
        build=partial(make_form, config=config),
    )
    with progress("train clients", config.rounds or 0, quiet=quiet) as tick:
        run_federation(
            models=models,
            client_data=clients,
            system=SYSTEMS[config.system](),
            form=form,
            config=config,
            recorder=recorder,
            on_round=lambda _: tick(),
        )
    manifest: dict[str, Any] = {
        "versions": versions(),
        "seed": config.seed,
        "config_sha256": run.sha256,
        "dataset_sha256": data.content_hash,
        "device": "cuda" if config.device != "cpu" and torch.cuda.is_available() else "cpu",
        "uploads": upload_hashes(run),
    }
    run.write_json(DONE, manifest)
