"""The page: a pure function of scores.json and the strips of a run folder. No request leaves it."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from reports import figures, texts
from reports.advice import advice, option
from reports.lowering import effect
from reports.numbers import KINDS, Shown, format_number
from reports.pages import environment, write_page
from reports.reading import reading
from reports.schema import load_scores
from reports.scores import Row, Scores
from reports.strips import load_strips
from reports.words import attacker, numbers_row

Indexed = tuple[int, Row]
LEADING = ("psnr", "retrieval_top1", "membership_auc")
"""Metrics of the first table; the others stand in the second."""


def _headline(scores: Scores) -> dict[str, Any] | None:
    """Places of the three numbers of the verdict, and the row whose interval belongs to them."""
    numbers = scores["verdict"].get("numbers")
    carried = numbers_row(scores)
    if numbers:
        places = {name: f"/verdict/numbers/{name}" for name in ("floor", "form", "ceiling")}
        found: Any = numbers
    elif carried:
        i, row = carried
        places = {"floor": f"/rows/{i}/floor/best", "form": f"/rows/{i}/value", "ceiling": f"/rows/{i}/ceiling"}
        found = {"floor": row["floor"]["best"], "form": row["value"], "ceiling": row["ceiling"]}
        found |= {"metric": row["metric"], "unit": row["unit"]}
    else:
        return None
    at, own = carried or (None, None)
    kind = KINDS.get(found["metric"], "plain")
    lo, hi = (own["ci95"] if own else None) or (None, None)
    picture = figures.gauge(
        found["floor"], found["form"], lo, hi, found["ceiling"], found["unit"],
        higher_leaks=own["more_leakage"] == "higher" if own else found["metric"] != "mse",
        fmt=partial(format_number, kind=kind),
    )  # fmt: skip
    return {**places, "metric": found["metric"], "unit": found["unit"], "kind": kind, "at": at, "row": own,
            "gauge": Markup(picture)}  # fmt: skip


def _split(rows: Sequence[Indexed]) -> tuple[list[Indexed], list[Indexed]]:
    """Rows of the first table, and the others.

    First come the declared rows over all classes, and of each attack and leading metric the whole-upload, one-round
    row of most public images.
    """
    most: dict[Any, float] = {}
    for _, row in rows:
        same = row["form"], row["attack"], row["level"], row["metric"]
        most[same] = max(most.get(same, 0), row["budget"]["auxiliary"] or 0)

    def first(row: Row) -> bool:
        whole = (row["stream"], row["target"]) == (1, "members") and row["metric"] in LEADING
        same = row["form"], row["attack"], row["level"], row["metric"]
        return row["slice"] == "all" and (
            row["headline"] or (whole and (row["budget"]["auxiliary"] or 0) == most[same])
        )

    return [pair for pair in rows if first(pair[1])], [pair for pair in rows if not first(pair[1])]


def _truth_known(scores: Scores) -> bool:
    return any(u.get("true_error") is not None for u in scores["unmixing"])


def _participation(scores: Scores) -> str | None:
    """The share of clients in a round, as the command writes it; None where all take part or it is not known."""
    share = option(scores, "participation")
    try:
        return share if share is not None and 0 < float(share) < 1 else None
    except ValueError:
        return None


def _recovery(scores: Scores) -> Markup | None:
    """Predicted beside true error of every client's prototypes; None where neither is known of any."""
    rows = [(f"client {u['client']}", u["predicted_error"], u.get("true_error")) for u in scores["unmixing"]]
    if all(row[1:] == (None, None) for row in rows):
        return None
    title = "Recovered against true prototypes" if _truth_known(scores) else "Predicted error of recovered prototypes"
    return Markup(figures.recovery_chart(rows, title=title))


def _by_form(rows: Sequence[Indexed], first: str) -> dict[str, list[Indexed]]:
    names = sorted({row["form"] for _, row in rows}, key=lambda name: (name != first, name))
    return {name: [pair for pair in rows if pair[1]["form"] == name] for name in names}


def _reasons(rows: Sequence[Indexed]) -> dict[str, list[str]]:
    """Reasons that several rows give -> their attacks: said once, above the table."""
    given: dict[str, list[str]] = {}
    for _, row in rows:
        if row["reason"]:
            given.setdefault(row["reason"], []).append(row["attack"])
    return {reason: sorted(set(attacks)) for reason, attacks in given.items() if len(attacks) > 1}


def breakable(name: str) -> Markup:
    """A name that may break after an underscore, so that it fits a narrow column."""
    return Markup("_<wbr>").join(str(name).split("_"))


def _by_client(scores: Scores) -> tuple[list[str], dict[int, dict[str, list[int]]]]:
    """Kinds of disclosures in the order met, and client -> kind -> places in the list."""
    found: dict[int, dict[str, list[int]]] = {}
    for i, disclosure in enumerate(scores["disclosures"]):
        found.setdefault(disclosure["client"], {}).setdefault(disclosure["kind"], []).append(i)
    return list(dict.fromkeys(d["kind"] for d in scores["disclosures"])), found


def _mini(row: Row) -> Markup:
    lo, hi = row["ci95"] or (None, None)
    higher = row["more_leakage"] == "higher"
    args = (row["floor"]["best"], row["value"], lo, hi, row["ceiling"])
    return Markup(figures.gauge(*args, higher_leaks=higher, mini=True))


