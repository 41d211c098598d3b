"""What attackers shown to work find in the very uploads that the published-like attack fails on."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedre_audit.audit.intervals import estimate
from fedre_audit.audit.scoring import SLICES
from fedre_audit.reproduce.base import Row
from reports.schema import load_scores

ATTACKER = "ridge"
SMALL_CLASSES = ("n1", "n2-5")
Pairs = list[tuple[float, int, int, int]]
"""Per image: gain over the floor in dB, upload row, client, images in the row."""


def audited(folder: Path, form: str) -> list[dict[str, Any]]:
    """The rows that count: PSNR of ridge against members, over all classes, by length of the stream."""
    wanted = {"form": form, "attack": ATTACKER, "metric": "psnr", "target": "members", "slice": "all"}
    rows: list[dict[str, Any]] = [dict(row) for row in load_scores(folder / "scores.json")["rows"]]
    return [row for row in rows if wanted.items() <= row.items() and "curve" not in row]


def pairs_of(folder: Path, form: str, stream: int, floor: str) -> Pairs:
    """Every image scored in that row, from scores.csv; `floor` names the best predictor that ignores the upload.

    An image whose reconstruction is not finite gives a gain that is not finite either.
    """
    wanted = {"form": form, "attack": ATTACKER, "stream": str(stream), "target": "members", "metric": "psnr"}
    with (folder / "scores.csv").open(newline="") as lines:
        return [
            (float(line["value"]) - float(line[floor]), int(line["row"]), int(line["client"]), int(line["members"]))
            for line in csv.DictReader(lines)
            if wanted.items() <= line.items()
        ]


def gain_row(what: str, parts: Sequence[Pairs], note: str) -> Row:
    """The mean gain over the floor with its t-interval over the clients of all seeds.

    Without a finite number to average, or with one that is not, nothing is claimed: NOT ASSESSED.
    """
    gain, row, client = (
        np.array([pair[i] + 1_000_000 * seed * (i > 0) for seed, own in enumerate(parts) for pair in own])
        for i in range(3)
    )
    if len(gain) == 0 or not np.isfinite(gain).all():
        return Row(what, "the same uploads", None, None, "dB", None, 0.0, f"NOT ASSESSED; {note}")
    found = estimate(gain, row.astype(np.int64), client.astype(np.int64))
    rows = len(np.unique(row))
    over = f"{found.clusters} clients of {len(parts)} seeds" if found.unit == "client" else f"{rows} upload rows"
    return Row(what, "the same uploads", found.value, None, "dB", found.ci95, 0.0, f"interval over {over}; {note}")


def competent_rows(seeds: Sequence[Mapping[str, Path]]) -> list[Row]:
    """Rows of raw, prototype, one entangled upload and the stream; seeds: run folder by form, one mapping a seed.

    Only seeds where the audit calls the attacker validated on that row count; the note says on how many.
    """
    found = []
    for form in ("raw", "prototype", "entangled"):
        parts = validated(seeds, form, stream=False)
        note = f"validated on {len(parts)} of {len(seeds)} seeds"
        found.append(gain_row(f"{form}, ridge, gain over the floor, one upload", parts, note))
    parts = validated(seeds, "entangled", stream=True)
    note = f"clients whose unmixing was validated, on {len(parts)} of {len(seeds)} seeds"
    for name, keep in (("all classes", tuple(SLICES)), ("classes of at most five images", SMALL_CLASSES)):
        kept = [[pair for pair in own if _slice(pair[3]) in keep] for own in parts]
        what = f"entangled, ridge on the unmixed stream, gain over the floor, {name}"
        found.append(gain_row(what, kept, note))
    return found


def validated(seeds: Sequence[Mapping[str, Path]], form: str, *, stream: bool) -> list[Pairs]:
    """The pairs of each seed whose row is validated: of one upload, or of the longest stream."""
    found = []
    for folders in seeds:
        rows = [row for row in audited(folders[form], form) if (row["stream"] > 1) == stream]
        row = max(rows, key=lambda row: int(row["stream"]), default=None)
        if row is not None and row["status"] == "ok":
            found.append(pairs_of(folders[form], form, row["stream"], str(row["best_floor"])))
    return found


def _slice(members: int) -> str:
    return next(name for name, (low, high) in SLICES.items() if low <= members <= high)
