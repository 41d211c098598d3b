"""Every reproduction at preset small, seed 0: what `docs/reproduction.md` is written from."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fedre_audit.figures import FIGURES, Figure
from fedre_audit.reproduce.base import Request, reproduce
from fedre_audit.reproduce.sweep import sweep

T = TypeVar("T")
SHARED = ("fedre_audit/reproduce/base.py",)
SOURCES = {
    "accuracy": ("fedre_audit/federation/server.py", "fedre_audit/data/partition.py"),
    "communication": ("knowledge_forms/traffic.py", "fedre_audit/data/partition.py"),
    "mechanisms": ("knowledge_forms/entangled.py", "attacks/ridge.py"),
    "overhead": ("knowledge_forms/entangled.py",),
    "privacy": (
        "fedre_audit/reproduce/pixel_attack.py",
        "fedre_audit/reproduce/competent.py",
        "attacks/optimisation.py",
        "attacks/ridge.py",
    ),
    "toy": ("fedre_audit/federation/server.py",),
}


def in_folder(work: Callable[[Path], T]) -> T:
    """`work` in a temporary folder, or in $FEDRE_AUDIT_WORK where that is set: there it resumes."""
    with tempfile.TemporaryDirectory() as folder:
        return work(Path(os.environ.get("FEDRE_AUDIT_WORK") or folder))


def measure(name: str) -> Callable[[], dict[str, Any]]:
    """A function that runs one reproduction, in a temporary folder or below $FEDRE_AUDIT_WORK, where it resumes."""

    return lambda: in_folder(lambda folder: reproduce(name, Request("small", folder / name, 0, "auto", None)))


def measure_sweep() -> dict[str, Any]:
    """The sweep of the published-like attack on the tuning seed."""
    settings = in_folder(lambda folder: sweep(Request("small", folder / "privacy", 0, "auto", None)))
    return {"tuning_seed": 0, "settings": settings}


for _name, _sources in SOURCES.items():
    FIGURES.register(f"reproduce_{_name}")(
        Figure(measure(_name), (*SHARED, f"fedre_audit/reproduce/{_name}.py", *_sources))
    )
FIGURES.register("privacy_sweep")(
    Figure(
        measure_sweep,
        ("fedre_audit/reproduce/sweep.py", "fedre_audit/reproduce/pixel_attack.py", "attacks/optimisation.py"),
    )
)
