"""What would lower the leak, of what was measured in one audit or one comparison. Nothing here is a promise.

A row that is not validated does not count: neither as the leak before a change nor as the leak after it.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from fedre_audit.audit.intervals import MIN_CLIENTS
from fedre_audit.audit.metrics import sign_of
from fedre_audit.audit.paired import difference, gains_by_client
from fedre_audit.audit.rows import FormAttack
from fedre_audit.audit.scoring import ATTACK, PairScores, join, slices
from fedre_audit.stages.curves import Part, groups_of

Row = Mapping[str, Any]
Values = dict[int, float]
ValuesOf = Callable[[Row], Values]
WATCHED = ("psnr", "retrieval_top1")
OVER_FLOOR = {"psnr": "dB over guessing", "retrieval_top1": "above chance"}
TINY = {"n1": "of 1 image", "n2-5": "of 2–5 images"}
LARGE = "n20+"


def counts(row: Row, form: str, metric: str) -> bool:
    """Whether a row may speak: of this form and metric, on every contributing image, validated, with a value."""
    same = (row["form"], row["metric"], row["target"], row["status"]) == (form, metric, "members", "ok")
    return same and row["value"] is not None


def source(row: Row) -> str:
    """The attacker behind a row, and what it saw.

    >>> source({"attack": "ridge", "stream": 1}), source({"attack": "ridge", "stream": 60})
    ('ridge, one round', 'ridge, 60 rounds unmixed')
    """
    return f"{row['attack']}, " + ("one round" if row["stream"] == 1 else f"{row['stream']} rounds unmixed")


def fewer_rounds(rows: Sequence[Row], form: str, gains: ValuesOf) -> list[dict[str, Any]]:
    """The leak of shorter streams beside that of the whole stream, most rounds first."""
    found = []
    for metric in WATCHED:
        overall = [row for row in rows if counts(row, form, metric) and row["slice"] == "all"]
        points = [row for row in overall if row.get("curve") == "rounds"]
        for point in sorted(points, key=lambda row: -row["stream"]):
            for whole in overall:
                if "curve" not in whole and whole["attack"] == point["attack"] and whole["stream"] > point["stream"]:
                    change = f"Upload in {point['stream']} rounds instead of {whole['stream']}"
                    note = f"{whole['attack']} on the unmixed stream; the same images"
                    found.append(paired(change, metric, OVER_FLOOR[metric], gains(whole), gains(point), note))
    return [one for one in found if one is not None]


def without_tiny_classes(rows: Sequence[Row], form: str, gains: ValuesOf) -> list[dict[str, Any]]:
    """The leak of images of tiny classes beside that of classes of 20 images or more of the same clients.

    Of attackers and streams the one that gains most on the tiny classes. Where none gains there is nothing to lower.
    """
    found = []
    for metric in WATCHED:
        own = [
            row for row in rows
            if counts(row, form, metric) and "curve" not in row and row["gain"]["best"] is not None
            and row["gain"]["best"]["value"] is not None
        ]  # fmt: skip
        large = {(row["attack"], row["stream"]): row for row in own if row["slice"] == LARGE}
        for part, words in TINY.items():
            tiny = [row for row in own if row["slice"] == part and (row["attack"], row["stream"]) in large]
            worst = max(tiny, key=lambda row: row["gain"]["best"]["value"], default=None)
            if worst is not None and worst["gain"]["best"]["value"] > 0:
                left = large[worst["attack"], worst["stream"]]
                remade = "; mixtures were not made anew without them" if form == "entangled" else ""
                note = f"what classes of 20 images or more leak instead; {source(worst)}{remade}"
                change = f"Leave out classes {words}"
                found.append(paired(change, metric, OVER_FLOOR[metric], gains(worst), gains(left), note))
    return [one for one in found if one is not None]


def gains_of(tables: Sequence[FormAttack], parts: list[Part]) -> ValuesOf:
    """Finds what is behind a row: client -> mean gain over the row's best floor. parts: of the curves."""
    groups = groups_of(parts)

    def table_of(row: Row) -> PairScores:
        if "curve" in row:
            own = next(
                group for (form, point, metric), group in groups.items()
                if (form, point.axis, metric, group[0].meta["stream"])
                == (row["form"], row["curve"], row["metric"], row["stream"])
            )  # fmt: skip
            return join([part.table for part in own])
        return next(
            scored.table for scored in tables
            if all(getattr(scored, key) == row[key] for key in ("form", "attack", "stream", "target"))
            and row["metric"] in scored.table.values[ATTACK]
        )  # fmt: skip

    return lambda row: gains_by_client(slices(table_of(row))[row["slice"]], row["metric"], row["best_floor"])


