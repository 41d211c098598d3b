"""`audit export RUN --out DIR`: the uploads of a run without any truth."""

from collections.abc import Sequence

from fedre_audit.commands.import_ import path_and_out
from fedre_audit.foreign.export import export


def run(command: str, arguments: Sequence[str]) -> int:
    """Export, say what was copied and what was left out."""
    source, out = path_and_out(command, arguments)
    for line in export(source, out):
        print(line)
    print(f"uploads: {out}")
    return 0
