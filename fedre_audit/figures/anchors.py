"""CIFAR-10 behind random linear encoders: the ridge attack against the best linear decoder, at three noise levels.

512 projections, A entries N(0, 1/3072), e = A x + N(0, sigma^2); 30,000 public images, 10,000 test images; PSNR is
pooled (from the mean squared error). Published nowhere: a pilot measured 27.1 / 21.85 / 15.26 dB.
"""

import math
import time
from typing import Any

import torch
from torch import Tensor

from attacks.knowledge import Q3
from attacks.ridge import Ridge
from fedre_audit.data.base import load_dataset
from fedre_audit.figures import FIGURES, Figure
from knowledge_forms.base import ServerView, Upload

PILOT = {0.0: 27.1, 0.1: 21.85, 1.0: 15.26}
PROJECTIONS, PUBLIC, TESTED = 512, 30_000, 10_000


class Projection(torch.nn.Module):
    """Images [N,c,h,w] -> [N,m]: random projections and noise from a generator of its own."""

    def __init__(self, pixels: int, sigma: float) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.matrix = torch.randn(PROJECTIONS, pixels, generator=generator) / math.sqrt(pixels)
        self.sigma, self.generator = sigma, torch.Generator().manual_seed(1)

    def forward(self, images: Tensor) -> Tensor:
        """[N,c,h,w] -> [N,m]."""
        z = (images.flatten(1) - 0.5) @ self.matrix.T
        return z + self.sigma * torch.randn(z.shape, generator=self.generator)


def pooled_psnr(public: Tensor, labels: Tensor, tested: Tensor, sigma: float) -> tuple[float, float]:
    """Pooled PSNR of the ridge attack in dB, and the penalty it chose."""
    encoder = Projection(tested[0].numel(), sigma)
    known = Q3(public, labels, 10, 0, torch.nn.Flatten, encoder, encoder)
    attack = Ridge().fit(known)
    z = torch.cat([encoder(part) for part in tested.split(1000)])
    view = ServerView("", "raw", "", PROJECTIONS, 10, (Upload(0, 0, "raw", z, torch.full((len(z), 10), 0.1)),))
    error = (attack.reconstruct(view).images - tested).square().mean()
    return float(-10 * error.log10()), attack.penalty_


def measure() -> dict[str, Any]:
    """Pooled PSNR at each noise level beside the pilot's."""
    torch.set_num_threads(1)
    data = load_dataset("cifar10")
    train, test = (data.official_split == 0).nonzero().flatten(), (data.official_split > 0).nonzero().flatten()
    public, labels = data.images[train[:PUBLIC]].float() / 255, data.labels[train[:PUBLIC]]
    tested = data.images[test[:TESTED]].float() / 255
    found: dict[str, Any] = {}
    for sigma, pilot in PILOT.items():
        started = time.perf_counter()
        psnr, penalty = pooled_psnr(public, labels, tested, sigma)
        found[f"noise {sigma}"] = {"pooled_psnr": round(psnr, 3), "pilot": pilot, "difference": round(psnr - pilot, 3),
                                   "penalty": penalty, "seconds": round(time.perf_counter() - started, 1)}  # fmt: skip
    floor = -10 * (public.mean(0) - tested).square().mean().log10()
    return found | {"mean image": round(float(floor), 3), "public": len(public), "tested": len(tested)}


FIGURES.register("anchors")(Figure(measure, ("fedre_audit/figures/anchors.py", "attacks/ridge.py", "attacks/base.py")))
