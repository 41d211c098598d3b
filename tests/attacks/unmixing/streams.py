"""Planted streams: what the server sees, and the prototypes behind it."""

import math

import torch
from torch import Tensor

from knowledge_forms.base import ServerView, Upload
from knowledge_forms.entangled import normalise


def view_of(weights: Tensor, uploads: Tensor, *, mechanism: str = "RAP", rounds=None, classes=None) -> ServerView:
    """weights [T,C], uploads [T,d] -> the view of client 0."""
    rounds = range(len(weights)) if rounds is None else rounds
    sent = tuple(
        Upload(0, t, "entangled", r.float()[None], w.float()[None])
        for t, w, r in zip(rounds, weights, uploads, strict=True)
    )
    return ServerView("fedre", "entangled", mechanism, uploads.shape[1], weights.shape[1], sent)


def draw_weights(rounds: int, classes: int, generator: torch.Generator) -> Tensor:
    """FedRE's normalised uniform weights, [T,h] float64."""
    return torch.stack([normalise(torch.rand(classes, generator=generator).double()) for _ in range(rounds)])


def planted(
    classes: int = 10, rounds: int = 100, width: int = 64, *, sigma: float = 0.0, walk: float = 0.0,
    static: bool = False, common: float = 0.0, seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Weights [T,h], uploads [T,d], prototypes [T,h,d]: from a shrunken start to a limit, with a random walk."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    base = 1.5 * normal(width)
    limit, start = base + normal(classes, width), 0.2 * base + 0.2 * normal(classes, width)
    steps = walk * normal(rounds, classes, width) + common * normal(rounds, 1, width)
    decay = torch.tensor([0.0 if static else math.exp(-t / 30) for t in range(rounds)], dtype=torch.float64)
    truth = limit + (start - limit) * decay[:, None, None] + (0.0 if static else steps.cumsum(0))
    weights = draw_weights(rounds, classes, g)
    uploads = torch.einsum("th,thd->td", weights, truth) + sigma * normal(rounds, width)
    return weights, uploads, truth


def relative(found: Tensor, truth: Tensor) -> float:
    """Error relative to what differs between classes: 1 is no unmixing."""
    return float((found.double() - truth).norm() / (truth - truth.mean(0)).norm())
