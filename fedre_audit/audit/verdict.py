"""The verdict: a rule over the rows declared before scoring, and a pure function of scores.json.

Two families of one-sided tests, each Holm-corrected over the declared units (an attack, a stream length, a slice):
class level: gain over the mean image and over the permuted upload (or the class-mean target better than its floor);
sample level, asked only where the class level holds: retrieval above chance and above the permuted upload, and gain
over the best floor and over the permuted upload. A conjunction is tested by its largest p-value.
Source: Holm 1979, Scand. J. Statist. 6(2):65-70.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from fedre_audit.audit.power import ALPHA, POWER, detectable_leak
from reports.texts import METRICS, TARGETS
from reports.words import slice_words

Unit = tuple[str, int, str]
BLIND_DB = 3.0
"""Where even a gain of this many dB would have gone unseen over all images, absence of leakage is not claimed."""
WEIGHTS = {"all": 4.0, "n1": 4.0, "n2-5": 4.0}
"""Shares of the level on the longest stream; every other slice has 1, and all single clients together have 1."""
PRIMARY = ("psnr", "members")
RETRIEVAL = ("retrieval_top1", "members")
CLASS_TARGET = ("psnr", "class_mean")
CLASS_WAYS = {PRIMARY: "mean_image", CLASS_TARGET: "best"}
"""The rows that can carry the class level, and the floor that each must beat."""
BESIDE = ("psnr", "retrieval_top1", "evaluator_accuracy", "membership_auc", "membership_tpr_at_1pct")
"""Metrics named beside a verdict of no leakage where they are above guessing."""
CEILING = "raw"
RULES = {
    "NOT_ASSESSED": "Competence failed, a declared attack failed or was not validated, or there is too little data.",
    "SAMPLE_LEVEL": "Retrieval above chance and gain over the best floor, both with the lower bound above 0 and above "
    "the permuted upload (95 % intervals, Holm-corrected over the declared rows).",
    "CLASS_LEVEL": "Gain over the mean image and the permuted upload (or the class-mean target better than its floor) "
    "with the lower bound above 0, Holm-corrected; the sample-level rule is not met.",
    "NO_IMAGE_LEAKAGE_FOUND": "Competence passed, every declared attack could be judged over all images, and no "
    "declared row met the rules of class or sample level. Groups of images too few to be judged are named.",
}


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


def declared(scores: Mapping[str, Any]) -> dict[Unit, dict[tuple[str, str], Mapping[str, Any]]]:
    """The declared rows of the audited form, by unit, then by metric and target."""
    units: dict[Unit, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in scores["rows"]:
        if row["headline"]:
            units.setdefault(unit_of(row), {})[row["metric"], row["target"]] = row
    return units


def _largest(*p_values: float | None) -> float | None:
    return None if None in p_values else max(p for p in p_values if p is not None)


def class_ps(rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """p-values of the two ways to meet the class-level rule of one unit, by the row they rest on."""
    found = {}
    for key, floor in CLASS_WAYS.items():
        row = rows.get(key)
        if row is not None and row["status"] == "ok":
            p = _largest(row["gain"][floor]["p"], row["gain"]["permuted"]["p"])
            if p is not None:
                found[key] = p
    return found


def class_p(rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> float | None:
    """p-value of the class-level rule of one unit; the two ways to meet it share the level (Bonferroni)."""
    found = class_ps(rows)
    return min(1.0, len(found) * min(found.values())) if found else None


def class_way(rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> tuple[Mapping[str, Any], str]:
    """The row that carries the class level of one unit, by the smaller p-value, and the floor that it is held to.

    rows: of a unit that has a `class_p`.
    """
    ways = class_ps(rows)
    key = min(ways, key=lambda way: ways[way])
    return rows[key], CLASS_WAYS[key]


def sample_p(rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> float | None:
    """p-value of the sample-level rule of one unit; None where it cannot be judged."""
    image, pick = rows.get(PRIMARY), rows.get(RETRIEVAL)
    if image is None or pick is None or image["status"] != "ok" or pick["status"] != "ok":
        return None
    return _largest(*(row["gain"][floor]["p"] for row in (image, pick) for floor in ("best", "permuted")))


def name_of(unit: Unit) -> str:
    """A unit in words.

    >>> name_of(("ridge", 60, "n1"))
    'ridge on 60 rounds, slice n1'
    """
    attack, stream, part = unit
    rounds = "one round" if stream == 1 else f"{stream} rounds"
    return f"{attack} on {rounds}, slice {part}"


def blind_of(units: Mapping[Unit, Mapping[tuple[str, str], Mapping[str, Any]]]) -> dict[Unit, float | None]:
    """Smallest gain in dB that each unit would have shown; None where it cannot be judged, so that nothing is said."""
    weights = weights_of(units)
    total = sum(weights.values())
    found: dict[Unit, float | None] = dict.fromkeys(units)
    for unit, rows in units.items():
        if PRIMARY in rows and rows[PRIMARY]["status"] == "ok":
            ways = len(class_ps(rows))
            found[unit] = detectable_leak(rows[PRIMARY], weights[unit] / total, ways) if ways else None
    return found


def blind_words(blind: Mapping[Unit, float | None]) -> str:
    """What would have gone unseen: over all images, and in each declared group by its best-placed attack.

    >>> blind_words({("ridge", 1, "all"): 0.5, ("ridge", 1, "n1"): None})
    'Gains over the mean image below 0.50 dB over all images would have gone unseen; classes of 1 image: not judged'
    """
    groups: dict[str, list[float | None]] = {}
    for (_, _, part), gain in blind.items():
        groups.setdefault(part, []).append(gain)
    # Everything has to be seen over all images; elsewhere the attack that sees most counts.
    seen = [f"below {max(known(groups.pop('all', []))):.2f} dB over all images"]
    clients = [groups.pop(part) for part in list(groups) if part.startswith("client ")]
    seen += [
        f"below {min(known(gains)):.2f} dB in {slice_words(part)}" for part, gains in groups.items() if known(gains)
    ]
    unseen = [slice_words(part) for part, gains in groups.items() if not known(gains)]
    told = [min(known(gains)) for gains in clients if known(gains)]
    seen += [f"below {max(told):.2f} dB in each of {len(told)} single clients"] if told else []
    unseen += [f"{len(clients) - len(told)} of {len(clients)} single clients"] if len(told) < len(clients) else []
    said = f"Gains over the mean image {', '.join(seen)} would have gone unseen"
    return said + (f"; {', '.join(unseen)}: not judged" if unseen else "")


def known(gains: Iterable[float | None]) -> list[float]:
    """Those that are known."""
    return [gain for gain in gains if gain is not None]


def beside(scores: Mapping[str, Any]) -> list[str]:
    """What the rules of the verdict leave out and validated rows nevertheless show: above guessing and the null.

    Over all images, intervals not corrected for their number.
    """
    found = {}
    for row in scores["rows"]:
        asked = row["form"] == scores["federation"]["form"] and row["slice"] == "all" and "curve" not in row
        if (
            asked
            and row["status"] == "ok"
            and row["metric"] in BESIDE
            and (row["metric"], row["target"]) not in CLASS_WAYS
        ):
            low = [(row["gain"][floor]["ci95"] or [None])[0] for floor in ("best", "permuted")]
            if all(end is not None and end > 0 for end in low):
                of = "" if row["target"] == PRIMARY[1] else f" of the {TARGETS[row['target']]}"
                found[f"{METRICS[row['metric']]}{of}"] = row["attack"]
    return [f"{what} ({attack})" for what, attack in found.items()]


def uncovered(scores: Mapping[str, Any], units: Mapping[Unit, Any]) -> Iterator[str]:
    """Clients that no declared row speaks for: skipped by an attack, or recovered and then not validated."""
    uploaded = max((row["n_clusters"] for row in scores["rows"]
                    if (row["form"], row["stream"]) == (scores["federation"]["form"], 1)), default=0)  # fmt: skip
    for unit, rows in units.items():
        answered = rows[PRIMARY]["n_clusters"] if unit[1:] == (1, "all") and PRIMARY in rows else uploaded
        if answered < uploaded:
            yield f"{name_of(unit)} has answers for {answered} of {uploaded} clients"
    recovered = [entry["validated"] for entry in scores.get("unmixing", ()) if entry["recovered"]]
    if any(recovered) and not all(recovered):
        yield f"unmixing is not validated for {recovered.count(False)} of {len(recovered)} clients"


def blind_on_raw(scores: Mapping[str, Any], units: Collection[Unit]) -> bool:
    """Whether no declared attack beats the mean image on the raw representations of the same images either.

    It then has learned nothing from these encoders, and its failure on another form tells nothing of that form.
    """
    gains = [row["gain"]["mean_image"]["value"] for row in scores["rows"]
             if row["form"] == CEILING and (row["metric"], row["target"]) == PRIMARY
             and unit_of(row) in {(attack, 1, "all") for attack, _, _ in units}]  # fmt: skip
    return bool(gains) and not any(gain is not None and gain > 0 for gain in gains)


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
    for unit, rows in units.items():
        for row in rows.values():
            if unit[2] == "all" and row["status"] != "ok":
                yield f"{name_of(unit)} is {row['status'].replace('_', ' ')} ({row['reason']})"
        if unit[2] == "all" and PRIMARY in rows and rows[PRIMARY]["status"] == "ok":
            gain = blind[unit]
            if gain is None:
                yield f"{name_of(unit)} has too little data for an interval"
            elif gain > BLIND_DB:
                yield f"{name_of(unit)} would miss a gain of {gain:.1f} dB"


def numbers_of(row: Mapping[str, Any], against: str) -> dict[str, Any]:
    """The three numbers that carry the verdict, and what they are of. against: which floor of the row is named."""
    return {"metric": row["metric"], "unit": row["unit"], "floor": row["floor"][against], "form": row["value"],
            "ceiling": row["ceiling"], "target": row["target"], "against": against}  # fmt: skip


def block(
    level: str, sentence: str, unit: Unit | None, row: Mapping[str, Any], thresholds: Any, against: str = "best"
) -> dict[str, Any]:
    """The verdict block of scores.json. unit: that decided; row, against: that carries the level, and its floor."""
    worst = None
    if unit is not None:
        worst = {"attack": unit[0], "stream": unit[1], "slice": unit[2], "gain": row["gain"][against]["value"]}
    return {"level": level, "sentence": sentence, "rule": RULES[level], "thresholds": thresholds, "worst": worst,
            "numbers": numbers_of(row, against)}  # fmt: skip


def verdict(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict block, from `rows` (the declared ones), `competence` and `federation` of scores.json alone.

    The worst-off unit decides: the one of the largest gain over the floor of the rule among those that meet it.
    """
    units, form = declared(scores), scores["federation"]["form"]
    first = next((rows[PRIMARY] for rows in units.values() if PRIMARY in rows), scores["rows"][0])
    of_class = {unit: p for unit, rows in units.items() if (p := class_p(rows)) is not None}
    of_sample = {unit: p for unit, rows in units.items() if (p := sample_p(rows)) is not None}
    weights = weights_of(units)
    seen = holm(of_class, weights, ALPHA)
    identified = holm(of_sample, weights, ALPHA) & seen
    thresholds = {
        "alpha": ALPHA,
        "correction": "Holm, weighted",
        "power": POWER,
        "largest_blind_gain_db": BLIND_DB,
        "declared": {name_of(unit): round(weight, 4) for unit, weight in weights.items()},
        "class_level_tests": len(of_class),
        "sample_level_tests": len(of_sample),
    }
    failed = [check["name"] for check in scores["competence"]["checks"] if not check["passed"]]
    if failed or not scores["competence"]["passed"]:
        why = f"an attacker failed its competence check ({', '.join(failed) or 'none was made'})"
        sentence = f"Not assessed: {why}. A failed attack would look the same as no leakage."
        return block("NOT_ASSESSED", sentence, None, first, thresholds)
    for level, found in (("SAMPLE_LEVEL", identified), ("CLASS_LEVEL", seen)):
        if found:
            carriers = {u: carrier(level, units[u]) for u in found}
            worst = max(carriers, key=lambda u: gain_of(*carriers[u]))
            row, against = carriers[worst]
            sentence = _found(level, form, worst, units[worst], tested=bool(of_sample))
            return block(level, sentence, worst, row, thresholds, against)
    reasons = list(dict.fromkeys(problems(scores)))
    if reasons:
        return block("NOT_ASSESSED", f"Not assessed: {'; '.join(reasons)}.", None, first, thresholds)
    blind = blind_of(units)
    others = beside(scores)
    sentence = (
        f"No image leakage found in {form} uploads: no declared row met the rules of class or sample level. "
        f"{blind_words(blind)}. "
        + (f"Outside these rules, above guessing: {', '.join(others)}. " if others else "")
        + "What leaks without an attack is listed apart."
    )
    overall = max(known(gain for (_, _, part), gain in blind.items() if part == "all"))
    return block("NO_IMAGE_LEAKAGE_FOUND", sentence, None, first, thresholds | {"detectable_gain_db": overall})


