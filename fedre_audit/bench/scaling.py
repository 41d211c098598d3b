"""How time and memory grow with clients, rounds, images and image size."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from fedre_audit.bench.federation import federate
from fedre_audit.bench.measure import peak_growth_mb, timed
from fedre_audit.federation.view import read_view
from knowledge_forms.store import Entries, write_entries

BASE = {"clients": 4, "images": 320, "rounds": 20}
"""Whole batches of 32: with 300 images, twice the images would be 19 steps instead of 10."""
DOUBLED = ("clients", "images", "rounds")


def _seconds(**options: Any) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return timed(lambda: federate(Path(folder), **options))


def doubling(repeats: int, rounds: int = BASE["rounds"]) -> dict[str, float]:
    """By what factor a federation's time grows when one quantity doubles; family `fedavg_cnn`, medians of pairs.

    A first, short federation pays for setting up. side: four times the pixels, one pair.
    """
    base: dict[str, Any] = {**BASE, "rounds": rounds, "family": "fedavg_cnn"}
    doubled = {name: {**base, name: 2 * base[name]} for name in DOUBLED}
    _seconds(**{**base, "rounds": 1})
    pairs = [{name: (_seconds(**base), _seconds(**more)) for name, more in doubled.items()} for _ in range(repeats)]
    larger = _seconds(**{**base, "shape": (1, 56, 56)}) / _seconds(**base)
    return {name: median(pair[name][1] / pair[name][0] for pair in pairs) for name in doubled} | {"side": larger}


def memory_by_rounds(rounds: tuple[int, int] = (10, 40)) -> dict[str, float]:
    """Peak memory (MiB beyond the start) of a federation of few and of many rounds."""

    def grown(count: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            run: Callable[[], None] = lambda: federate(Path(folder), 4, 64, count, workers=1)  # noqa: E731
            return peak_growth_mb(run)

    return {f"rounds_{count}": grown(count) for count in rounds}


def view_memory(clients: int = 100, rounds: int = 1000, classes: int = 10, width: int = 512) -> dict[str, float]:
    """Memory that reading all entangled uploads takes, MiB, and the size of the numbers in them."""
    rng = np.random.default_rng(0)
    meta = {"system": "fedre", "form": "entangled", "mechanism": "RAP", "feature_width": width, "classes": classes}
    with tempfile.TemporaryDirectory() as name:
        for round_ in range(rounds):
            weights = rng.dirichlet(np.ones(classes), clients).astype(np.float32)
            values = rng.random((clients, width), dtype=np.float32)
            entries: Entries = {
                (client, round_): {"representation": values[client][None], "label_encoding": weights[client][None]}
                for client in range(clients)
            }
            write_entries(Path(name) / "uploads" / "entangled" / f"round-{round_:06d}.safetensors", entries, meta)
        held = peak_growth_mb(lambda: read_view(Path(name), "entangled"))
    numbers = 4 * clients * rounds * (width + classes) / 2**20
    return {"uploads": clients * rounds, "numbers_mb": numbers, "peak_mb": held, "beyond_mb": held - numbers}
