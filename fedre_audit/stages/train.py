"""Stage 1: train the federation and record what each client uploads."""

import hashlib
import platform
import sys
from collections.abc import Sequence
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
from knowledge_forms.errors import AuditError

CEILING = "raw"
DONE = "manifest.json"
STARTED = "images.json"
"""Hashes of the images that a training began with, for one that is interrupted before its manifest."""


def versions() -> dict[str, str]:
    """Versions of what computes the numbers."""
    names = ("fedre-audit", "torch", "torchvision", "numpy", "scipy", "scikit-learn", "piq")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def upload_hashes(run: Run) -> dict[str, str]:
    """SHA-256 of every upload file, by its path in the run folder."""
    paths = sorted((run.path / "uploads").rglob("*.safetensors"))
    return {str(p.relative_to(run.path)): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def make_recorder(run: Run, prepared: Prepared, others: Sequence[Recorder] = ()) -> Recorder:
    """Records what `run` audits, and the raw form that its ceiling needs."""
    config = run.config
    return Recorder(
        run_dir=run.path,
        system=config.system,
        form=make_form(config.form, config),
        feature_width=config.feature_width,
        num_classes=len(prepared.data.classes),
        seed=config.seed,
        also={} if config.form == CEILING else {CEILING: last_rounds(len(prepared.parts), config)},
        build=partial(make_form, config=config),
        others=others,
    )


def images_of(prepared: Prepared) -> dict[str, str]:
    """Hashes of the images that a run rests on: of the data set, and of the attacker's where it is another one."""
    own = {"dataset_sha256": prepared.data.content_hash}
    return own if prepared.auxiliary_sha256 is None else {**own, "auxiliary_sha256": prepared.auxiliary_sha256}


def check_images(run: Run, prepared: Prepared) -> None:
    """AuditError where a training, finished or interrupted, had other images than there are now: ids would not fit."""
    name = next((name for name in (DONE, STARTED) if run.has(name)), None)
    if name is None:
        return
    held = run.read_json(name, "dataset_sha256")
    for key, value in images_of(prepared).items():
        if held.get(key, value) != value:  # runs recorded before lack the auxiliary images' hash
            option = key.removesuffix("_sha256")
            raise AuditError(
                f"{run.path} was trained when --{option} {getattr(run.config, option)} held other images than it does "
                "now; choose another --out, or restore the images"
            )


def write_manifest(run: Run, prepared: Prepared) -> None:
    """What made the run and what it recorded; it marks the stage complete."""
    manifest: dict[str, Any] = {
        "versions": versions(),
        "seed": run.config.seed,
        "config_sha256": run.sha256,
        **images_of(prepared),
        "device": "cuda" if run.config.device != "cpu" and torch.cuda.is_available() else "cpu",
        "uploads": upload_hashes(run),
    }
    run.write_json(DONE, manifest)


def train(run: Run, prepared: Prepared, *, quiet: bool = False, others: Sequence[Run] = ()) -> None:
    """Train and record; the manifest, written last, marks the stage complete.

    others: runs that record their own form from this same training; their manifests are left to the caller.
    AuditError where an interrupted training had other images.
    """
    for one in (run, *others):
        check_images(one, prepared)
        one.write_json(STARTED, images_of(prepared))
    config = run.config
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
    recorder = make_recorder(run, prepared, [make_recorder(other, prepared) for other in others])
    with progress("train clients", config.rounds or 0, quiet=quiet) as tick:
        rounds_seen = 0

        def on_round(row: dict[str, Any]) -> None:
            nonlocal rounds_seen
            if rounds_seen == 0 and row["round"] > 0 and not quiet:
                print(f"train clients: resumed at round {row['round'] + 1}", file=sys.stderr, flush=True)
            while rounds_seen < row["round"]:  # done before the interruption
                rounds_seen += 1
                tick()
            rounds_seen += 1
            tick(sum(len(clients[k].images) for k in row["participants"]), f"{len(clients)} clients")

        run_federation(
            models=models,
            client_data=clients,
            system=SYSTEMS[config.system](),
            form=recorder.form,
            config=config,
            recorder=recorder,
            on_round=on_round,
        )
    write_manifest(run, prepared)
