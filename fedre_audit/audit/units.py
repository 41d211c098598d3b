"""What the verdict tests: declared rows by unit, their p-values, and their shares of the level.

Two families of one-sided tests, each Holm-corrected over the declared units (an attack, a stream length, a slice).
A conjunction is tested by its largest p-value. Source: Holm 1979, Scand. J. Statist. 6(2):65-70.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

Unit = tuple[str, int, str]
"""Attack, stream length, slice."""
Rows = Mapping[tuple[str, str], Mapping[str, Any]]
"""The declared rows of a unit, by metric and target."""
WEIGHTS = {"all": 4.0, "n1": 4.0, "n2-5": 4.0}
"""Shares of the level on the longest stream; every other slice has 1, and all single clients together have 1."""
PRIMARY = ("psnr", "members")
RETRIEVAL = ("retrieval_top1", "members")
CLASS_TARGET = ("psnr", "class_mean")
CLASS_WAYS = {PRIMARY: "mean_image", CLASS_TARGET: "best"}
"""The rows that can carry the class level, and the floor that each must beat."""


def holm(p_values: Mapping[Any, float], weights: Mapping[Any, float] | None = None, alpha: float = 0.05) -> set[Any]:
    """Keys whose hypothesis is rejected by Holm's step-down procedure at family-wise level `alpha`.

    weights: shares of the level, fixed beforehand (default: all equal).

    >>> sorted(holm({"a": 0.01, "b": 0.03, "c": 0.04}))
    ['a']
    >>> sorted(holm({"a": 0.03, "b": 0.04}, {"a": 9, "b": 1}))
    ['a', 'b']
    """
    weight = {key: 1.0 if weights is None else weights[key] for key in p_values}
    rejected: set[Any] = set()
    left = sum(weight.values())
    for key in sorted(p_values, key=lambda key: p_values[key] / weight[key]):
        if p_values[key] > alpha * weight[key] / left:
            break
        rejected.add(key)
        left -= weight[key]
    return rejected


def weights_of(units: Collection[Unit]) -> dict[Unit, float]:
    """Shares of the level by unit: most of it goes where leaks are known to be, the whole and the tiny classes."""
    clients = sum(unit[2].startswith("client ") for unit in units)
    longest = max((unit[1] for unit in units), default=1)
    return {
        unit: WEIGHTS[unit[2]] if unit[1] == longest and unit[2] in WEIGHTS
        else 1.0 / clients if unit[2].startswith("client ") else 1.0
        for unit in units
    }  # fmt: skip


def unit_of(row: Mapping[str, Any]) -> Unit:
    """What a hypothesis is about: attack, stream length, slice."""
    return row["attack"], row["stream"], row["slice"]


def declared(scores: Mapping[str, Any]) -> dict[Unit, Rows]:
    """The declared rows of the audited form, by unit, then by metric and target."""
    units: dict[Unit, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in scores["rows"]:
        if row["headline"]:
            units.setdefault(unit_of(row), {})[row["metric"], row["target"]] = row
    return {**units}


def _largest(*p_values: float | None) -> float | None:
    known = [p for p in p_values if p is not None and math.isfinite(p)]
    return max(known) if len(known) == len(p_values) else None


def class_ps(rows: Rows) -> dict[tuple[str, str], float]:
    """p-values of the two ways to meet the class-level rule of one unit, by the row they rest on."""
    found = {}
    for key, floor in CLASS_WAYS.items():
        row = rows.get(key)
        if row is not None and row["status"] == "ok":
            p = _largest(row["gain"][floor]["p"], row["gain"]["permuted"]["p"])
            if p is not None:
                found[key] = p
    return found


def class_p(rows: Rows) -> float | None:
    """p-value of the class-level rule of one unit; the two ways to meet it share the level (Bonferroni)."""
    found = class_ps(rows)
    return min(1.0, len(found) * min(found.values())) if found else None


def class_way(rows: Rows) -> tuple[Mapping[str, Any], str]:
    """The row that carries the class level of one unit, by the smaller p-value, and the floor that it is held to.

    rows: of a unit that has a `class_p`.
    """
    ways = class_ps(rows)
    key = min(ways, key=lambda way: ways[way])
    return rows[key], CLASS_WAYS[key]


def sample_p(rows: Rows) -> float | None:
    """p-value of the sample-level rule of one unit; None where it cannot be judged."""
    image, pick = rows.get(PRIMARY), rows.get(RETRIEVAL)
    if image is None or pick is None or image["status"] != "ok" or pick["status"] != "ok":
        return None
    return _largest(*(row["gain"][floor]["p"] for row in (image, pick) for floor in ("best", "permuted")))


def pick_p(rows: Rows) -> float | None:
    """p-value of picking images out alone: retrieval above chance and the permuted upload; None where not judged."""
    pick = rows.get(RETRIEVAL)
    if pick is None or pick["status"] != "ok":
        return None
    return _largest(pick["gain"]["best"]["p"], pick["gain"]["permuted"]["p"])


def name_of(unit: Unit) -> str:
    """A unit in words.

    >>> name_of(("ridge", 60, "n1"))
    'ridge on 60 rounds, slice n1'
    """
    attack, stream, part = unit
    rounds = "one round" if stream == 1 else f"{stream} rounds"
    return f"{attack} on {rounds}, slice {part}"
