"""Local training by model, and a federation's round against the naive reference."""

import copy
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from fedre_audit.bench.ceilings import gemm
from fedre_audit.bench.measure import Make, Step, machine_rate, share, timed
from fedre_audit.bench.naive import NaiveFederation
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.federation.client import HEAVY, ClientData, SGDStep, forward_flops
from fedre_audit.federation.engine import run_federation
from fedre_audit.federation.forms import make_form
from fedre_audit.federation.local import has_depthwise
from fedre_audit.federation.recorder import Recorder
from fedre_audit.federation.systems import SYSTEMS
from fedre_audit.models import MODELS, build_clients, build_model
from fedre_audit.models.base import ImageShape
from fedre_audit.models.single_position import as_convolutions, as_matrix_products

CIFAR = (3, 32, 32)
CLASSES = 10
OFFICIAL = {"seconds": 3.3, "gemm_fp32": 185e9}
"""A round of the official code in the pilot, and the fp32 ceiling of the machine it ran on."""


def random_client(train: int, test: int, shape: ImageShape, seed: int) -> ClientData:
    """Random images: speed does not depend on what they show."""
    draw = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (train + test, *shape), generator=draw, dtype=torch.uint8)
    labels = torch.randint(0, CLASSES, (train + test,), generator=draw)
    return ClientData(images[:train], labels[:train], torch.arange(train), images[train:], labels[train:])


def training(name: str, batch_size: int, shape: ImageShape = CIFAR) -> tuple[Make, float]:
    """One training step of a model as the engine takes it, in nominal FLOPs; and the nominal FLOPs of one image.

    Nominal: as the layers are defined, products with the zeros of padding included, whether or not they are computed.
    """
    model = build_model(name, shape, CLASSES, 512, seed=0).train().to(memory_format=torch.channels_last)
    own = random_client(4 * batch_size, 0, shape, 0)
    bf16 = resolve(AuditConfig()).precision == "bf16" and forward_flops(model) >= HEAVY and not has_depthwise(model)
    step = SGDStep(model, own.images, own.labels, lr=0.01, bf16=bf16)
    as_convolutions(model)
    with FlopCounterMode(display=False) as counter:
        step(torch.arange(batch_size))
    as_matrix_products(model)
    flops = float(counter.get_total_flops())

    def make() -> tuple[Step, float]:
        draw = torch.Generator().manual_seed(0)
        return lambda: step(torch.randint(len(own.images), (batch_size,), generator=draw)), flops

    return make, flops / batch_size


def local_training(names: Sequence[str] | None = None) -> dict[str, dict[str, float]]:
    """images/s, FLOPs per image and share of the bf16 ceiling of every model's training at batch 32."""
    ceiling = machine_rate(gemm(torch.bfloat16))
    rows = {}
    for name in names or MODELS:
        make, flops = training(name, 32, (1, 28, 28) if name.startswith("small_") else CIFAR)
        found = machine_rate(make)
        rows[name] = {
            "images_per_second": found / flops,
            "flops_per_image": flops,
            "share_of_bf16_peak": found / ceiling,
        }
    return rows


def resnet_share(batch_size: int, repeats: int) -> dict[str, float]:
    """ResNet-18 training at 32x32 as a share of the bf16 matrix-product ceiling; nominal FLOPs, padding included."""
    return share(training("resnet18", batch_size)[0], gemm(torch.bfloat16), repeats=repeats, seconds=1.0)


def federate(
    folder: Path,
    clients: int,
    images: int,
    rounds: int,
    *,
    family: str = "small",
    shape: ImageShape = (1, 28, 28),
    on_round: Callable[[dict[str, Any]], None] | None = None,
    **changes: Any,
) -> None:
    """Run a FedRE federation on random images: `images` to train on and a third as many to test per client."""
    config = resolve(AuditConfig(clients=clients, rounds=rounds, family=family, **{"device": "cpu", **changes}))
    form = make_form(config.form, config)
    run_federation(
        models=build_clients(family, clients, shape, CLASSES, config.feature_width, config.seed),
        client_data=[random_client(images, images // 3, shape, client) for client in range(clients)],
        system=SYSTEMS[config.system](),
        form=form,
        config=config,
        recorder=Recorder(
            run_dir=folder,
            system=config.system,
            form=form,
            num_classes=CLASSES,
            feature_width=config.feature_width,
            seed=config.seed,
        ),
        on_round=on_round,
    )


def pilot_round(repeats: int) -> dict[str, Any]:
    """A round of the pilot (4 clients of 300 images, FedAvgCNN and ResNet-18, batch 32), ours and naive in turn.

    Both with the loader of the public code: unshuffled, the last, smaller batch left out.
    """
    family, clients, images = "HtFE-img-2", 4, 300
    ours: list[float] = []
    theirs: list[float] = []
    peaks: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = build_clients(family, clients, CIFAR, CLASSES, 512, 0)
        data = [random_client(images, images // 3, CIFAR, client) for client in range(clients)]
        naive = NaiveFederation(copy.deepcopy(models), data, folder, 32, 0.06)
        started = time.perf_counter()

        def on_round(row: dict[str, Any]) -> None:
            nonlocal started
            ours.append(time.perf_counter() - started)
            theirs.append(timed(naive.round))
            peaks.append(machine_rate(gemm(torch.float32), 0.2))
            started = time.perf_counter()

        options: dict[str, Any] = {"family": family, "shape": CIFAR, "released_loader": True}
        federate(folder, clients, images, repeats + 1, on_round=on_round, **options)
    ours, theirs, peaks = ours[1:], theirs[1:], peaks[1:]  # the first one pays for setting up
    official = [OFFICIAL["seconds"] * OFFICIAL["gemm_fp32"] / peak for peak in peaks]
    return {
        "seconds": median(ours),
        "naive_seconds": median(theirs),
        "ratio_to_naive": median(b / a for a, b in zip(ours, theirs, strict=True)),
        "naive_to_official": median(b / a for a, b in zip(official, theirs, strict=True)),
        "repeats": repeats,
    }
