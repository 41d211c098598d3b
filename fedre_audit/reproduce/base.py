"""The contract of a reproduction: a documented protocol that returns rows and pictures.

`reproduce.json` in the run folder holds them; `reproduce.html` is a pure function of it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from knowledge_forms.errors import AuditError
from knowledge_forms.registry import Registry
from knowledge_forms.store import write_bytes

SCHEMA_VERSION = 1
PRESETS = ("small", "full")


@dataclass(frozen=True)
class Row:
    """One figure. published, ours, floor: the same unit; None where there is none. difference = ours - published."""

    what: str
    setting: str
    ours: float | None
    published: float | None = None
    unit: str = ""
    ci95: tuple[float, float] | None = None
    floor: float | None = None
    note: str = ""

    @property
    def difference(self) -> float | None:
        """ours - published, None where either is missing."""
        return None if self.ours is None or self.published is None else self.ours - self.published


@dataclass(frozen=True)
class Outcome:
    """Rows, one paragraph that says what they show, and SVG pictures by title."""

    rows: Sequence[Row]
    reading: str
    pictures: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What is asked: preset small (minutes, 2 cores) or full (the published setting, CUDA), seeds, where to work."""

    preset: str
    out: Path
    seed: int
    device: str
    data_root: Path | None
    sweep: bool = False


@dataclass(frozen=True)
class Reproduction:
    """title and protocol: what the page says. run: measures."""

    title: str
    protocol: str
    run: Callable[[Request], Outcome]


REPRODUCTIONS: Registry[Reproduction] = Registry("reproduction", package="fedre_audit.reproduce")


def reproduce(name: str, request: Request) -> dict[str, Any]:
    """Run a reproduction, write `reproduce.json` into `request.out`, and return its content."""
    if request.preset not in PRESETS:
        raise AuditError(f"unknown preset '{request.preset}'; choose one of: {', '.join(PRESETS)}")
    chosen = REPRODUCTIONS[name]
    outcome = chosen.run(request)
    content = {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "title": chosen.title,
        "protocol": chosen.protocol,
        "preset": request.preset,
        "seed": request.seed,
        "rows": [{**asdict(row), "difference": row.difference} for row in outcome.rows],
        "reading": outcome.reading,
        "pictures": dict(outcome.pictures),
        "provenance": dict(outcome.provenance),
    }
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_bytes(request.out / "reproduce.json", text.encode())
    return content
