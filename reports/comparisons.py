"""compare.json, version 1, and its page: many forms on the same clients, images, seeds and attacker budget."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from markupsafe import Markup

from reports import figures, texts
from reports.lowering import effect
from reports.numbers import KINDS, Shown, format_number, look_up
from reports.pages import environment, write_page
from reports.schema import read_document
from reports.scores import Accuracy, Dataset, Grounds, Interval, Lowering, Number, Row, Run, Traffic, Verdict, Volatile

COMPARE_SCHEMA_VERSION = 1
MIN_CLIENTS = 4
"""From how many clients on an interval speaks of clients (fedre_audit.audit.intervals, which reports cannot import)."""
SELECTED = ("RSR", "RSP")
"""Mechanisms that upload one item, selected at random: their images are few, and not those behind other forms."""


class Arm(TypedDict):
    """One form or mechanism: `path` is its run folder below the comparison's, with its own report.

    rows: those of its own form over all classes.
    """

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
    """The row an arm is drawn by: PSNR on all contributing images by its strongest attacker, of whatever stream.

    The rule of fedre_audit.stages.lowering.strongest: validated rows, of enough clients, then by gain over the best
    floor. Where nothing else is there a row may be drawn that is not validated, or of few clients; the page says so.
    """
    rows = [
        (i, row)
        for i, row in enumerate(arm["rows"])
        if (row["metric"], row["target"], row["slice"]) == ("psnr", "members", "all")
        and row["value"] is not None
        and "curve" not in row
    ]

    def leak(pair: tuple[int, Row]) -> tuple[bool, bool, float, float]:
        row = pair[1]
        gain = (row["gain"]["best"] or {"value": None})["value"]
        enough = row["n_clusters"] >= MIN_CLIENTS
        return row["status"] == "ok", enough, -inf if gain is None else gain, row["value"] or 0.0

    return max(rows, key=leak, default=None)


def doubts(row: Row) -> str:
    """What keeps a row from speaking for all clients, in words; empty where nothing does."""
    said = {"ok": "", "not_validated": "? not validated", "failed": "✗ failed"}[row["status"]]
    few = row["n_clusters"] < MIN_CLIENTS
    clients = f"{row['n_clusters']} client{'s' if row['n_clusters'] != 1 else ''} only" if few else ""
    return "; ".join(filter(None, (said, clients)))


def _points(made: Comparison, x: Callable[[Arm], Number]) -> list[figures.Point]:
    found = []
    for arm in made["arms"]:
        row, place = headline(arm), x(arm)
        if row is not None and place is not None:
            lo, hi = row[1]["ci95"] or (None, None)
            label = f"{arm['name']} ({doubts(row[1])})" if doubts(row[1]) else arm["name"]
            found.append(figures.Point(label, place, row[1]["value"] or 0.0, lo, hi, row[1]["floor"]["best"]))
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


def _counts(made: Comparison, one: Difference) -> dict[str, str]:
    """Arm -> place of the number of images behind its side of a difference, which is of one round of uploads."""
    wanted = one["attack"], one["target"], one["metric"], "all", 1
    return {
        arm["name"]: f"/arms/{a}/rows/{i}/n"
        for a, arm in enumerate(made["arms"])
        for i, row in enumerate(arm["rows"])
        if (row["attack"], row["target"], row["metric"], row["slice"], row["stream"]) == wanted
    }


def _same_images(made: Comparison, tables: Sequence[dict[str, Any]]) -> bool:
    """Whether all differences are over the same images: no form selects some, and all count as many in each table."""
    if any(arm["mechanism"] in SELECTED for arm in made["arms"]):
        return False
    return all(len({look_up(made, place) for place in table["counts"].values()}) <= 1 for table in tables)


def _differences(made: Comparison) -> list[dict[str, Any]]:
    """One table per attack, target and metric: arms down, references across."""
    tables: dict[Any, dict[str, Any]] = {}
    for i, one in enumerate(made["differences"]):
        same = one["attack"], one["target"], one["metric"]
        table = tables.setdefault(same, {"attack": one["attack"], "target": one["target"], "metric": one["metric"],
                                         "unit": one["unit"], "more_leakage": one["more_leakage"],
                                         "references": [], "arms": {}, "counts": _counts(made, one)})  # fmt: skip
        if one["reference"] not in table["references"]:
            table["references"].append(one["reference"])
        table["arms"].setdefault(one["arm"], {})[one["reference"]] = (i, one)
    return list(tables.values())


def render_comparison(folder: Path) -> str:
    """HTML of a comparison folder (compare.json). The same file gives the same text. Raises SchemaError."""
    made = load_comparison(folder / "compare.json")
    show = Shown(made)
    differences = _differences(made)
    return environment().get_template("compare.html.j2").render(
        made=made, num=show.number, ci=show.interval, any=show.anything, plots=_plots(made), texts=texts,
        differences=differences, same_images=_same_images(made, differences), headline=headline, doubts=doubts,
        KINDS=KINDS, effect=effect,
    )  # fmt: skip


def render_comparison_card(folder: Path) -> str:
    """The table of a comparison as a small piece of HTML, for notebooks. Raises SchemaError."""
    made = load_comparison(folder / "compare.json")
    return environment().get_template("compare_card.html.j2").render(
        made=made, num=Shown(made).number, headline=headline, doubts=doubts, report=folder / "compare.html"
    )  # fmt: skip


def write_comparison(folder: Path) -> Path:
    """Write `compare.html` into the folder, whole or not at all; returns its path. Raises SchemaError."""
    return write_page(folder / "compare.html", render_comparison(folder))


def dump_comparison(made: Comparison) -> str:
    """Canonical text of compare.json."""
    return json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
