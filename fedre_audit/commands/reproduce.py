"""`audit reproduce WHAT`: a published table beside ours, with its protocol, floors and a page."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from knowledge_forms.errors import AuditError

USAGE = "audit reproduce WHAT [--preset small|full] [--out DIR] [--seed N] [--device D] [--data-root DIR] [--sweep]"


class Parser(argparse.ArgumentParser):
    """Raises instead of exiting, so that every command fails alike."""

    def error(self, message: str) -> "None":  # type: ignore[override]
        raise AuditError(f"{message}; usage: {USAGE}")


def run(command: str, arguments: Sequence[str]) -> int:
    """Parse, measure, write reproduce.json and reproduce.html, print the rows."""
    parser = Parser(prog="audit reproduce", usage=USAGE)
    parser.add_argument("what")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--out", default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--sweep", action="store_true")
    asked = parser.parse_args(list(arguments))

    from fedre_audit.reproduce.base import Request, reproduce
    from reports.reproduction import write_page_of

    out = Path(asked.out or f"runs/reproduce-{asked.what}-{asked.preset}")
    root = Path(asked.data_root) if asked.data_root else None
    content = reproduce(asked.what, Request(asked.preset, out, asked.seed, asked.device, root, asked.sweep))
    for row in content["rows"]:
        shown = {key: "-" if row[key] is None else f"{row[key]:.2f}" for key in ("published", "ours", "floor")}
        interval = "" if row["ci95"] is None else f" [{row['ci95'][0]:.2f}, {row['ci95'][1]:.2f}]"
        print(
            f"{row['what']:<44} published {shown['published']:>9}  ours {shown['ours']:>9}{interval} {row['unit']}"
            f"  floor {shown['floor']}"
        )
    print(content["reading"])
    print(f"report: {write_page_of(out)}")
    return 0
