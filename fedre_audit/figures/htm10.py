"""Ten heterogeneous models, one round on 40 images a client, all three forms recorded: seconds and memory on a CPU."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from fedre_audit.config import AuditConfig, resolve
from fedre_audit.data.base import load_dataset
from fedre_audit.federation.client import ClientData
from fedre_audit.federation.engine import run_federation
from fedre_audit.federation.forms import make_form
from fedre_audit.federation.recorder import Recorder
from fedre_audit.federation.systems import SYSTEMS
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.models import build_clients
from fedre_audit.seeding import generator

FAMILY, CLIENTS, IMAGES, WORKERS = "HtM-img-10", 10, 40, 2
FORMS = ("raw", "prototype", "entangled")


def one_round(dataset: str) -> dict[str, Any]:
    """Seconds, what was recorded, and an upper bound of the memory of this process and its workers together."""
    data = load_dataset(dataset)
    order = torch.randperm(len(data), generator=generator(0, "htm10"))[: CLIENTS * IMAGES]
    held = [data.subset(ids) for ids in order.split(IMAGES)]
    clients = [
        ClientData(part.images, part.labels, torch.arange(IMAGES), part.images[:0], part.labels[:0]) for part in held
    ]
    config = resolve(AuditConfig(family=FAMILY, clients=CLIENTS, rounds=1, device="cpu", workers=WORKERS))
    started = time.perf_counter()
    models = build_clients(FAMILY, CLIENTS, data.shape, len(data.classes), config.feature_width, 0)
    built = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        form = make_form("entangled", config)
        recorder = Recorder(
            run_dir=Path(folder), system="fedre", form=form, num_classes=len(data.classes),
            feature_width=config.feature_width, seed=0, also={name: {0} for name in FORMS},
        )  # fmt: skip
        run_federation(
            models=models, client_data=clients, system=SYSTEMS["fedre"](), form=form, config=config, recorder=recorder
        )
        recorded = sorted(path.parent.name for path in Path(folder, "uploads").glob("*/*.safetensors"))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.safetensors"))
    own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "models": [model.name for model in models],
        "parameters": sum(p.numel() for model in models for p in model.parameters()),
        "build_seconds": round(built - started, 1),
        "round_seconds": round(time.perf_counter() - built, 1),
        "recorded": recorded,
        "written_gib": round(size / 2**30, 2),
        "peak_memory_gib_at_most": round((own + WORKERS * child) / 2**20, 2),
    }


def measure() -> dict[str, Any]:
    """Each data set in a process of its own, so that its peak memory is its own."""
    values: dict[str, Any] = {"images_per_client": IMAGES, "workers": WORKERS}
    for dataset in ("cifar10", "tinyimagenet"):
        program = f"import json; from {__name__} import one_round; print(json.dumps(one_round('{dataset}')))"
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
        values[dataset] = json.loads(done.stdout.splitlines()[-1])
    return values


SOURCES = (
    "fedre_audit/figures/htm10.py",
    "fedre_audit/models/families.py",
    "fedre_audit/models/torchvision_models.py",
    "fedre_audit/federation/engine.py",
    "fedre_audit/federation/local.py",
)
FIGURES.register("htm10")(Figure(measure, SOURCES))