def of_run(rows: Sequence[Row], form: str, gains: ValuesOf) -> list[dict[str, Any]]:
    """Entries of `lowering` in scores.json, from the rows of one audit, by metric. gains: see gains_of.

    All numbers are gains over the best floor, means over the clients that have both sides.
    """
    found = [*fewer_rounds(rows, form, gains), *without_tiny_classes(rows, form, gains)]
    return sorted(found, key=lambda one: WATCHED.index(one["metric"]))


def strongest(rows: Sequence[Row], form: str, metric: str) -> Row | None:
    """Of validated rows over all classes the one that gains most on guessing, over attackers and streams, or None.

    Rows of enough clients for an interval go first: a stream validated for one client says nothing of the others.
    """
    own = [row for row in rows if counts(row, form, metric) and row["slice"] == "all" and "curve" not in row]

    def leak(row: Row) -> tuple[bool, float, float]:
        gain = (row["gain"]["best"] or {"value": None})["value"]
        return row["n_clusters"] >= MIN_CLIENTS, -inf if gain is None else gain, sign_of(metric) * row["value"]

    return max(own, key=leak, default=None)


def words_for(arm: str) -> str:
    """An arm of a comparison as a change.

    >>> words_for("raw"), words_for("entangled:RAP:fixed")
    ('Send every representation (raw)', 'Mix by RAP with fixed weights')
    """
    form, *rest = arm.split(":")
    if form == "entangled":
        return f"Mix by {rest[0] if rest else 'RAP'}" + (" with fixed weights" if rest[1:] else "")
    return {"raw": "Send every representation (raw)", "prototype": "Send class prototypes"}.get(form, f"Send {form}")


def reference_of(arms: Sequence[Mapping[str, Any]], wanted: str) -> str:
    """The arm that changes are held against: the wanted one; where it was not assessed, the leakiest that was."""
    assessed = {arm["name"]: arm for arm in arms if arm["verdict"]["level"] != "NOT_ASSESSED"}
    if wanted in assessed or not assessed:
        return wanted

    def leak(name: str) -> float:
        row = strongest(assessed[name]["rows"], assessed[name]["form"], WATCHED[0])
        gain = row["gain"]["best"]["value"] if row and row["gain"]["best"] else None
        return -inf if gain is None else float(gain)

    return max(assessed, key=leak)


def of_comparison(
    arms: Sequence[Mapping[str, Any]], reference: str, values_of: Callable[[Mapping[str, Any], Row], Values]
) -> list[dict[str, Any]]:
    """Entries of `lowering` in compare.json: every other arm as a change of the reference arm, least leak first.

    Each arm by its own strongest attacker; an arm that was not assessed supports no statement and is left out.
    values_of: client -> mean value behind a row of an arm. All numbers are means over the clients that both arms have.
    """
    assessed = {arm["name"]: arm for arm in arms if arm["verdict"]["level"] != "NOT_ASSESSED"}
    base = assessed.pop(reference, None)
    found: list[dict[str, Any]] = []
    for metric in WATCHED if base else ():
        before = strongest(base["rows"], base["form"], metric) if base else None
        if base is None or before is None:
            continue
        changes, own = [], values_of(base, before)
        for arm in assessed.values():
            after = strongest(arm["rows"], arm["form"], metric)
            if after is not None:
                note = f"{source(after)}, against {source(before)}"
                unit = after["unit"]
                changes.append(paired(words_for(arm["name"]), metric, unit, own, values_of(arm, after), note))
        told = [change for change in changes if change is not None]
        found += sorted(told, key=lambda change: sign_of(metric) * change["difference"])
    return found


def paired(change: str, metric: str, unit: str, before: Values, after: Values, note: str) -> dict[str, Any] | None:
    """One entry, paired by client: the leak as it is, under the change, and the difference; None without a client.

    >>> entry = paired("Less", "psnr", "dB", {0: 3.0, 1: 5.0}, {1: 4.0, 2: 9.0}, "ridge")
    >>> entry["before"], entry["value"], entry["difference"], entry["ci95"], entry["note"]
    (5.0, 4.0, -1.0, None, 'ridge; 1 client')
    """
    apart, interval, clients = difference(after, before)
    if apart is None:
        return None
    mean = sum(before[client] for client in before.keys() & after.keys()) / clients
    return {
        "change": change, "metric": metric, "unit": unit, "before": mean, "value": mean + apart, "difference": apart,
        "ci95": interval, "more_leakage": "higher" if sign_of(metric) > 0 else "lower",
        "note": f"{note}; {clients} client{'s' if clients > 1 else ''}",
    }  # fmt: skip
