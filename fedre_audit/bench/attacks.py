"""What each attacker costs, the decoder's share of the ceiling, and unmixing at a large size."""

import copy
from statistics import median
from typing import Any

import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from attacks.base import ATTACKS
from attacks.decoder import DecoderNetwork, train_decoder
from attacks.knowledge import Q3
from attacks.unmixing import unmix
from fedre_audit.bench.ceilings import gemm
from fedre_audit.bench.federation import CIFAR, CLASSES, random_client
from fedre_audit.bench.measure import Make, Step, share, timed
from fedre_audit.config import AuditConfig, resolve
from fedre_audit.federation.systems.base import head_of
from fedre_audit.hardware import cores
from fedre_audit.models import as_encoder, build_model
from fedre_audit.workers import Workers, forkable
from knowledge_forms.base import ServerView, Upload

WIDTH = 512
SLOW: dict[str, dict[str, Any]] = {
    "decoder": {"steps": 20},
    "optimisation": {"steps": 20, "restarts": 1},
    "corrector": {"steps": 20},
    "shadow": {"steps": 20},
}
"""Shortened budgets: seconds are of these, so that the bench stays short."""


def random_view(clients: int, rounds: int, classes: int, width: int, rows: int = 1) -> ServerView:
    """Uploads of random prototypes that drift a little, mixed by fresh uniform weights (rows 1), or raw rows."""
    draw = torch.Generator().manual_seed(0)
    uploads = []
    for client in range(clients):
        prototypes = torch.rand(classes, width, generator=draw)
        for round_ in range(rounds):
            prototypes = prototypes + 0.02 * torch.randn(classes, width, generator=draw)
            if rows == 1:
                weights = torch.rand(1, classes, generator=draw)
            else:
                weights = F.one_hot(torch.randint(classes, (rows,), generator=draw), classes).float()
            weights /= weights.sum(1, keepdim=True)
            uploads.append(Upload(client, round_, "entangled", weights @ prototypes, weights))
    return ServerView("fedre", "entangled", "RAP", width, classes, tuple(uploads))


def attack_costs(auxiliary: int = 1000, rows: int = 50) -> dict[str, dict[str, float]]:
    """Seconds of fitting on `auxiliary` CIFAR-sized images and of answering `rows` rows, by attack; FedAvgCNN."""
    encoder = as_encoder(model := build_model("fedavg_cnn", CIFAR, CLASSES, WIDTH, seed=0))
    own = random_client(auxiliary, 0, CIFAR, 0)
    knowledge = Q3(
        images=own.images.float() / 255,
        labels=own.labels,
        num_classes=CLASSES,
        seed=0,
        architecture=model.rebuild,
        encoder=encoder,
        module=encoder,
        classifiers={
            round_: head_of(build_model("fedavg_cnn", CIFAR, CLASSES, WIDTH, seed=round_)) for round_ in range(20)
        },
    )
    seconds = {"representations": timed(lambda: knowledge.auxiliary_representations)}
    view = random_view(1, 1, CLASSES, WIDTH, rows)
    found = {"encoder": {"images_per_second": auxiliary / seconds["representations"]}}
    for name, attack in ATTACKS.items():
        fitted = attack(**SLOW.get(name, {}))
        fit = timed(lambda fitted=fitted: fitted.fit(knowledge))  # type: ignore[misc]
        answer = timed(lambda fitted=fitted: fitted.reconstruct(view))  # type: ignore[misc]
        found[name] = {"fit_seconds": fit, "answer_seconds": answer, "images_per_second": rows / answer}
    return found


def decoder_step(batch_size: int = 64, steps: int = 150, device: torch.device | None = None) -> Make:
    """`steps` training steps of the convolutional decoder at 3x32x32 with its validation, counted in training FLOPs.

    150 steps are the budget of preset quick; each of 20 checks costs 100 images forwards, and counts as no work.
    """
    draw = torch.Generator().manual_seed(0)
    source = torch.randn(1000, WIDTH, generator=draw)
    coarse = (source[:, :48] * 0.2 + 0.5).clamp(0, 1).view(-1, 3, 4, 4)  # learnable: nothing to learn stops early
    source, target = (
        part.to(device or "cpu") for part in (source, coarse.repeat_interleave(8, 2).repeat_interleave(8, 3))
    )
    network = DecoderNetwork(source, target.mean(0)).to(source.device).to(memory_format=torch.channels_last)
    with FlopCounterMode(display=False) as counter:
        F.mse_loss(network(source[:batch_size]), target[:batch_size]).backward()
    bf16 = resolve(AuditConfig()).precision == "bf16"

    def make() -> tuple[Step, float]:
        def step() -> None:
            trained = train_decoder(
                copy.deepcopy(network), (source, target), (source[:100], target[:100]), steps=steps, lr=1e-3,
                batch_size=batch_size, bf16=bf16, generator=torch.Generator().manual_seed(0),
            )  # fmt: skip
            if trained.steps != steps:
                raise RuntimeError(
                    f"the decoder stopped after {trained.steps} of {steps} steps; the rate would be wrong"
                )

        return step, float(steps * counter.get_total_flops())

    return make


def decoder_share(repeats: int) -> dict[str, float]:
    """Decoder training at 32x32 as a share of the bf16 matrix-product ceiling."""
    return share(decoder_step(), gemm(torch.bfloat16), repeats=repeats, seconds=1.0)


def unmixing_seconds(
    clients: int = 100, rounds: int = 200, classes: int = 50, measured: int | None = None
) -> dict[str, Any]:
    """Unmixing many clients with the default grid, without nulls, one process a core; `measured` of them, scaled up."""
    count = measured or clients
    view = random_view(count, rounds, classes, WIDTH)
    views = [view.client(client) for client in range(count)]

    def work(client: int, _: None) -> float:
        return timed(lambda: unmix(views[client], nulls=0))

    with Workers(work, [1.0] * count, forkable(cores(), 1)) as pool:
        each: list[float] = []
        wall = timed(lambda: each.extend(seconds for _, seconds in pool.map(None)))
    return {
        "clients": clients, "rounds": rounds, "classes": classes, "features": WIDTH, "measured_clients": count,
        "seconds": wall * clients / count, "seconds_per_client": median(each),
    }  # fmt: skip
