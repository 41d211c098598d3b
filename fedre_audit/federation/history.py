"""The federation's diary: one row a round, in memory and in `history.jsonl`."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from knowledge_forms.errors import AuditError
from knowledge_forms.store import write_bytes

FILE = "history.jsonl"


def mean_accuracy(correct: Sequence[int], counts: Sequence[int]) -> dict[str, Any]:
    """Correct and test images per client -> accuracy per client (None without test images) and both means.

    weighted: over test images, as published. unweighted: over clients.

    >>> mean_accuracy([1, 6, 0], [2, 8, 0])
    {'clients': [0.5, 0.75, None], 'weighted': 0.7, 'unweighted': 0.625}
    """
    each = [hits / n if n else None for hits, n in zip(correct, counts, strict=True)]
    known = [value for value in each if value is not None]
    return {
        "clients": each,
        "weighted": sum(correct) / sum(counts) if known else None,
        "unweighted": sum(known) / len(known) if known else None,
    }


@dataclass
class History:
    """Rows by round: `round`, `participants` (client ids), `accuracy` (`clients`, `weighted`, `unweighted`),
    `train_loss` (per client, null where absent), `server_loss` (mean per upload row; null where the server has no
    step), `collapsed` (participants whose encoder answers every image alike) and `traffic` of the audited form."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def accuracy(self) -> dict[str, dict[str, float | None]]:
        """{"last": {"weighted", "unweighted"}, "best": ...}; best is the maximum over rounds, chosen on test data."""
        means = ("weighted", "unweighted")
        columns = {
            name: [row["accuracy"][name] for row in self.rows if row["accuracy"][name] is not None] for name in means
        }
        return {
            "last": {name: columns[name][-1] if columns[name] else None for name in means},
            "best": {name: max(columns[name], default=None) for name in means},
        }

    def collapsed(self) -> list[int]:
        """Clients whose encoder answered every image alike when they last took part, ascending."""
        newest: dict[int, bool] = {}
        for row in self.rows:
            newest |= {client: client in row["collapsed"] for client in row["participants"]}
        return sorted(client for client, flat in newest.items() if flat)

    def write(self, run_dir: Path) -> None:
        """All rows to `history.jsonl`, atomically."""
        write_bytes(run_dir / FILE, "".join(map(_line, self.rows)).encode())

    def append(self, run_dir: Path, row: dict[str, Any]) -> None:
        """One more row, at the end of the file too: a thousand rounds cost a thousand lines."""
        path = run_dir / FILE
        try:
            with path.open("ab") as stream:
                stream.write(_line(row).encode())
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise AuditError(f"cannot write {path} ({error.strerror}); free space, then start again") from error
        self.rows.append(row)


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row) + "\n"


def read_history(run_dir: Path) -> History:
    """The diary of a run folder; raises AuditError where it is missing or not rounds 0, 1, 2, ...

    A last line without its end was cut off while being written, and is left out.
    """
    path = run_dir / FILE
    try:
        lines = path.read_text().split("\n")[:-1] if path.is_file() else []
        rows = [json.loads(line) for line in lines]
    except ValueError as error:
        raise AuditError(f"{path} is not a JSON object a line ({error}); train again") from error
    if not rows or [row.get("round") if isinstance(row, dict) else None for row in rows] != list(range(len(rows))):
        raise AuditError(f"{path} is missing or lacks rounds; remove the run folder and start again")
    return History(rows)
