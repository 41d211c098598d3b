"""Leakage over attacker budget: rows of the followed attack at a share of the rounds and of the public images.

Their rows are points of curves and never headline. A curve that still rises at its end is said in the `reason` of the
row with the whole budget: the value is then a lower bound, and a more patient attacker gets more.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attacks.budget import saturated
from fedre_audit.audit.intervals import Floats
from fedre_audit.audit.retrieval import retrieve
from fedre_audit.audit.rows import FormAttack, make_row
from fedre_audit.audit.scoring import CHANCE, FLOOR_NAMES, PairScores, join, slices
from fedre_audit.audit.truth import by_class
from fedre_audit.stages.attack import STREAMED, UNMIXING, client_file, read_unmixed
from fedre_audit.stages.points import FOLLOWED, Point, points
from fedre_audit.stages.tables import Case, image_values
from knowledge_forms.base import ServerView

SLICED = ("all", "n1", "n2-5")
TOLERANCES = {"psnr": 0.1, "retrieval_top1": 0.01}
"""What the last doubling of a budget may still gain where the leakage counts as saturated."""
WORDS = {"rounds": "rounds of uploads", "auxiliary": "public images"}


@dataclass(frozen=True)
class Part:
    """What one client adds to one point of a curve, for the rows of one metric.

    trusted: the unmixing of the whole stream validated, so that every point is of the same clients. valid: of this
    share of it. sizes: [P] of the retrieval pools.
    """

    point: Point
    metric: str
    form: str
    trusted: bool
    valid: bool
    meta: dict[str, Any]
    table: PairScores
    sizes: Floats


def follow(case: Case, view: ServerView) -> Iterator[Part]:
    """Parts of one client: of its unmixed stream, or of its raw rows. view: the client's uploads as recorded.

    Single representations in the clear (RSR) are not followed: fewer rounds show other images, not the same ones less.
    """
    config = case.run.config
    if case.stream > 1:
        for point in points(config, "rounds"):
            path = client_file(case.run, STREAMED, UNMIXING, case.client, point=point.folder)
            if path.is_file():
                recovered, known = read_unmixed(case.run, view, case.client, point.folder)
                if recovered is not None and recovered.form == "prototype":
                    classes = recovered.latest.label_encoding.argmax(1)
                    labels = case.prepared.data.labels[case.contribution.sample_ids]
                    truth = by_class(case.contribution, labels, classes)
                    shorter = replace(case, view=recovered, contribution=truth, stream=known["rounds"])
                    yield from parts_of(shorter, point, known["status"] == "validated")
    else:
        for point in points(config, "auxiliary"):
            yield from parts_of(case, point, True)


def parts_of(case: Case, point: Point, valid: bool) -> Iterator[Part]:
    """PSNR of every member, and on a stream how often it is picked out; nothing where the attack did not run."""
    answered = case.answers(FOLLOWED, point.folder)
    if answered is None:
        return
    images, meta = answered
    targets, index = case.targets("members")
    table = index.with_values(image_values(case.floors | images, targets, ("psnr",)))
    yield Part(point, "psnr", case.form, case.trusted, valid, meta, table, np.zeros(0))
    if point.axis == "rounds":
        picks, sizes = retrieve(index, images, targets.images, *case.others)
        if len(picks):
            yield Part(point, "retrieval_top1", case.form, case.trusted, valid, meta, picks, sizes)


def groups_of(parts: list[Part]) -> dict[tuple[str, Point, str], list[Part]]:
    """Parts of every client by form, point and metric; of streams, those validated if there are any."""
    groups: dict[tuple[str, Point, str], list[Part]] = {}
    trusted = {(part.form, part.metric) for part in parts if part.trusted}
    for part in parts:
        if part.trusted or (part.form, part.metric) not in trusted:
            groups.setdefault((part.form, part.point, part.metric), []).append(part)
    return groups


def rows_of_parts(parts: list[Part], whole: list[dict[str, Any]], auxiliary: int) -> list[dict[str, Any]]:
    """Rows of every point. whole: the rows of the whole budget, whose `reason` says where a curve still rises."""
    rows = [row for group in groups_of(parts).values() for row in rows_of_point(group, auxiliary)]
    for row in whole:
        if row["attack"] == FOLLOWED and row["target"] == "members" and row["metric"] in TOLERANCES:
            for axis in WORDS:
                mark(row, axis, rows)
    return rows


def rows_of_point(group: list[Part], auxiliary: int) -> Iterator[dict[str, Any]]:
    """Rows of one point and metric: whole, and on a stream by tiny class."""
    first = group[0]
    axis, meta, table = first.point.axis, first.meta, join([part.table for part in group])
    rated = first.metric == "retrieval_top1"
    scored = FormAttack(
        form=first.form, attack=FOLLOWED, level=meta["level"], round=meta["round"], target="members", table=table,
        stream=meta["stream"], trusted=first.trusted, floors=(CHANCE,) if rated else FLOOR_NAMES,
        candidates=float(np.median(np.concatenate([part.sizes for part in group]))) if rated else None,
        budget=(meta["steps"], meta["restarts"]),
    )  # fmt: skip
    images = meta["auxiliary"] if axis == "auxiliary" else auxiliary
    valid = sum(part.valid for part in group)
    for name, kept in slices(table).items():
        if name == "all" or (axis == "rounds" and name in SLICED):
            row = make_row(scored, name, kept, first.metric, images) | {"curve": axis}
            if valid < len(group) and row["status"] == "ok":
                why = f"unmixing of so few rounds validated for {valid} of {len(group)} clients"
                row |= {"status": "not_validated", "reason": why}
            yield row


def amount(row: dict[str, Any], axis: str) -> int:
    """How much of a budget a row had."""
    return int(row["stream"] if axis == "rounds" else row["budget"]["auxiliary"])


def mark(row: dict[str, Any], axis: str, points_of_curves: list[dict[str, Any]]) -> None:
    """Give the points of the row's curve its ceiling, and say in its reason where the curve still rises."""
    curve = [
        point
        for point in points_of_curves
        if point["curve"] == axis and amount(point, axis) < amount(row, axis)
        and all(point[key] == row[key] for key in ("form", "metric", "slice"))
        and (axis == "rounds" or point["stream"] == row["stream"])
    ]  # fmt: skip
    if not curve:
        return
    for point in curve:
        point["ceiling"] = row["ceiling"]
    ends = sorted([*curve, row], key=lambda point: amount(point, axis))
    budgets, leakage = [amount(end, axis) for end in ends], [float(end["value"]) for end in ends]
    if row["status"] == "ok" and not saturated(budgets, leakage, tolerance=TOLERANCES[row["metric"]]):
        said = f"not saturated: more {WORDS[axis]} may leak more"
        row["reason"] = f"{row['reason']}; {said}" if row["reason"] else said
