"""At which learning rates a `small` audit of a published heterogeneous family gets through its training.

Behind `config.default_lr`: HtFE-img-4 on CIFAR-10 at FedRE's published rate, at that of its released code, and at that
of HtFLlib, from which the family comes.
"""

import tempfile
from pathlib import Path
from typing import Any

from fedre_audit.config import AuditConfig, resolve
from fedre_audit.federation.history import read_history
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.runs import open_run
from fedre_audit.stages.prepare import prepare
from fedre_audit.stages.train import train
from knowledge_forms.errors import AuditError

RATES = (0.06, 0.03, 0.01)
SEEDS = range(5)


def trained(config: AuditConfig) -> dict[str, Any]:
    """Rounds that were trained, and what stopped the training, None if nothing did."""
    stopped, prepared = None, prepare(config)
    with tempfile.TemporaryDirectory() as folder:
        run = open_run(Path(folder, "run"), config)
        try:
            train(run, prepared, quiet=True)
        except AuditError as error:
            if "not finite" not in str(error):
                raise
            stopped = str(error)
        return {"rounds": len(read_history(run.path).rows), "stopped": stopped}


def measure() -> dict[str, Any]:
    """Every rate with every seed."""
    base = AuditConfig(preset="small", family="HtFE-img-4", dataset="cifar10", device="cpu")
    found: dict[str, Any] = {}
    for lr in RATES:
        made = {seed: trained(resolve(AuditConfig(**{**vars(base), "lr": lr, "seed": seed}))) for seed in SEEDS}
        ended = sum(one["stopped"] is None for one in made.values())
        found[str(lr)] = {"finished": ended, "of": len(made), "seeds": made}
    return {"rounds": resolve(base).rounds, "rates": found}


SOURCES = (
    "fedre_audit/figures/htfe4_rates.py",
    "fedre_audit/models/torchvision_models.py",
    "fedre_audit/federation/client.py",
    "fedre_audit/federation/local.py",
)
FIGURES.register("htfe4_rates")(Figure(measure, SOURCES))