def _charts(rows: Sequence[Indexed], x: Callable[[Row], float | None], rest: Callable[[Row], Any], x_label: str,
            title: str) -> list[dict[str, Any]]:  # fmt: skip
    """One chart per metric, target and slice of the rows whose `x` takes two values or more, all else equal.

    Slices by class size are drawn where points were measured for a curve.
    """
    lines: dict[Any, dict[float, Indexed]] = {}
    for i, row in rows:
        place = x(row)
        if row["value"] is None or place is None or not (row["slice"] == "all" or row["slice"] in texts.BY_SIZE):
            continue
        same = row["metric"], row["target"], row["slice"], row["form"], row["attack"], row["level"], rest(row)
        lines.setdefault(same, {})[place] = (i, row)
    charts = []
    panels: dict[tuple[str, str, str], list[Any]] = {}
    for same, points in lines.items():
        measured = any("curve" in row for _, row in points.values())
        if len(points) > 1 and (measured or same[2] == "all"):
            panels.setdefault(same[:3], []).append((same, sorted(points.items())))
    for (metric, target, part), found in panels.items():
        drawn = [
            figures.Line(
                f"{same[3]}, {same[4]} ({same[5]})",
                [(place, row["value"], *(row["ci95"] or (None, None))) for place, (_, row) in points],
                [row["floor"]["best"] for _, (_, row) in points],
            )
            for same, points in found
        ]
        last = found[0][1][-1][1][1]
        fmt = partial(format_number, kind=KINDS.get(metric, "plain"))
        picture = figures.line_chart(
            drawn, title=title, x_label=x_label, y_label=f"{texts.METRICS.get(metric, metric)} {last['unit']}".strip(),
            fmt=fmt,
        )  # fmt: skip
        table = [(line.label, points) for line, (_, points) in zip(drawn, found, strict=True)]
        ends = [points[-1][1][1]["reason"] for _, points in found if any("curve" in row for _, (_, row) in points)]
        charts.append({"svg": Markup(picture), "metric": metric, "target": target, "slice": part, "x": x_label,
                       "lines": table, "reasons": list(dict.fromkeys(filter(None, ends))),
                       "more_leakage": last["more_leakage"],
                       "one_floor": figures.common_floor(drawn, fmt) is not None})  # fmt: skip
    return charts


def _budget(row: Row, name: str) -> float | None:
    return row["budget"][name]  # type: ignore[literal-required]


def _all_but(row: Row, name: str) -> tuple[object, ...]:
    return row["stream"], *(value for key, value in row["budget"].items() if key != name)


def _all_charts(rows: Sequence[Indexed]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    names = ("auxiliary", "steps", "restarts")
    rounds = _charts(rows, lambda row: row["stream"], lambda row: tuple(row["budget"].values()),
                     "rounds of uploads the attacker used", "Leakage over rounds")  # fmt: skip
    budgets = []
    for name, label in zip(names, ("public images the attacker holds", "steps", "restarts"), strict=True):
        budgets += _charts(rows, partial(_budget, name=name), partial(_all_but, name=name), label,
                           "Leakage over attacker budget")  # fmt: skip
    return rounds, budgets


def render(run_dir: Path) -> str:
    """HTML of a run folder (scores.json, and strips/ where there is one). Raises SchemaError.

    The same files give the same text, byte for byte.
    """
    scores = load_scores(run_dir / "scores.json")
    rows = list(enumerate(scores["rows"]))
    show = Shown(scores)
    strips, left_out = load_strips(run_dir)
    rounds, budgets = _all_charts(rows)
    distributions = [
        {**bins, "svg": Markup(figures.histogram(
            bins["edges"], bins["counts"], title=f"Gains of single images, {bins['form']}, {bins['attack']}",
            x_label=f"gain over the best floor, {texts.METRICS.get(bins['metric'], bins['metric'])}"))}
        for bins in scores.get("distributions", [])
    ]  # fmt: skip
    first = scores["federation"]["form"]
    main_rows, other_rows = _split([(i, row) for i, row in rows if "curve" not in row])
    return environment().get_template("report.html.j2").render(
        scores=scores, show=show, num=show.number, ci=show.interval, any=show.anything, mini=_mini,
        of_class=show.of_class, who=attacker(scores), grounds=scores.get("grounds"),
        fmt=format_number, headline=_headline(scores),
        main_rows=_by_form(main_rows, first),
        other_rows=_by_form(other_rows, first),
        slices=[(i, row) for i, row in rows if row["slice"] in texts.BY_SIZE and "curve" not in row
                and row["metric"] in LEADING and row["target"] == "members"],
        recovery=_recovery(scores), truth_known=_truth_known(scores), leading=LEADING, reading=reading(scores),
        exposure=scores.get("exposure"), distributions=distributions, rounds=rounds, budgets=budgets,
        strips=strips, strips_left_out=left_out, levels_used={row["level"] for _, row in rows},
        reasons=_reasons([*main_rows, *other_rows]), disclosures=_by_client(scores), breakable=breakable, effect=effect,
        advice=advice(scores), participation=_participation(scores),
    )  # fmt: skip


def render_card(run_dir: Path) -> str:
    """The verdict of a run as a small piece of HTML, for notebooks: no style sheet, no script. Raises SchemaError."""
    scores = load_scores(run_dir / "scores.json")
    show = Shown(scores)
    return environment().get_template("card.html.j2").render(
        scores=scores, num=show.number, ci=show.interval, headline=_headline(scores), report=run_dir / "report.html"
    )  # fmt: skip


def write_report(run_dir: Path) -> Path:
    """Write `report.html` into the run folder, whole or not at all; returns its path. Raises SchemaError."""
    return write_page(run_dir / "report.html", render(run_dir))
