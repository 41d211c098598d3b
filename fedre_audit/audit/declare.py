"""Which rows the verdict may rest on: said before anything is scored, from configuration and class counts alone."""

from collections.abc import Mapping
from typing import Any

from attacks.base import ATTACKS
from fedre_audit.audit.units import CLASS_TARGET, PRIMARY, RETRIEVAL

COSTS = ("cheap", "medium", "heavy")
FEWEST_ROWS = 4
"""A client is tested on its own where it uploads at least this many rows."""


def declared_attacks(everywhere: list[str]) -> list[str]:
    """Of the attacks that run on every client and row, one per threat level: the costliest, then the last by name.

    Query-free ones (Q0) cannot be proven able, so the verdict rests on them only where there is nothing else.
    """
    best: dict[str, str] = {}
    able = [name for name in everywhere if ATTACKS[name].level != "Q0"] or everywhere
    for name in sorted(able, key=lambda name: (COSTS.index(ATTACKS[name].cost), name)):
        best[ATTACKS[name].level] = name
    return sorted(best.values())


def is_declared(row: Mapping[str, Any], declaration: Mapping[str, Any]) -> bool:
    """Whether the verdict may rest on a row: the longest stream in every slice, one round beside it whole alone."""
    whole = row["slice"] == "all"
    return (
        (whole or row["stream"] == declaration["stream"])
        and row["form"] == declaration["form"]
        and row["attack"] in declaration["attacks"]
        and (row["metric"], row["target"]) in (PRIMARY, RETRIEVAL, CLASS_TARGET)
        and row["slice"] in declaration["slices"]
    )
