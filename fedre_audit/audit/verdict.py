"""The verdict. Until attackers are proven able it can only be NOT_ASSESSED, with every number shown."""

from typing import Any


def verdict(rows: list[dict[str, Any]], competence: dict[str, Any]) -> dict[str, Any]:
    """The verdict block of scores.json from its headline rows and the competence block."""
    headline = next(row for row in rows if row["headline"])
    reason = "competence not yet checked" if not competence["checks"] else "a competence check failed"
    return {
        "level": "NOT_ASSESSED",
        "sentence": f"Not assessed: {reason}. The figures stand, but a failed attack would look the same.",
        "rule": "Without a passed competence check no statement about leakage is made.",
        "thresholds": {},
        "worst": None,
        "numbers": {
            "metric": headline["metric"],
            "unit": headline["unit"],
            "floor": headline["floor"]["best"],
            "form": headline["value"],
            "ceiling": headline["ceiling"],
        },
    }