def carrier(level: str, rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> tuple[Mapping[str, Any], str]:
    """The row whose numbers stand beside a level that a unit has met, and the floor that it beat."""
    return (rows[PRIMARY], "best") if level == "SAMPLE_LEVEL" else class_way(rows)


def gain_of(row: Mapping[str, Any], against: str) -> float:
    """Gain of a row over one of its floors, for ranking; the lowest of all where it has none."""
    gain = row["gain"][against]["value"]
    return -math.inf if gain is None else float(gain)


def _found(
    level: str, form: str, unit: Unit, rows: Mapping[tuple[str, str], Mapping[str, Any]], *, tested: bool
) -> str:
    if level == "SAMPLE_LEVEL":
        image, pick = rows[PRIMARY], rows[RETRIEVAL]
        return (
            f"Single private images leak from {form} uploads: {name_of(unit)} picks out {100 * pick['value']:.1f} % "
            f"of them at the first guess (chance {100 * pick['chance']:.1f} %) and gains "
            f"{image['gain']['best']['value']:+.2f} dB over the best floor."
        )
    row, floor = class_way(rows)
    over = "the mean image" if row["target"] == PRIMARY[1] else "the best floor on class means"
    return (
        f"What classes look like leaks from {form} uploads: {name_of(unit)} gains "
        f"{gain_of(row, floor):+.2f} dB over {over}; "
        + ("the rule for single images was not met." if tested else "single images could not be tested.")
    )
