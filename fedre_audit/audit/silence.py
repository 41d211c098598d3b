"""Behind a verdict of no leakage: why it cannot be given, how much would have gone unseen, what it leaves out."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from fedre_audit.audit.intervals import MIN_CLIENTS
from fedre_audit.audit.power import ALPHA, detectable_leak
from fedre_audit.audit.units import (
    CLASS_WAYS,
    PRIMARY,
    RETRIEVAL,
    Rows,
    Unit,
    class_ps,
    declared,
    holm,
    name_of,
    pick_p,
    unit_of,
    weights_of,
)
from reports.texts import METRICS, TARGETS
from reports.words import slice_words

BLIND_DB = 3.0
"""Where even a gain of this many dB would have gone unseen over all images, absence of leakage is not claimed."""
STILL_DB = 0.05
"""An attack that would show a smaller gain than this hardly moves from the mean image, which shows nothing."""
CEILING = "raw"
IMAGE = ("psnr", "ssim", "mse")
BESIDE = (*IMAGE, "retrieval_top1", "evaluator_accuracy", "membership_auc", "membership_tpr_at_1pct")
"""Metrics named beside a verdict of no leakage where they are above guessing; of an image's the first that is."""
CLIENT = re.compile(r"client \d+")


def known(gains: Iterable[float | None]) -> list[float]:
    """Those that are known."""
    return [gain for gain in gains if gain is not None]


def blind_of(units: Mapping[Unit, Rows]) -> dict[Unit, float | None]:
    """Smallest gain in dB that each unit would have shown; None where it cannot be judged, so that nothing is said."""
    weights = weights_of(units)
    total = sum(weights.values())
    found: dict[Unit, float | None] = dict.fromkeys(units)
    for unit, rows in units.items():
        if PRIMARY in rows and rows[PRIMARY]["status"] == "ok":
            ways = len(class_ps(rows))
            found[unit] = detectable_leak(rows[PRIMARY], weights[unit] / total, ways) if ways else None
    return found


def uploaders(scores: Mapping[str, Any]) -> int:
    """Clients with an upload of the audited form."""
    return max((row["n_clusters"] for row in scores["rows"]
                if (row["form"], row["stream"]) == (scores["federation"]["form"], 1)), default=0)  # fmt: skip


def blind_words(blind: Mapping[Unit, float | None], scores: Mapping[str, Any]) -> str:
    """What would have gone unseen, over all images and in each declared group, and what was not judged.

    Every attack has to see it: which one would carry a leak is not known. Above `BLIND_DB` nothing was judged.
    """
    groups: dict[tuple[int, str], list[float | None]] = {}
    for (_, stream, part), gain in blind.items():
        groups.setdefault((stream, part), []).append(gain if gain is not None and gain <= BLIND_DB else None)
    overall = known(gain for (_, part), gains in groups.items() if part == "all" for gain in gains)
    seen, unseen = [f"below {max(overall):.2f} dB over all images (the mean over clients)"] if overall else [], []
    clients = {part: gains for (_, part), gains in groups.items() if CLIENT.fullmatch(part)}
    for (stream, part), gains in groups.items():
        if part == "all" or part in clients:
            continue
        where = slice_words(part) + (f" on {stream} rounds" if stream > 1 else "")
        if None in gains:
            unseen.append(where)
        else:
            seen.append(f"below {max(known(gains)):.2f} dB in {where}")
    told = [max(known(gains)) for gains in clients.values() if None not in gains]
    seen += [f"below {max(told):.2f} dB in each of {len(told)} single clients"] if told else []
    count = uploaders(scores)
    unseen += [f"{count - len(told)} of {count} clients by themselves"] if len(told) < count else []
    said = f"Gains over the mean image and the permuted upload {', '.join(seen)} would have gone unseen"
    return said + (f"; not judged: {', '.join(unseen)}" if unseen else "")


def beside(scores: Mapping[str, Any]) -> list[str]:
    """What the rules of the verdict leave out and validated rows nevertheless show: above guessing and the null.

    Over all images, retrieval also in the declared groups of classes; of measures of one kind the first. Intervals are
    not corrected for their number.
    """
    groups = {row["slice"] for row in scores["rows"] if row["headline"] and not CLIENT.fullmatch(row["slice"])}
    found: dict[tuple[str, str, str], str] = {}
    for row in scores["rows"]:
        asked = row["slice"] == "all" or (row["metric"] == RETRIEVAL[0] and row["slice"] in groups)
        if asked and row["form"] == scores["federation"]["form"] and _outside(row):
            of = "" if row["target"] == PRIMARY[1] else f" of the {TARGETS.get(row['target'], row['target'])}"
            of += "" if row["slice"] == "all" else f" in {slice_words(row['slice'])}"
            kind = IMAGE[0] if row["metric"] in IMAGE else row["metric"].partition("_")[0]
            found.setdefault((row["attack"], kind, row["target"]), f"{METRICS[row['metric']]}{of}")
    return [f"{what} ({attack})" for (attack, *_), what in found.items()]


