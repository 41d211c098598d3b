"""`audit index DIR`: one page over many runs."""

from collections.abc import Sequence
from pathlib import Path

from knowledge_forms.errors import AuditError
from reports.index import write_index


def run(command: str, arguments: Sequence[str]) -> int:
    """Write index.html into the one folder named."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        raise AuditError("usage: audit index DIR, where DIR holds run folders, for instance runs")
    path, count = write_index(Path(arguments[0]))
    print(f"index of {count} runs: {path}")
    return 0
