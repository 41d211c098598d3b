"""The program's names in a reader's words: slices, units of the verdict, who would have to attack."""

import re
from typing import Any

from reports import texts
from reports.scores import LEVELS, Row, Scores

UNIT = ("attack", "stream", "slice")
SLICE = re.compile(r", slice (all|n1|n2-5|n6-19|n20\+|client \d+)(?![\w+-])")


def slice_words(part: str) -> str:
    """A slice in words; a name that is none of ours stays.

    >>> slice_words("all"), slice_words("n1"), slice_words("client 4")
    ('all classes', 'classes of 1 image', "client 4's images")
    """
    if re.fullmatch(r"client \d+", part):
        return f"{part}'s images"
    return "all classes" if part == "all" else texts.SLICES.get(part, part)


def stream_words(stream: int) -> str:
    """How many rounds an attacker used.

    >>> stream_words(1), stream_words(60)
    ('one round', '60 rounds, unmixed')
    """
    return "one round" if stream == 1 else f"{stream} rounds, unmixed"


def in_words(sentence: str) -> str:
    """A sentence of the verdict without the names of slices.

    >>> in_words("ridge on 60 rounds, slice n1 picks out 100 % of them")
    'ridge on 60 rounds (classes of 1 image) picks out 100 % of them'
    """
    named = SLICE.sub(lambda found: f" ({slice_words(found[1])})", sentence)
    return named.replace("; see there)", ")")


def _alone(scores: Scores) -> tuple[int, Row] | None:
    """The row of the server alone (Q0) that gains most over guessing, on all classes of the audited form."""
    rows = [
        (i, row)
        for i, row in enumerate(scores["rows"])
        if (row["form"], row["level"], row["metric"]) == (scores["federation"]["form"], "Q0", "psnr")
        and (row["target"], row["slice"]) == ("members", "all") and "curve" not in row
    ]  # fmt: skip

    def gain(pair: tuple[int, Row]) -> float:
        best = pair[1]["gain"]["best"]
        return -1e9 if best is None or best["value"] is None else best["value"]

    return max(rows, key=gain, default=None)


def attacker(scores: Scores) -> dict[str, Any]:
    """Who the verdict is about: the level that decided (None where none did), whether its stream was unmixed first,
    and the row of the server alone, Q0 (None where it did not attack)."""
    verdict, rows = scores["verdict"], [row for row in scores["rows"] if row["headline"]]
    worst = verdict["worst"] if isinstance(verdict["worst"], dict) and verdict["level"] in LEVELS[1:] else {}
    own = next((row for row in rows if all(row.get(key) == worst[key] for key in UNIT if key in worst)), None)
    own = own if worst else None
    return {
        "level": own["level"] if own else None,
        "unmixed": bool(own and own["stream"] > 1),
        "tried": sorted({row["level"] for row in rows}),
        "alone": _alone(scores),
    }
