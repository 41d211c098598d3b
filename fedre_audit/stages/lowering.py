"""What would lower the leak, of what was measured in one audit or one comparison. Nothing here is a promise.

A row that is not validated does not count: neither as the leak before a change nor as the leak after it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedre_audit.audit.metrics import sign_of
from fedre_audit.audit.paired import difference

Row = Mapping[str, Any]
Values = dict[int, float]
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


def fewer_rounds(rows: Sequence[Row], form: str) -> list[dict[str, Any]]:
    """The leak of shorter streams beside that of the whole stream: points of the curve over rounds, most rounds first.

    The same clients and images; without an interval, which the points of a curve do not share.
    """
    found = []
    for metric in WATCHED:
        overall = [row for row in rows if counts(row, form, metric) and row["slice"] == "all"]
        points = [row for row in overall if row.get("curve") == "rounds"]
        for point in sorted(points, key=lambda row: -row["stream"]):
            for whole in overall:
                if "curve" not in whole and whole["attack"] == point["attack"] and whole["stream"] > point["stream"]:
                    change = f"Upload in {point['stream']} rounds instead of {whole['stream']}"
                    found.append(entry(change, metric, whole["unit"], whole["value"], point["value"],
                                       note=f"{whole['attack']} on the unmixed stream; the same images"))  # fmt: skip
    return found


def without_tiny_classes(rows: Sequence[Row], form: str) -> list[dict[str, Any]]:
    """The leak of images of tiny classes beside that of classes of 20 images or more, each over its own floor.

    Of attackers and streams the one that gains most on the tiny classes. The two are of other images, so their
    difference is not paired and has no interval.
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
            if tiny:
                worst = max(tiny, key=lambda row: row["gain"]["best"]["value"])
                left = large[worst["attack"], worst["stream"]]
                remade = "" if form != "entangled" else "; mixtures were not made anew without them"
                found.append(entry(
                    f"Leave out classes {words}: what classes of 20 or more leak instead", metric,
                    OVER_FLOOR[metric], worst["gain"]["best"]["value"], left["gain"]["best"]["value"],
                    note=f"{source(worst)}; other images, so not paired, and intervals stand by size of class{remade}",
                ))  # fmt: skip
    return found


def of_run(rows: Sequence[Row], form: str) -> list[dict[str, Any]]:
    """Entries of `lowering` in scores.json, from the rows of one audit."""
    return [*fewer_rounds(rows, form), *without_tiny_classes(rows, form)]


def strongest(rows: Sequence[Row], form: str, metric: str) -> Row | None:
    """Of validated rows over all classes the one that leaks most, over attackers and streams; None without any."""
    own = [row for row in rows if counts(row, form, metric) and row["slice"] == "all" and "curve" not in row]
    return max(own, key=lambda row: sign_of(metric) * row["value"], default=None)


def words_for(arm: str) -> str:
    """An arm of a comparison as a change.

    >>> words_for("raw"), words_for("entangled:RAP:fixed")
    ('Send every representation (raw)', 'Mix by RAP with fixed weights')
    """
    form, *rest = arm.split(":")
    if form == "entangled":
        return f"Mix by {rest[0] if rest else 'RAP'}" + (" with fixed weights" if rest[1:] else "")
    return {"raw": "Send every representation (raw)", "prototype": "Send class prototypes"}.get(form, f"Send {form}")


def of_comparison(
    arms: Sequence[Mapping[str, Any]], reference: str, values_of: Callable[[Mapping[str, Any], Row], Values]
) -> list[dict[str, Any]]:
    """Entries of `lowering` in compare.json: every other arm as a change of the reference arm, least leak first.

    Each arm by its own strongest attacker. values_of: client -> mean value behind a row of an arm; all numbers are
    means over the clients that both arms have, so that the difference is that of the two.
    """
    found: list[dict[str, Any]] = []
    base = next(arm for arm in arms if arm["name"] == reference)
    for metric in WATCHED:
        before = strongest(base["rows"], base["form"], metric)
        if before is None:
            continue
        own, changes = values_of(base, before), []
        for arm in arms:
            after = strongest(arm["rows"], arm["form"], metric) if arm is not base else None
            if after is None:
                continue
            theirs = values_of(arm, after)
            apart, interval, clients = difference(theirs, own)
            if apart is None:
                continue
            mean = sum(own[client] for client in own.keys() & theirs.keys()) / clients
            note = f"{source(after)}, against {source(before)}; {clients} clients"
            changes.append(entry(words_for(arm["name"]), metric, after["unit"], mean, mean + apart, interval, note))
        found += sorted(changes, key=lambda change: sign_of(metric) * change["difference"])
    return found


def entry(
    change: str, metric: str, unit: str, before: float, value: float, ci95: list[float] | None = None, note: str = ""
) -> dict[str, Any]:
    """One entry: the leak as it is (`before`), the leak under the change, and their difference."""
    leaks = "higher" if sign_of(metric) > 0 else "lower"
    return {"change": change, "metric": metric, "unit": unit, "before": before, "value": value,
            "difference": value - before, "ci95": ci95, "more_leakage": leaks, "note": note or None}  # fmt: skip
