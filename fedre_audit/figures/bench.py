"""Speed and memory of the engine on the machine that measured them (see `hardware` and `machine`)."""

from typing import Any

from fedre_audit.bench.__main__ import run
from fedre_audit.figures import FIGURES, Figure

SOURCES = (
    "fedre_audit/bench/federation.py",
    "fedre_audit/bench/naive.py",
    "fedre_audit/bench/measure.py",
    "fedre_audit/federation/client.py",
    "fedre_audit/federation/local.py",
    "fedre_audit/models/single_position.py",
    "fedre_audit/workers.py",
    "fedre_audit/bench/attacks.py",
    "fedre_audit/bench/scaling.py",
    "attacks/decoder.py",
)


RECORDED = ("ceilings", "round", "resnet18_b32", "resnet18_b128", "decoder", "unmixing", "doubling", "view_memory",
            "default_audit", "help_seconds")  # fmt: skip
"""What is kept under results/; `make bench` measures every section."""


def measure() -> dict[str, Any]:
    """The recorded sections, medians of five."""
    return run(RECORDED, repeats=5)


FIGURES.register("bench")(Figure(measure, SOURCES))
