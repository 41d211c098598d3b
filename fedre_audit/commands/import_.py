"""`audit import PATH --out DIR`: client data of a federated library as truth to score with."""

from collections.abc import Sequence
from pathlib import Path

from fedre_audit.foreign.npz import import_folder
from knowledge_forms.errors import AuditError


def path_and_out(command: str, arguments: Sequence[str]) -> tuple[Path, Path]:
    """The two paths of `PATH --out DIR`; AuditError where they are not given, or DIR holds something."""
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--out=") else [word])]
    if len(words) != 3 or "--out" not in words[:2]:
        raise AuditError(f"usage: audit {command} PATH --out DIR")
    at = words.index("--out")
    out = Path(words[at + 1])
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise AuditError(f"{out} exists and is not empty; choose another --out")
    return Path(words[0] if at == 1 else words[2]), out


def run(command: str, arguments: Sequence[str]) -> int:
    """Import, say what was done to each client's images."""
    folder, out = path_and_out(command, arguments)
    for line in import_folder(folder, out):
        print(line)
    print(f"truth: {out} (private images: keep it to yourself)")
    return 0
