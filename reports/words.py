"""The program's names in a reader's words: slices, units of the verdict, who would have to attack."""

import re
from typing import Any

from reports import texts
from reports.scores import LEVELS, Interval, Row, Scores

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


def wire_words(form: str, mechanism: str) -> str:
    """What crosses the wire: of an entangled upload, by its mechanism.

    >>> wire_words("entangled", "RSP")
    'One vector per client and round (RSP): one prototype, selected at random, as it is; with it goes its label.'
    """
    name = mechanism.split(" ")[0]
    if form != "entangled" or name not in texts.MECHANISMS:
        return texts.FORMS.get(form, f"The form {form}.")
    label = "its label" if name in texts.SELECTED else "the same mixture of labels"
    return f"One vector per client and round ({name}): {texts.MECHANISMS[name]}; with it goes {label}."


def kind_words(kind: str, form: str, mechanism: str) -> str:
    """What a kind of disclosure or flag means for a form and its mechanism; an unknown kind stays.

    >>> kind_words("class_set", "entangled", "RSR"), kind_words("one_class_client", "prototype", "")
    ('classes seen in its uploads', 'holds one class, so it sends the prototype of that class alone')
    """
    known = texts.KINDS_OF.get(kind, {})
    return known.get(mechanism.split(" ")[0], known.get(form, texts.KINDS.get(kind, kind)))


def numbers_row(scores: Scores) -> tuple[int, Row] | None:
    """The declared row whose numbers stand beside the verdict, and its place; None where no row has them."""
    verdict = scores["verdict"]
    rows = [(i, row) for i, row in enumerate(scores["rows"]) if row["headline"]]
    numbers = verdict.get("numbers")
    if numbers is None:
        return rows[0] if rows else None
    same = [r for r in rows if (r[1]["metric"], r[1]["value"]) == (numbers["metric"], numbers["form"])]
    worst = verdict["worst"] if isinstance(verdict["worst"], dict) else {}
    wanted = {**{key: worst[key] for key in UNIT if key in worst}, "target": numbers.get("target")}
    # Equal values are told apart by the unit that decided.
    return max(same, key=lambda pair: sum(pair[1].get(key) == value for key, value in wanted.items()), default=None)


def interval_words(interval: Interval) -> str:
    """A 95 % interval on a terminal.

    >>> interval_words([11.491, 12.61]), interval_words(None)
    ('95 % 11.49 to 12.61', 'no interval')
    """
    low, high = interval or (None, None)
    return "no interval" if low is None or high is None else f"95 % {low:.2f} to {high:.2f}"


def guess_words(scores: Scores) -> str:
    """Which floor stands beside the verdict: the mean image or the best guess."""
    numbers = scores["verdict"].get("numbers")
    against = numbers.get("against", "best") if numbers else "best"
    return texts.GUESS.get(against, against)


def ceiling_words(scores: Scores) -> str:
    """Why the verdict's numbers have no ceiling; empty where they have one, or where there are no numbers."""
    numbers, found = scores["verdict"].get("numbers"), numbers_row(scores)
    target = found[1]["target"] if found else "members"
    target = numbers.get("target", target) if numbers else target
    ceiling = numbers["ceiling"] if numbers else found[1]["ceiling"] if found else 0.0
    said = texts.NO_CEILING[target not in ("members", "clients")]
    return "" if ceiling is not None else said.format(target=texts.TARGETS.get(target, target))


def measured_words(scores: Scores) -> str:
    """Whose numbers stand beside the verdict: attack, stream, slice and target; empty where no row has them."""
    found = numbers_row(scores)
    if found is None:
        return ""
    row = found[1]
    about = row["attack"], f"level {row['level']}", stream_words(row["stream"]), slice_words(row["slice"])
    return f"{', '.join(about)}, compared with {texts.TARGETS.get(row['target'], row['target'])}"


def best_guess_words(scores: Scores) -> str:
    """How the attacker stands to a best guess that is better than the mean image named beside the verdict.

    'above', 'below' or 'not told apart from'; empty where the best guess is named anyway, or is the mean image.
    """
    numbers, found = scores["verdict"].get("numbers"), numbers_row(scores)
    if numbers is None or numbers.get("against") != "mean_image" or found is None:
        return ""
    row = found[1]
    best, gain = row["floor"]["best"], row["gain"]["best"]
    if best is None or numbers["floor"] is None or gain is None or gain["value"] is None:
        return ""
    if best == numbers["floor"] or (best > numbers["floor"]) != (row["more_leakage"] == "higher"):
        return ""
    low, high = gain["ci95"] or (None, None)
    if low is not None and high is not None and low <= 0 <= high:
        return "not told apart from"
    return "above" if gain["value"] > 0 else "below"


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
        "tried": sorted({row["level"] for row in rows} - {"Q0"}),
        "tried_alone": any(row["level"] == "Q0" for row in rows),
        "alone": _alone(scores),
    }
