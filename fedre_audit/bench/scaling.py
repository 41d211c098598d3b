"""How time and memory grow with clients, rounds, images and image size."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedre_audit.bench.federation import federate
from fedre_audit.bench.measure import Paced, in_turns, peak_growth_mb, spread
from fedre_audit.federation.view import read_view
from knowledge_forms.store import Entries, write_entries

BASE = {"clients": 4, "images": 320, "rounds": 20}
"""Whole batches of 32: with 300 images, twice the images would be 19 steps instead of 10."""
DOUBLED = ("clients", "images", "rounds")


def _paced(turn: int = 1, **options: Any) -> Paced:
    """A federation that pauses after every `turn` rounds."""

    def work(pause: Callable[[], None]) -> None:
        def on_round(row: dict[str, Any]) -> None:
            if (row["round"] + 1) % turn == 0:
                pause()

        with tempfile.TemporaryDirectory() as folder:
            federate(Path(folder), on_round=on_round, **options)

    return work


def growth(base: dict[str, Any], changed: dict[str, Any]) -> float:
    """By what factor a federation's time changes with some options; the two take turns, both ending together."""
    turn = changed["rounds"] // base["rounds"]
    usual, other = in_turns([_paced(**base), _paced(turn, **changed)])
    return other / usual


def doubling(repeats: int, rounds: int = BASE["rounds"]) -> dict[str, dict[str, float]]:
    """By what factor a federation's time grows when one quantity doubles; family `fedavg_cnn`, medians of pairs.

    A first, short federation pays for setting up. side: four times the pixels, one pair.
    """
    base: dict[str, Any] = {**BASE, "rounds": rounds, "family": "fedavg_cnn"}
    with tempfile.TemporaryDirectory() as folder:
        federate(Path(folder), **{**base, "rounds": 1})
    pairs = [{name: growth(base, {**base, name: 2 * base[name]}) for name in DOUBLED} for _ in range(repeats)]
    found = {name: spread([pair[name] for pair in pairs]) for name in DOUBLED}
    return found | {"side": spread([growth(base, {**base, "shape": (1, 56, 56)})])}


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
