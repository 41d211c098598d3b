"""`audit reproduce WHAT`: a published table beside ours, with its protocol, floors and a page."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from knowledge_forms.errors import AuditError

USAGE = "audit reproduce WHAT [--preset small|full] [--out DIR] [--seed N] [--device D] [--data-root DIR] [--sweep]"

DEVICES = ("auto", "cpu", "cuda")
OWN: list[tuple[str, dict[str, Any]]] = [
    ("--preset", {"default": "small", "metavar": "small|full",
                  "help": "small (default): minutes on 2 cores; full: the published setting, for CUDA"}),
    ("--out", {"default": None, "metavar": "DIR", "help": "run folder (default runs/reproduce-WHAT-PRESET)"}),
    ("--seed", {"type": int, "default": 0, "metavar": "N", "help": "the first seed (default 0)"}),
    ("--device", {"default": "auto", "choices": DEVICES, "metavar": "auto|cpu|cuda", "help": "where to compute"}),
    ("--data-root", {"default": None, "metavar": "DIR",
                     "help": "where data sets are found (default $FEDRE_AUDIT_DATA, else ~/.cache/fedre-audit)"}),
    ("--sweep", {"action": "store_true", "help": "privacy alone: over settings of the attack, as far as it goes"}),
]  # fmt: skip
"""Options, as name and settings of `add_argument`."""


class Parser(argparse.ArgumentParser):
    """Raises instead of exiting, so that every command fails alike."""

    def error(self, message: str) -> "None":  # type: ignore[override]
        raise AuditError(f"{message}; usage: {USAGE}")


def run(command: str, arguments: Sequence[str]) -> int:
    """Parse, measure, write reproduce.json and reproduce.html, print the rows."""
    parser = Parser(prog="audit reproduce", usage=USAGE)
    parser.add_argument("what")
    for name, settings in OWN:
        parser.add_argument(name, **settings)
    asked = parser.parse_args(list(arguments))

    from fedre_audit.progress import beat
    from fedre_audit.reproduce.base import REPRODUCTIONS, Request, reproduce
    from reports.reproduction import write_page_of

    out = Path(asked.out or f"runs/reproduce-{asked.what}-{asked.preset}")
    root = Path(asked.data_root) if asked.data_root else None
    request = Request(asked.preset, out, asked.seed, asked.device, root, asked.sweep)
    cost = "minutes on 2 cores" if asked.preset == "small" else "the published setting, for CUDA"
    print(f"plan: {asked.what} ({REPRODUCTIONS[asked.what].title}), preset {asked.preset}: {cost}; into {out}",
          file=sys.stderr, flush=True)  # fmt: skip
    with beat(f"reproduce {asked.what}"):
        content = reproduce(asked.what, request)
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
