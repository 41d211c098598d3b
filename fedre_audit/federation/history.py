"""The federation's diary: one row a round, in memory and in `history.jsonl`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from knowledge_forms.errors import AuditError
from knowledge_forms.store import write_bytes


def mean_accuracy(correct: Sequence[int], counts: Sequence[int]) -> dict[str, Any]:
    """Correct and test images per client -> accuracy per client (None without test images) and both means.

    weighted: over test images, as published. unweighted: over clients.

    >>> mean_accuracy([1, 6, 0], [2, 8, 0])
    {'accuracy': [0.5, 0.75, None], 'weighted': 0.7, 'unweighted': 0.625}
    """
    each = [hits / n if n else None for hits, n in zip(correct, counts, strict=True)]
    known = [value for value in each if value is not None]
    return {
        "accuracy": each,
        "weighted": sum(correct) / sum(counts) if known else None,
        "unweighted": sum(known) / len(known) if known else None,
    }


@dataclass
class History:
    """Rows by round: `round`, `accuracy` (per client), `weighted`, `unweighted`, `train_loss` (per client),
    `server_loss` (mean per upload row; null where the server has no step) and `traffic` of the audited form."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def accuracy(self) -> dict[str, dict[str, float | None]]:
        """{"last": {"weighted", "unweighted"}, "best": ...}; best is the maximum over rounds, chosen on test data."""
        means = ("weighted", "unweighted")
        columns = {name: [row[name] for row in self.rows if row[name] is not None] for name in means}
        return {
            "last": {name: columns[name][-1] if columns[name] else None for name in means},
            "best": {name: max(columns[name], default=None) for name in means},
        }

    def write(self, path: Path) -> None:
        """All rows so far to one JSON-lines file, atomically."""
        write_bytes(path, "".join(json.dumps(row) + "\n" for row in self.rows).encode())


def read_history(path: Path, rounds: int) -> History:
    """The first `rounds` rows of a history file; raises AuditError where they are not all there."""
    lines = path.read_text().splitlines()[:rounds] if path.is_file() else []
    rows = [json.loads(line) for line in lines]
    if [row["round"] for row in rows] != list(range(rounds)):
        raise AuditError(f"{path} does not hold rounds 0 to {rounds - 1}; remove the run folder and start again")
    return History(rows)
