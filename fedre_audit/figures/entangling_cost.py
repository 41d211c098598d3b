"""What entangling costs a client: the weighted sums alone, and the evaluation-mode pass, as shares of a round.

A round is local training, the evaluation-mode pass over the training images, and entangling (RAP), on one CPU thread.
Published for comparison: 0.09 s of 5.69 s on CIFAR-10 (1.6 %), hardware not comparable (FedRE, arXiv 2511.22265).
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fedre_audit.federation.client import represent_all, train_local
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.models import build_model
from fedre_audit.seeding import generator
from knowledge_forms.entangled import EntangledRepresentation

SETTINGS = {
    "fedavg_cnn, 3x32x32, 150 images, 10 classes": ("fedavg_cnn", (3, 32, 32), 150, 10),
    "fedavg_cnn, 3x32x32, 4,500 images, 100 classes": ("fedavg_cnn", (3, 32, 32), 4500, 100),
    "small_resnet, 1x28x28, 110 images, 10 classes": ("small_resnet", (1, 28, 28), 110, 10),
}


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Median seconds of the processor spent in one call: other programs of the machine do not count."""
    found = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return float(np.median(found))


def shares(
    name: str, image_shape: tuple[int, int, int], images: int, classes: int, repeats: int = 5
) -> dict[str, float]:
    """Percent of a round's processor time of one client, and the seconds of the round."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    draw = generator(0, "cost")
    x = torch.randint(0, 256, (images, *image_shape), generator=draw, dtype=torch.uint8)
    y = torch.arange(images) % classes
    model = build_model(name, image_shape, classes, 512, seed=0)
    form = EntangledRepresentation()
    z = represent_all(model, x)
    part = {
        "training": seconds(
            lambda: train_local(model, x, y, epochs=1, lr=0.01, batch_size=32, shuffle=True, generator=draw), repeats
        ),
        "evaluation_pass": seconds(lambda: represent_all(model, x), repeats),
        "entangling": seconds(lambda: form(z, y, classes, draw), 5 * repeats),
    }
    torch.set_num_threads(threads)
    total = sum(part.values())
    return {**{f"{key}_percent": 100 * value / total for key, value in part.items()}, "round_seconds": total}


FIGURES.register("entangling_cost")(
    Figure(
        lambda: {label: shares(*setting) for label, setting in SETTINGS.items()},
        (
            "fedre_audit/figures/entangling_cost.py",
            "fedre_audit/federation/client.py",
            "knowledge_forms/base.py",
            "knowledge_forms/entangled.py",
        ),
    )
)
