"""compare.json, version 1, and its page: many forms on the same clients, images, seeds and attacker budget."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from markupsafe import Markup

from reports import figures, texts
from reports.lowering import effect
from reports.numbers import KINDS, Shown, format_number
from reports.pages import environment, write_page
from reports.schema import read_document
from reports.scores import Accuracy, Dataset, Grounds, Interval, Lowering, Number, Row, Run, Traffic, Verdict, Volatile

COMPARE_SCHEMA_VERSION = 1


class Arm(TypedDict):
    """One form or mechanism: `path` is its run folder below the comparison's, with its own report."""

    name: str
    form: str
    mechanism: str
    system: str
    path: str
    accuracy: Accuracy
    traffic: Traffic
    verdict: Verdict
    grounds: NotRequired[Grounds]
    rows: list[Row]


class Difference(TypedDict):
    """Value of `arm` minus value of `reference`, paired by client; positive leaks more where `more_leakage` is higher.

    interval_unit: 'client', or 'none' where there are too few clients for an interval.
    """

    arm: str
    reference: str
    attack: str
    target: str
    metric: str
    unit: str
    more_leakage: Literal["higher", "lower"]
    value: Number
    ci95: Interval
    n_clusters: int
    interval_unit: str


class Comparison(TypedDict):
    """compare.json. lowering: every other arm as a change of `reference_arm`, what its clients would leak instead.

    trained_arm: the one that the server learned from; the reference is another where it was not assessed.
    """

    schema_version: int
    run: Run
    volatile: Volatile
    dataset: Dataset
    clients: int
    rounds: int
    shared_training: bool
    arms: list[Arm]
    differences: list[Difference]
    lowering: NotRequired[list[Lowering]]
    reference_arm: NotRequired[str]
    trained_arm: NotRequired[str]


def load_comparison(path: Path) -> Comparison:
    """Read and check compare.json; SchemaError names the file and every problem in one sentence."""
    return cast(Comparison, read_document(path, Comparison, COMPARE_SCHEMA_VERSION, "audit compare"))


def headline(arm: Arm) -> tuple[int, Row] | None:
    """The row an arm is drawn by: the highest PSNR against all contributing images, over its attackers and streams."""
    rows = [
        (i, row)
        for i, row in enumerate(arm["rows"])
        if (row["metric"], row["target"], row["slice"]) == ("psnr", "members", "all") and row["value"] is not None
    ]
    return max(rows, key=lambda pair: pair[1]["value"] or 0.0) if rows else None


def _points(made: Comparison, x: Callable[[Arm], Number]) -> list[figures.Point]:
    found = []
    for arm in made["arms"]:
        row, place = headline(arm), x(arm)
        if row is not None and place is not None:
            lo, hi = row[1]["ci95"] or (None, None)
            found.append(figures.Point(arm["name"], place, row[1]["value"] or 0.0, lo, hi, row[1]["floor"]["best"]))
    return found


def _plots(made: Comparison) -> list[dict[str, Any]]:
    """Leakage against utility and against bytes."""
    plots = []
    for title, label, x, kind in (
        ("Leakage against accuracy", "accuracy, last round", lambda arm: arm["accuracy"]["last"]["weighted"], "share"),
        ("Leakage against traffic", "bytes a round, both ways", lambda arm: arm["traffic"]["bytes"], "plain"),
    ):
        if points := _points(made, x):
            svg = figures.scatter(
                points, title=title, x_label=label, y_label="PSNR, dB: up leaks more",
                fmt=partial(format_number, kind="dB"), x_fmt=partial(format_number, kind=kind),
            )  # fmt: skip
            plots.append({"title": title, "svg": Markup(svg), "labels": [point.label for point in points]})
    return plots


def _differences(made: Comparison) -> list[dict[str, Any]]:
    """One table per attack, target and metric: arms down, references across."""
    tables: dict[Any, dict[str, Any]] = {}
    for i, one in enumerate(made["differences"]):
        same = one["attack"], one["target"], one["metric"]
        table = tables.setdefault(same, {"attack": one["attack"], "target": one["target"], "metric": one["metric"],
                                         "unit": one["unit"], "more_leakage": one["more_leakage"],
                                         "references": [], "arms": {}})  # fmt: skip
        if one["reference"] not in table["references"]:
            table["references"].append(one["reference"])
        table["arms"].setdefault(one["arm"], {})[one["reference"]] = (i, one)
    return list(tables.values())


def render_comparison(folder: Path) -> str:
    """HTML of a comparison folder (compare.json). The same file gives the same text. Raises SchemaError."""
    made = load_comparison(folder / "compare.json")
    show = Shown(made)
    return environment().get_template("compare.html.j2").render(
        made=made, num=show.number, ci=show.interval, any=show.anything, plots=_plots(made), texts=texts,
        differences=_differences(made), headline=headline, KINDS=KINDS, effect=effect,
    )  # fmt: skip


def render_comparison_card(folder: Path) -> str:
    """The table of a comparison as a small piece of HTML, for notebooks. Raises SchemaError."""
    made = load_comparison(folder / "compare.json")
    return environment().get_template("compare_card.html.j2").render(
        made=made, num=Shown(made).number, headline=headline, report=folder / "compare.html"
    )  # fmt: skip


def write_comparison(folder: Path) -> Path:
    """Write `compare.html` into the folder, whole or not at all; returns its path. Raises SchemaError."""
    return write_page(folder / "compare.html", render_comparison(folder))


def dump_comparison(made: Comparison) -> str:
    """Canonical text of compare.json."""
    return json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
