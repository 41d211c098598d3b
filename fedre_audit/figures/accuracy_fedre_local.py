"""Does FedRE help its clients? Personalised accuracy of `fedre` against `local`, five seeds, with intervals.

CIFAR-10 practical partition (alpha 0.1), ten clients, FedAvgCNN, 2,000 images (a quarter for testing), 60 rounds.
Accuracy at the declared point of each system: after the broadcast, before local training. Local has no broadcast.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from fedre_audit.config import AuditConfig, resolve
from fedre_audit.federation.engine import run_federation
from fedre_audit.federation.forms import make_form
from fedre_audit.federation.recorder import Recorder
from fedre_audit.federation.systems import SYSTEMS
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.models import build_clients
from fedre_audit.stages.prepare import prepare

SEEDS = (0, 1, 2, 3, 4)
SETTING: dict[str, Any] = {
    "dataset": "cifar10", "family": "fedavg_cnn", "clients": 10, "private_images": 2000, "auxiliary_images": 100,
    "rounds": 60, "device": "cpu", "precision": "fp32", "workers": 1,
}  # fmt: skip


def accuracies(system: str, seed: int, **changes: Any) -> dict[str, float]:
    """Last and best, weighted and unweighted accuracy in percent of one federation."""
    config = resolve(AuditConfig(**{**SETTING, "system": system, "seed": seed, **changes}))
    prepared = prepare(config)
    data, clients = prepared.data, prepared.client_data()
    classes = len(data.classes)
    models = build_clients(config.family, len(clients), data.shape, classes, config.feature_width, seed)
    form = make_form(config.form, config)
    with tempfile.TemporaryDirectory() as folder:
        history = run_federation(
            models=models,
            client_data=clients,
            system=SYSTEMS[system](),
            form=form,
            config=config,
            recorder=Recorder(
                run_dir=Path(folder),
                system=system,
                form=form,
                num_classes=classes,
                feature_width=config.feature_width,
                seed=seed,
            ),
            checkpoint_every=1000,
        )
    found = history.accuracy()
    return {f"{when} {mean}": 100 * (found[when][mean] or 0.0) for when in found for mean in found[when]}


def interval(values: list[float]) -> dict[str, Any]:
    """Mean and 95 % t-interval over seeds."""
    mean, half = float(np.mean(values)), float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return {"mean": mean, "ci95": [mean - half, mean + half], "seeds": values}


def measure() -> dict[str, Any]:
    """Accuracies in percent of both systems and their paired difference, by rule."""
    runs = {system: [accuracies(system, seed) for seed in SEEDS] for system in ("fedre", "local")}
    values: dict[str, Any] = {}
    for rule in runs["fedre"][0]:
        by = {system: [run[rule] for run in found] for system, found in runs.items()}
        paired = [a - b for a, b in zip(by["fedre"], by["local"], strict=True)]
        values[rule] = {**{name: interval(v) for name, v in by.items()}, "fedre minus local": interval(paired)}
    return {"setting": SETTING, "unit": "percent", "accuracy": values}


FIGURES.register("accuracy_fedre_local")(
    Figure(
        measure,
        (
            "fedre_audit/figures/accuracy_fedre_local.py",
            "fedre_audit/federation/client.py",
            "fedre_audit/federation/server.py",
            "fedre_audit/federation/systems/fedre.py",
            "fedre_audit/federation/systems/local.py",
            "fedre_audit/models/fedavg_cnn.py",
            "fedre_audit/data/partition.py",
            "knowledge_forms/entangled.py",
        ),
    )
)
