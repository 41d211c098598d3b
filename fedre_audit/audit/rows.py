"""Rows of scores.json: value, interval, floors and paired gains of one table and metric."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedre_audit.audit.intervals import estimate, unanimous
from fedre_audit.audit.metrics import facts, sign_of
from fedre_audit.audit.scoring import ATTACK, CHANCE, PERMUTED, PairScores, top_share

HITS = ("retrieval_top1", "retrieval_top5", "evaluator_accuracy")
"""Metrics that are 0 or 1 of each image."""
NO_GAIN = {"value": None, "ci95": None, "p": None, "df": None}


@dataclass(frozen=True)
class FormAttack:
    """Answers of one attack to one form, scored against one kind of target.

    stream: rounds of uploads the attacker used. trusted: unmixing validated, or none was needed.
    floors: which predictors of the table ignore the upload. candidates: size of the retrieval pool (median over
    pairs). budget: the attacker's steps and restarts.
    """

    form: str
    attack: str
    level: str
    round: int
    target: str
    table: PairScores
    stream: int = 1
    floors: tuple[str, ...] = ()
    trusted: bool = True
    candidates: float | None = None
    budget: tuple[int | None, int | None] = (None, None)


def summarise(table: PairScores, metric: str, *, floors: tuple[str, ...]) -> dict[str, Any]:
    """Value, interval, floors and paired gains of one metric; gains are positive where the attack leaks more.

    `p` is one-sided, of the gain being 0 or less. `best` is the floor that leaks most, chosen on the mean of the same
    targets. Pairs that are not finite for any predictor are counted in n_invalid and make the row 'failed'.
    """
    sign = sign_of(metric)
    columns = {name: named[metric] for name, named in table.values.items() if metric in named}
    finite = np.all([np.isfinite(column) for column in columns.values()], axis=0)
    row, client = table.row[finite], table.client[finite]
    kept = {name: column[finite] for name, column in columns.items()}
    own = estimate(kept[ATTACK], row, client)
    trials = own.clusters if own.unit == "client" else len(np.unique(row))
    sure = unanimous(own, trials) if metric in HITS else None
    means = {name: estimate(kept[name], row, client).value for name in (*floors, PERMUTED) if name in kept}
    usable = [name for name in floors if name in means and np.isfinite(means[name])]
    best = max(usable, key=lambda name: sign * means[name]) if usable else None
    gain: dict[str, Any] = {}
    floor: dict[str, Any] = {}
    for key, source in {
        "mean_image": "mean_image",
        "class_mean": "class_mean",
        "best": best,
        PERMUTED: PERMUTED,
    }.items():
        if source is None or source not in kept:
            gain[key], floor[key] = dict(NO_GAIN), None
            continue
        paired = estimate(sign * (kept[ATTACK] - kept[source]), row, client)
        gain[key] = {"value": paired.value, "ci95": paired.ci95, "p": paired.p, "df": paired.df}
        if sure is not None and source == CHANCE:  # chance hardly varies, so that this gain has no width either
            gain[key] |= {"ci95": (sure[0] - means[CHANCE], sure[1] - means[CHANCE])}
            if own.value == 1.0 and paired.p is not None:
                gain[key]["p"] = max(paired.p, min(1.0, means[CHANCE]) ** trials)
        floor[key] = means[source]
    invalid = int((~finite).sum())
    return {
        "metric": metric,
        "unit": facts(metric).unit,
        "more_leakage": facts(metric).more_leakage,
        "value": own.value,
        "ci95": sure or own.ci95,
        "n": len(finite),
        "n_invalid": invalid,
        "n_clusters": own.clusters,
        "n_rows": len(np.unique(row)),
        "interval_unit": own.unit,
        "floor": floor,
        "best_floor": best,
        "gain": gain,
        "chance": means.get(CHANCE),
        "status": "failed" if invalid else "ok",
        "reason": f"{invalid} of {len(finite)} answers are not finite" if invalid else None,
    }


def make_row(scored: FormAttack, part: str, table: PairScores, metric: str, auxiliary: int) -> dict[str, Any]:
    """The row of one slice and metric; `headline` and `ceiling` are filled in once all rows are there."""
    steps, restarts = scored.budget
    return {
        "form": scored.form,
        "attack": scored.attack,
        "level": scored.level,
        "stream": scored.stream,
        "round": scored.round,
        "target": scored.target,
        "slice": part,
        **summarise(table, metric, floors=scored.floors),
        "headline": False,
        "ceiling": None,
        "candidates": scored.candidates,
        "budget": {"auxiliary": auxiliary, "steps": steps, "restarts": restarts},
    }


def top_row(scored: FormAttack, metric: str, auxiliary: int) -> dict[str, Any]:
    """The leakiest 1 % of pairs: each predictor's own leakiest, so that luck is given to the floors as well."""
    row = make_row(scored, "top1%", scored.table, metric, auxiliary)
    means = top_share(scored.table, metric)
    kept = [name for name in scored.floors if name in means and np.isfinite(means[name])]
    best = max(kept, key=lambda name: sign_of(metric) * means[name]) if kept else None
    floor = {"mean_image": "mean_image", "class_mean": "class_mean", "best": best, PERMUTED: PERMUTED}
    row["floor"] = {key: means.get(source) if source else None for key, source in floor.items()}
    row["gain"] = {
        key: dict(NO_GAIN) if value is None else {**NO_GAIN, "value": sign_of(metric) * (means[ATTACK] - value)}
        for key, value in row["floor"].items()
    }
    return {**row, "value": means[ATTACK], "ci95": None, "best_floor": best, "n": max(1, -(-row["n"] // 100)),
            "n_invalid": 0}  # fmt: skip


def fill_ceilings(rows: list[dict[str, Any]], ceiling_form: str) -> None:
    """The ceiling of a row: the same attack, metric, target and slice on the raw representations.

    ceiling_n: of how many images it is, where not of the row's own: a budgeted attack decodes some rows of an upload,
    which are some images of the raw form and all of a mixture.
    """
    known = {
        (row["attack"], row["metric"], row["slice"]): (row["value"], row["n"])
        for row in rows
        if row["form"] == ceiling_form and row["target"] == "members" and row["stream"] == 1
    }
    for row in rows:
        if row["target"] in ("members", "clients"):
            row["ceiling"], n = known.get((row["attack"], row["metric"], row["slice"]), (None, None))
            if row["target"] == "members" and n not in (None, row["n"]):
                row["ceiling_n"] = n
