"""The result in the words of data protection: singling out, linkability, inference. Orientation, not legal advice.

The three risks are those of the Article 29 Working Party's Opinion 05/2014 on Anonymisation Techniques (WP216).
"""

from collections.abc import Sequence
from typing import Any

from reports.scores import LEVELS, Row, Scores
from reports.words import UNIT

RISKS = (
    (
        "Singling out",
        "Can the record of one person be isolated? Here: is the right private image picked out among candidates, "
        "given only the upload.",
        ("retrieval_top1",),
        ("one_image_class",),
    ),
    (
        "Linkability",
        "Can two records about the same person be tied together? Here: can someone who already holds an image tell "
        "that it was among this client's images.",
        ("membership_auc", "membership_tpr_at_1pct"),
        ("one_class_client",),
    ),
    (
        "Inference",
        "Can something about a person be deduced? Here: what an image or a class looks like, and which classes a "
        "client holds.",
        ("psnr", "evaluator_accuracy"),
        (),
    ),
)
DISCLOSED = {"Inference": "class_set"}


def _gain(row: Row) -> float:
    best = row["gain"]["best"]
    if best is not None and best["value"] is not None:
        return best["value"]
    against = row["chance"] if row["chance"] is not None else row["floor"]["best"]
    return (row["value"] or 0.0) - (against or 0.0)


def _strongest(rows: Sequence[tuple[int, Row]], metric: str) -> tuple[int, Row] | None:
    """The row that gains most over its best floor (else over chance), of those with a value."""
    found = [pair for pair in rows if pair[1]["metric"] == metric and pair[1]["value"] is not None]
    return max(found, key=lambda pair: _gain(pair[1])) if found else None


def _worst_group(
    rows: Sequence[tuple[int, Row]], metric: str, overall: tuple[int, Row] | None
) -> tuple[int, Row] | None:
    """The declared group of images that gains most, where it gains more than all images together."""
    groups = [pair for pair in rows if pair[1]["headline"] and pair[1]["status"] == "ok" and pair[1]["ci95"]]
    worst = _strongest([pair for pair in groups if pair[1]["slice"] != "all"], metric)
    return worst if worst and (overall is None or _gain(worst[1]) > _gain(overall[1])) else None


def _decided(scores: Scores, rows: Sequence[tuple[int, Row]], metric: str) -> tuple[int, Row] | None:
    """The row of the metric over the attack, rounds and images that decided the verdict; None where none decided."""
    verdict = scores["verdict"]
    worst = verdict["worst"] if isinstance(verdict["worst"], dict) and verdict["level"] in LEVELS[1:] else {}
    if not all(key in worst for key in UNIT):
        return None
    same = (p for p in rows if p[1]["metric"] == metric and all(p[1].get(key) == worst[key] for key in UNIT))
    return next((pair for pair in same if pair[1]["headline"] and pair[1]["value"] is not None), None)


def reading(scores: Scores) -> list[dict[str, Any]]:
    """Per risk: its meaning, the rows that speak of it, how many flags and disclosures bear on it.

    Of each metric the row of what decided the verdict comes first, then the worst-off declared group of images, then
    all images together: the mean hides the group.
    """
    form = scores["federation"]["form"]
    rows = [
        (i, row)
        for i, row in enumerate(scores["rows"])
        if row["form"] == form and row["target"] == "members" and "curve" not in row
    ]
    whole = [pair for pair in rows if pair[1]["slice"] == "all"]

    def speak(metric: str) -> list[tuple[int, Row]]:
        overall = _strongest(whole, metric)
        found = (_decided(scores, rows, metric), _worst_group(rows, metric, overall), overall)
        return list({pair[0]: pair for pair in found if pair}.values())

    metrics_of = {metric for _, _, metrics, _ in RISKS for metric in metrics}
    decided = {pair[0] for metric in metrics_of if (pair := _decided(scores, rows, metric))}
    return [
        {
            "term": term,
            "decided": decided,
            "meaning": meaning,
            "rows": [pair for metric in metrics for pair in speak(metric)],
            "flags": [i for i, flag in enumerate(scores["flags"]) if flag["kind"] in kinds],
            "disclosed": any(d["kind"] == DISCLOSED.get(term) for d in scores["disclosures"]),
        }
        for term, meaning, metrics, kinds in RISKS
    ]
