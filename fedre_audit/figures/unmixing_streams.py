"""Unmixing on recorded FedRE clients: broadcast off and on, shuffled, batch norm, many classes."""

from pathlib import Path
from statistics import median
from typing import Any

import torch

from attacks.unmixing import unmix
from fedre_audit.data.base import ImageData, load_dataset
from fedre_audit.figures import FIGURES, Figure
from fedre_audit.figures.client_streams import Recorded, Setup, record
from fedre_audit.figures.unmixing_synthetic import SOURCES, relative

METHODS = ("least_squares", "adaptive_norm_smoothed", "learned_drift")
PLAIN = ("plain-12", "plain-8", "plain-16")
LEVEL = ({3: 750, 5: 750}, dict.fromkeys((0, 1, 4, 8, 9), 300), dict.fromkeys(range(10), 150))
SKEWED = (
    {3: 200, 5: 200},
    {0: 1, 1: 40, 2: 120, 4: 120, 8: 120},
    dict(zip(range(10), (1, 1, 2, 5, 20, 60, 80, 80, 80, 80), strict=True)),
)
SETUPS = {
    "no broadcast": Setup(counts=LEVEL, models=("plain-12",) * 3, rounds=60, broadcast=False, seed=0, drop_last=True),
    "broadcast, seed 0": Setup(counts=SKEWED, models=PLAIN, rounds=100, broadcast=True, seed=0),
    "broadcast, seed 1": Setup(counts=SKEWED, models=PLAIN, rounds=100, broadcast=True, seed=1),
    "broadcast, seed 2": Setup(counts=SKEWED, models=PLAIN, rounds=100, broadcast=True, seed=2),
    "broadcast, shuffled": Setup(counts=SKEWED, models=PLAIN, rounds=100, broadcast=True, seed=0, shuffle=True),
    "broadcast, shuffled, residual with batch norm": Setup(
        counts=SKEWED, models=("small_resnet",) * 3, rounds=100, broadcast=True, seed=1, shuffle=True
    ),
}
MANY = Setup(
    counts=(dict.fromkeys(range(38), 10), dict.fromkeys(range(65), 8)),
    models=("small_cnn", "small_cnn"),
    rounds=100,
    broadcast=True,
    seed=0,
    shuffle=True,
)


def measure_client(recorded: Recorded) -> dict[str, Any]:
    """Errors of every method, last round and median over the last half of the rounds (50 at most), with what the
    server can predict of them."""
    rounds, h, _ = recorded.truth.shape
    late = range(rounds - min(50, rounds // 2), rounds)
    row: dict[str, Any] = {"classes": h, "rounds": rounds}
    for method in METHODS:
        found = unmix(recorded.view, method)
        row[method] = {
            "last": round(relative(found.prototypes, recorded.truth[-1]), 3),
            "smoothed": round(median(relative(found.smoothed[t], recorded.truth[t]) for t in late), 3),
            "predicted_last": round(found.predicted_last, 3),
            "predicted_smoothed": round(found.predicted_smoothed, 3),
            "null_gap": round(found.null_gap, 3),
            "status": found.status,
        }
    return row


def summary(streams: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The claims, over the nine streams of three broadcast seeds."""
    rows = [row for name in SETUPS if name.startswith("broadcast, seed") for row in streams[name]]
    out: dict[str, Any] = {"streams": len(rows)}
    for method in METHODS[1:]:
        within = {
            what: sum(1 / 2.5 <= row[method][f"predicted_{what}"] / row[method][what] <= 2.5 for row in rows)
            for what in ("last", "smoothed")
        }
        claimed = [row[method] for row in rows if row[method]["status"] == "validated"]
        out[method] = {
            "smoothed <= .6": sum(row[method]["smoothed"] <= 0.6 for row in rows),
            "below least squares": sum(row[method]["smoothed"] < row["least_squares"]["smoothed"] for row in rows),
            "predicted within 2.5, last": within["last"],
            "predicted within 2.5, smoothed": within["smoothed"],
            "null gap > .2": sum(row[method]["null_gap"] > 0.2 for row in rows),
            "validated": len(claimed),
            "worst last error among validated": max((row["last"] for row in claimed), default=None),
            "median smoothed": round(median(row[method]["smoothed"] for row in rows), 3),
            "median last": round(median(row[method]["last"] for row in rows), 3),
        }
    return out


def small_images(root: Path | None) -> ImageData:
    """The first 65 TinyImageNet classes."""
    return load_dataset("tinyimagenet", root=root).limit_classes(65)


def measure() -> dict[str, Any]:
    """Train every set-up and unmix every client, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    data = load_dataset("cifar10", root=None)
    streams = {name: [measure_client(r) for r in record(data, setup)] for name, setup in SETUPS.items()}
    streams["many classes, TinyImageNet, broadcast, shuffled"] = [
        measure_client(r) for r in record(small_images(None), MANY)
    ]
    torch.set_num_threads(threads)
    return {"summary": summary(streams), "streams": streams}


HERE = ("fedre_audit/figures/unmixing_streams.py", "fedre_audit/figures/client_streams.py")
FIGURES.register("unmixing_streams")(Figure(measure, (*SOURCES, *HERE)))