def _outside(row: Mapping[str, Any]) -> bool:
    """Whether a row is validated, above guessing, and none that the rules look at."""
    ruled = row["headline"] and (row["metric"], row["target"]) in CLASS_WAYS
    counts = row["status"] == "ok" and "curve" not in row and row["metric"] in BESIDE and row["target"] != "best"
    return counts and not ruled and above(row, "best") and above(row, "permuted")


def above(row: Mapping[str, Any], floor: str) -> bool:
    """Whether a gain's interval lies above 0; a permuted null that was not made is no hindrance."""
    gain = row["gain"][floor]
    if floor == "permuted" and (gain is None or gain["value"] is None):
        return True
    low = (gain["ci95"] or [None])[0] if gain is not None else None
    return low is not None and low > 0


def uncovered(scores: Mapping[str, Any], units: Mapping[Unit, Rows]) -> Iterator[str]:
    """Clients that no declared row speaks for: skipped by an attack, or recovered and then not validated."""
    uploaded = uploaders(scores)
    streams = [entry for entry in scores.get("unmixing", ()) if entry["recovered"] and entry["rounds"] > 1]
    recovered = [entry["validated"] for entry in streams]
    for unit, rows in units.items():
        expected = uploaded if unit[1] == 1 else sum(recovered)
        answered = rows[PRIMARY]["n_clusters"] if unit[2] == "all" and PRIMARY in rows else expected
        if answered < expected:
            yield f"{name_of(unit)} has answers for {answered} of {expected} clients"
    if any(recovered) and not all(recovered):
        yield f"unmixing is not validated for {recovered.count(False)} of {len(recovered)} clients"


def blind_on_raw(scores: Mapping[str, Any], units: Collection[Unit]) -> bool:
    """Whether no declared attack is told from the mean image on the raw representations of the same images either.

    It then has learned nothing from these encoders, and its failure on another form tells nothing of that form.
    """
    own = [row for row in scores["rows"]
           if row["form"] == CEILING and (row["metric"], row["target"]) == PRIMARY and "curve" not in row
           and unit_of(row) in {(attack, 1, "all") for attack, _, _ in units}]  # fmt: skip
    return bool(own) and not any(row["status"] == "ok" and above(row, "mean_image") for row in own)


def common_gain(row: Mapping[str, Any], blind: float) -> bool:
    """Whether a row gains more over the mean image than would have gone unseen: the permuted null alone stands against.

    Permuted uploads of one client share what all its images have in common, so that this cannot be told from guessing.
    """
    value = row["gain"]["mean_image"]["value"]
    return value is not None and value > blind and above(row, "mean_image")


def problems(scores: Mapping[str, Any]) -> Iterator[str]:
    """Why no absence of leakage can be claimed."""
    units = declared(scores)
    blind = blind_of(units)
    if not any(unit[2] == "all" and PRIMARY in rows for unit, rows in units.items()):
        yield "nothing was declared to be tested as a whole"
    yield from uncovered(scores, units)
    ages = [entry.get("oldest", 0) for entry in scores.get("unmixing", ()) if entry["recovered"]]
    if max(ages, default=0) > 0:
        yield f"uploads of single classes are up to {max(ages)} rounds old, but the attacker has the newest encoder"
    if blind_on_raw(scores, units):
        yield "no declared attack beats the mean image even on raw representations, so its failure tells nothing"
    picks = {unit: p for unit, rows in units.items() if (p := pick_p(rows)) is not None}
    for unit in sorted(holm(picks, weights_of(units), ALPHA)):
        pick = units[unit][RETRIEVAL]
        yield (
            f"{name_of(unit)} picks out {100 * pick['value']:.1f} % of the images (chance {100 * pick['chance']:.1f} "
            "%), though it was not shown to rebuild them"
        )
    for unit, rows in units.items():
        for row in rows.values():
            if unit[2] == "all" and row["status"] != "ok":
                yield f"{name_of(unit)} is {row['status'].replace('_', ' ')} ({row['reason']})"
        if unit[2] == "all" and PRIMARY in rows and rows[PRIMARY]["status"] == "ok":
            yield from _doubts(unit, rows[PRIMARY], blind[unit])


def _doubts(unit: Unit, row: Mapping[str, Any], blind: float | None) -> Iterator[str]:
    """Why the row of a whole unit proves no absence of leakage."""
    if blind is None:
        yield f"{name_of(unit)} has too little data for an interval"
    elif blind > BLIND_DB:
        yield f"{name_of(unit)} would miss a gain of {blind:.1f} dB"
    elif blind < STILL_DB:
        yield f"{name_of(unit)} hardly moves from the mean image, so it shows nothing"
    elif common_gain(row, blind):
        gain = row["gain"]["mean_image"]["value"]
        yield (
            f"{name_of(unit)} gains {gain:+.2f} dB over the mean image, but no more than with permuted uploads: what "
            "the images of a client have in common may leak"
        )


def limited_to(scores: Mapping[str, Any]) -> str:
    """Says of few clients that nothing follows for others; empty where there are enough."""
    count = uploaders(scores)
    return "" if count >= MIN_CLIENTS else f"It holds for the {count} clients of this run alone. "
