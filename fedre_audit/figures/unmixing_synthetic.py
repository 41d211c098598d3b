"""Unmixing on planted streams: accuracy of every method, exact error of least squares, null, prediction, speed."""

import math
import time
from statistics import mean, median
from typing import Any

import torch
from torch import Tensor

from attacks.unmixing import UNMIXERS, unmix
from attacks.unmixing.least_squares import solve
from attacks.unmixing.likelihood import DriftFilter, make_grid
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.seeding import generator
from knowledge_forms.base import ServerView, Upload
from knowledge_forms.entangled import normalise

CASES: dict[str, dict[str, Any]] = {
    "static, noise .1": {"static": True, "noise": 0.1},
    "smooth + walk .02, noise .02": {"walk": 0.02, "noise": 0.02},
    "smooth + walk .1 + common walk .1": {"walk": 0.1, "common": 0.1},
    "h=20, smooth + walk .02, noise .02": {"classes": 20, "walk": 0.02, "noise": 0.02},
}
CONSTANT = make_grid(q=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), tau=(math.inf,), common=(0.0, 0.1), floor=(0.0,))


def planted(
    seed: int, *, classes: int = 10, rounds: int = 100, width: int = 64, noise: float = 0.0, walk: float = 0.0,
    common: float = 0.0, static: bool = False,
) -> tuple[ServerView, Tensor]:  # fmt: skip
    """A stream and its prototypes [T,h,d]: a shrunken start decays to a limit, with a random walk on top."""
    g = generator(seed, "planted stream")

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    base = 1.5 * normal(width)
    limit, start = base + normal(classes, width), 0.2 * base + 0.2 * normal(classes, width)
    steps = (walk * normal(rounds, classes, width) + common * normal(rounds, 1, width)).cumsum(0)
    decay = torch.exp(-torch.arange(rounds, dtype=torch.float64) / 30)[:, None, None]
    truth = limit.expand(rounds, -1, -1) if static else limit + (start - limit) * decay + steps
    draws = torch.rand(rounds, classes, generator=g, dtype=torch.float64)
    weights = torch.stack([normalise(draw) for draw in draws])
    uploads = torch.einsum("th,thd->td", weights, truth) + noise * normal(rounds, width)
    return view_of(weights, uploads), truth


def view_of(weights: Tensor, uploads: Tensor) -> ServerView:
    """Weights [T,C], uploads [T,d] -> what the server sees of client 0."""
    sent = tuple(
        Upload(0, t, "entangled", r.float()[None], w.float()[None])
        for t, (w, r) in enumerate(zip(weights, uploads, strict=True))
    )
    return ServerView("fedre", "entangled", "RAP", uploads.shape[1], weights.shape[1], sent)


def relative(found: Tensor, truth: Tensor) -> float:
    """Error of [h,d] relative to what differs between classes: 1 is no unmixing."""
    return float((found.double() - truth.double()).norm() / (truth - truth.mean(0)).double().norm())


def accuracy() -> dict[str, dict[str, float]]:
    """Median of eight streams: error of the last round's prototypes."""
    table = {}
    for case, options in CASES.items():
        methods = dict(UNMIXERS.items())
        methods["filter, known noise, constant drift"] = DriftFilter(
            adaptive=False, norm_smoothed=False, grid=CONSTANT, noise=options.get("noise", 0.0)
        )
        streams = [planted(seed, **options) for seed in range(8)]
        table[case] = {
            name: round(median(relative(unmix(view, m, nulls=0).prototypes, truth[-1]) for view, truth in streams), 3)
            for name, m in methods.items()
        }
    return table


def exact_trace() -> dict[str, float]:
    """Mean square error of least squares under unit noise, over what its trace says."""
    ratios = {}
    for classes, rounds in ((10, 100), (20, 100)):
        g = generator(0, "trace")
        draws = torch.rand(rounds, classes, generator=g, dtype=torch.float64)
        weights = draws / draws.sum(1, keepdim=True)
        found, inverse = solve(weights, torch.randn(rounds, 20000, generator=g, dtype=torch.float64))
        ratios[f"h={classes}, T={rounds}"] = round(float(found.square().mean() / (inverse.trace() / classes)), 4)
    return ratios


def null_gaps() -> dict[str, float]:
    """Mean over eight streams of the permuted-weights gap, with the true weights and with noise in their place."""
    true, noise, claimed = [], [], 0
    for seed in range(8):
        view, _ = planted(seed, classes=5, rounds=80, width=128, walk=0.02)
        other, _ = planted(100 + seed, classes=5, rounds=80, width=128)
        true.append(unmix(view, seed=seed).null_gap)
        weights = torch.cat([upload.label_encoding for upload in other.uploads])
        uploads = torch.cat([upload.representation for upload in view.uploads])
        found = unmix(view_of(weights, uploads), seed=seed)
        noise.append(found.null_gap)
        claimed += found.validated
    return {"true weights": round(mean(true), 3), "noise as weights": round(mean(noise), 3), "noise validated": claimed}


def speed(clients: int = 100, measured: int = 5) -> dict[str, float]:
    """Seconds of one thread for 200 rounds x 50 classes x 512 features, 80 grid points, no nulls, scaled to 100."""
    view, _ = planted(0, classes=50, rounds=200, width=512, walk=0.02)
    unmix(view, nulls=0)
    start, processor = time.perf_counter(), time.process_time()
    for _ in range(measured):
        unmix(view, nulls=0)
    wall, used = time.perf_counter() - start, time.process_time() - processor
    return {
        "processor_seconds_100_clients": round(used / measured * clients, 1),
        "wall_seconds_100_clients_on_this_machine": round(wall / measured * clients, 1),
    }


def measure() -> dict[str, Any]:
    """All of it, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    values = {
        "relative error, last round, median of 8": accuracy(),
        "least squares, error over exact trace": exact_trace(),
        "null gap, nats per scalar": null_gaps(),
        "speed": speed(),
    }
    torch.set_num_threads(threads)
    return values


SOURCES = tuple(
    f"attacks/unmixing/{name}.py"
    for name in ("base", "identifiability", "kalman", "least_squares", "likelihood", "model")
)
FIGURES.register("unmixing_synthetic")(Figure(measure, (*SOURCES, "fedre_audit/figures/unmixing_synthetic.py")))
