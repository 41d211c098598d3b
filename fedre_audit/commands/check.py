"""`audit check FILES|FOLDERS`: is what was recorded readable, whole and sane? NumPy alone, no torch."""

from collections.abc import Sequence
from pathlib import Path

from knowledge_forms.check import BROADCAST, Checked, check
from knowledge_forms.errors import AuditError


def summary(checked: Checked) -> list[str]:
    """What there is, a line a form."""
    lines = []
    for form, entries in sorted(checked.entries.items()):
        clients, rounds = {client for client, _ in entries}, {round_ for _, round_ in entries}
        who = "" if form == BROADCAST else f" of {len(clients)} clients"
        lines.append(f"{form}: {len(entries)} entries{who}, {len(rounds)} rounds ({min(rounds)} to {max(rounds)})")
    return lines


def run(command: str, arguments: Sequence[str]) -> int:
    """Print what there is, notes and every problem; 0 where there is no problem, else 2."""
    if not arguments or any(word.startswith("-") for word in arguments):
        raise AuditError("usage: audit check PATH ..., where PATH is a file of uploads, a folder of them or a run")
    checked = check([Path(word) for word in arguments])
    for line in summary(checked):
        print(line)
    for note in checked.notes:
        print(f"note: {note}")
    for problem in checked.problems:
        print(f"problem: {problem}")
    print(f"{checked.files} files checked, {len(checked.problems)} problems")
    return 2 if checked.problems else 0
