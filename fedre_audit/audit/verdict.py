"""The verdict: a rule over the rows declared before scoring, and a pure function of scores.json.

Class level: gain over the mean image and over the permuted upload (or the class-mean target better than its floor);
sample level, asked only where the class level holds: retrieval above chance and above the permuted upload, and gain
over the best floor and over the permuted upload. Where neither is met, `silence` says what that is worth.
"""

import math
from collections.abc import Mapping
from typing import Any

from fedre_audit.audit.power import ALPHA, POWER
from fedre_audit.audit.silence import BLIND_DB, beside, blind_of, blind_words, known, limited_to, problems
from fedre_audit.audit.units import (
    PRIMARY,
    RETRIEVAL,
    Rows,
    Unit,
    class_p,
    class_way,
    declared,
    holm,
    name_of,
    sample_p,
    weights_of,
)

RULES = {
    "NOT_ASSESSED": "Competence failed, a declared attack failed or was not validated, or there is too little data.",
    "SAMPLE_LEVEL": "Retrieval above chance and gain over the best floor, both with the lower bound above 0 and above "
    "the permuted upload (95 % intervals, Holm-corrected over the declared rows).",
    "CLASS_LEVEL": "Gain over the mean image and the permuted upload (or the class-mean target better than its floor) "
    "with the lower bound above 0, Holm-corrected; the sample-level rule is not met.",
    "NO_IMAGE_LEAKAGE_FOUND": "Competence passed, every declared attack could be judged over all images, and no "
    "declared row met the rules of class or sample level. Groups of images too few to be judged are named.",
}


def numbers_of(row: Mapping[str, Any], against: str) -> dict[str, Any]:
    """The three numbers that carry the verdict, and what they are of. against: which floor of the row is named."""
    return {"metric": row["metric"], "unit": row["unit"], "floor": row["floor"][against], "form": row["value"],
            "ceiling": row["ceiling"], "target": row["target"], "against": against}  # fmt: skip


def block(
    level: str, sentence: str, unit: Unit | None, row: Mapping[str, Any] | None, thresholds: Any, against: str = "best"
) -> dict[str, Any]:
    """The verdict block of scores.json. unit: that decided; row, against: that carries the level, and its floor."""
    worst = None
    if unit is not None and row is not None:
        worst = {"attack": unit[0], "stream": unit[1], "slice": unit[2], "gain": row["gain"][against]["value"]}
    numbers = {} if row is None else {"numbers": numbers_of(row, against)}
    return {"level": level, "sentence": sentence, "rule": RULES[level], "thresholds": thresholds, "worst": worst,
            **numbers}  # fmt: skip


def verdict(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict block, from `rows` (the declared ones), `competence` and `federation` of scores.json alone.

    The worst-off unit decides: the one of the largest gain over the floor of the rule among those that meet it.
    """
    units, form = declared(scores), scores["federation"]["form"]
    first = next((rows[PRIMARY] for rows in units.values() if PRIMARY in rows), next(iter(scores["rows"]), None))
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
            sentence = _found(level, form, worst, units[worst], tested=worst in of_sample)
            return block(level, sentence, worst, row, thresholds, against)
    reasons = list(dict.fromkeys(problems(scores)))
    others = beside(scores)
    if reasons:
        sentence = f"Not assessed: {'; '.join(reasons)}." + (
            f" Above guessing all the same, outside the rules: {', '.join(others)}." if others else ""
        )
        return block("NOT_ASSESSED", sentence, None, first, thresholds)
    blind = blind_of(units)
    sentence = (
        f"No image leakage found in {form} uploads: no declared row met the rules of class or sample level. "
        f"{blind_words(blind, scores)}. "
        + (f"Outside these rules, above guessing: {', '.join(others)}. " if others else "")
        + limited_to(scores)
        + "What leaks without an attack is listed apart."
    )
    overall = max(known(gain for (_, _, part), gain in blind.items() if part == "all"))
    return block("NO_IMAGE_LEAKAGE_FOUND", sentence, None, first, thresholds | {"detectable_gain_db": overall})


def carrier(level: str, rows: Rows) -> tuple[Mapping[str, Any], str]:
    """The row whose numbers stand beside a level that a unit has met, and the floor that it beat."""
    return (rows[PRIMARY], "best") if level == "SAMPLE_LEVEL" else class_way(rows)


def gain_of(row: Mapping[str, Any], against: str) -> float:
    """Gain of a row over one of its floors, for ranking; the lowest of all where it has none."""
    gain = row["gain"][against]["value"]
    return -math.inf if gain is None else float(gain)


def _found(level: str, form: str, unit: Unit, rows: Rows, *, tested: bool) -> str:
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
