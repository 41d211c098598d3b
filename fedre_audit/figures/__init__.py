"""Heavy acceptance figures, a file each: `make figures` measures them into results/NAME.json.

A figure names the source files its numbers depend on. The result stores their fingerprint (of the code, not of
comments or layout), and a test compares it with today's, so a stale number cannot stay unseen.
"""

import ast
import hashlib
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from knowledge_forms.registry import Registry
from knowledge_forms.store import write_bytes

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"


@dataclass(frozen=True)
class Figure:
    """measure: returns JSON-able values. sources: files (relative to the repository) that decide them."""

    measure: Callable[[], dict[str, Any]]
    sources: tuple[str, ...]


FIGURES: Registry[Figure] = Registry("figure", package="fedre_audit.figures")


def fingerprint(sources: Sequence[str]) -> str:
    """SHA-256 of the syntax trees of the sources without docstrings: comments and layout do not count."""
    digest = hashlib.sha256()
    for source in sources:
        tree = ast.parse((ROOT / source).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
                first = body[0].value
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    body.pop(0)
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()


def measure(name: str) -> Path:
    """Measure one figure and store it with what made it; returns the path of results/NAME.json."""
    figure = FIGURES[name]
    values = figure.measure()
    stored = {
        "figure": name,
        "command": f"make figures FIGURES={name}",
        "sources": list(figure.sources),
        "fingerprint": fingerprint(figure.sources),
        "versions": {"python": platform.python_version(), **{p: version(p) for p in ("torch", "numpy", "scipy")}},
        "hardware": {"processor": platform.machine(), "cuda": torch.cuda.is_available()},
        "values": values,
    }
    path = RESULTS / f"{name}.json"
    write_bytes(path, (json.dumps(stored, indent=1, allow_nan=False) + "\n").encode())
    return path
