"""`python -m fedre_audit.bench [--json FILE] [--repeats N] [--only SECTION ...]`: measure this machine."""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from fedre_audit.bench.attacks import attack_costs, decoder_share, unmixing_seconds
from fedre_audit.bench.audits import default_audit, start_seconds
from fedre_audit.bench.ceilings import ceilings
from fedre_audit.bench.federation import local_training, pilot_round, resnet_share
from fedre_audit.bench.measure import machine
from fedre_audit.bench.scaling import doubling, memory_by_rounds, view_memory
from knowledge_forms.store import write_bytes

SECTIONS: dict[str, Callable[[int], Any]] = {
    "ceilings": lambda repeats: ceilings(),
    "round": pilot_round,
    "resnet18_b32": lambda repeats: resnet_share(32, repeats),
    "resnet18_b128": lambda repeats: resnet_share(128, repeats),
    "decoder": decoder_share,
    "local_training": lambda repeats: local_training(),
    "attacks": lambda repeats: attack_costs(),
    "unmixing": lambda repeats: unmixing_seconds(),
    "doubling": doubling,
    "memory": lambda repeats: memory_by_rounds(),
    "view_memory": lambda repeats: view_memory(),
    "default_audit": lambda repeats: default_audit(),
    "help_seconds": lambda repeats: start_seconds(),
}
HEADLINES = {
    "federation_round_ratio_to_naive": ("round", "ratio_to_naive"),
    "naive_to_official": ("round", "naive_to_official"),
    "resnet18_b32_share_of_bf16_peak": ("resnet18_b32", "share"),
    "resnet18_b128_share_of_bf16_peak": ("resnet18_b128", "share"),
    "decoder_share_of_bf16_peak": ("decoder", "share"),
    "unmixing_seconds": ("unmixing", "seconds"),
    "default_audit_seconds": ("default_audit", "seconds"),
    "view_memory_beyond_mb": ("view_memory", "beyond_mb"),
}


def run(
    sections: Sequence[str] = tuple(SECTIONS),
    *,
    repeats: int = 5,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Measure the sections; headline figures first, then each section whole, then the machine."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for name in sections:
        found[name] = SECTIONS[name](repeats)
        for line in table(name, found[name]):
            say(line)
    headlines = {key: found[part][value] for key, (part, value) in HEADLINES.items() if part in found}
    return {**headlines, **found, "machine": machine()}


def table(name: str, value: Any) -> list[str]:
    """A result as aligned lines: one for a number, one a key for a mapping.

    >>> [line.split() for line in table("round", {"seconds": 1.25, "parts": {"a": 2e9}})]
    [['round.seconds', '1.25'], ['round.parts.a', '2.00', 'G']]
    """
    if isinstance(value, dict):
        return [line for key, inner in value.items() for line in table(f"{name}.{key}", inner)]
    if isinstance(value, float):
        value = f"{value / 1e9:.2f} G" if value >= 1e8 else f"{value:,.1f}" if value >= 100 else f"{value:.3g}"
    return [f"{name:<44} {value!s:>12}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m fedre_audit.bench", description=__doc__)
    parser.add_argument("--json", type=Path, help="write everything here")
    parser.add_argument("--repeats", type=int, default=5, help="repeats of each ratio; the median counts")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="measure these only")
    options = parser.parse_args(arguments)
    found = run(options.only, repeats=options.repeats, say=lambda line: print(line, flush=True))
    if options.json:
        write_bytes(options.json, (json.dumps(found, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
