"""Scores: reconstructions against truth, beside the floors on the same targets. Truth enters here and nowhere else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from attacks.floors import FLOORS
from attacks.knowledge import Q0
from fedre_audit.audit.intervals import Floats, Ints, estimate
from fedre_audit.audit.metrics import METRICS, score_images
from fedre_audit.audit.truth import Contribution, make_targets
from knowledge_forms.base import ServerView

FLOOR_KEYS = ("mean_image", "class_mean", "best", "permuted")
ATTACK = "attack"
PERMUTED = "permuted"


@dataclass
class PairScores:
    """One table of target pairs of a form, an attack and a target kind.

    client, row, sample, members: [P]; values[predictor][metric]: [P]. `row` is unique across clients.
    Predictors: 'attack', 'permuted', and every floor.
    """

    client: Ints
    row: Ints
    sample: Ints
    members: Ints
    values: dict[str, dict[str, Floats]] = field(default_factory=dict)


@dataclass(frozen=True)
class FormAttack:
    """Reconstructions of one form by one attack, scored against one kind of target."""

    form: str
    attack: str
    level: str
    round: int
    target: str
    table: PairScores


def score_client(
    target: str,
    contribution: Contribution,
    private: Tensor,
    predictions: Mapping[str, Tensor],
    metrics: tuple[str, ...],
    client: int,
) -> PairScores:
    """Pairs of one client. private: [N,c,h,w] in `sample_ids` order; predictions: predictor -> images [n,c,h,w]."""
    targets = make_targets(target, contribution, private)
    row = targets.row.numpy().astype(np.int64)
    values = {
        predictor: {k: v.numpy() for k, v in score_images(metrics, images[targets.row], targets.images).items()}
        for predictor, images in predictions.items()
    }
    return PairScores(
        client=np.full(len(row), client, dtype=np.int64),
        row=row,
        sample=targets.sample_ids.numpy().astype(np.int64),
        members=targets.members.numpy().astype(np.int64),
        values=values,
    )


def join(parts: list[PairScores]) -> PairScores:
    """Tables of several clients as one; rows are renumbered so that they stay unique."""
    offsets = np.cumsum([0] + [int(part.row.max()) + 1 for part in parts[:-1]])
    first = parts[0].values
    return PairScores(
        client=np.concatenate([part.client for part in parts]),
        row=np.concatenate([part.row + offset for part, offset in zip(parts, offsets, strict=True)]),
        sample=np.concatenate([part.sample for part in parts]),
        members=np.concatenate([part.members for part in parts]),
        values={
            predictor: {name: np.concatenate([part.values[predictor][name] for part in parts]) for name in named}
            for predictor, named in first.items()
        },
    )


def summarise(table: PairScores, metric: str, *, floors: tuple[str, ...]) -> dict[str, Any]:
    """Value, interval, floors and paired gains of one metric; gains are positive where the attack leaks more.

    Pairs that are not finite for any predictor are counted in n_invalid and make the row 'failed'.
    """
    sign = METRICS[metric].sign
    columns = {name: named[metric] for name, named in table.values.items() if metric in named}
    finite = np.all([np.isfinite(column) for column in columns.values()], axis=0)
    row, client = table.row[finite], table.client[finite]
    kept = {name: column[finite] for name, column in columns.items()}
    own = estimate(kept[ATTACK], row, client)
    means = {name: estimate(kept[name], row, client).value for name in (*floors, PERMUTED) if name in kept}
    usable = [name for name in floors if np.isfinite(means[name])]
    best = max(usable, key=lambda name: sign * means[name]) if usable else None
    sources = {"mean_image": "mean_image", "class_mean": "class_mean", "best": best, PERMUTED: PERMUTED}
    gain: dict[str, Any] = {}
    floor: dict[str, Any] = {}
    for key, source in sources.items():
        if source is None or source not in kept:
            gain[key], floor[key] = {"value": None, "ci95": None}, None
            continue
        paired = estimate(sign * (kept[ATTACK] - kept[source]), row, client)
        gain[key] = {"value": paired.value, "ci95": paired.ci95}
        floor[key] = means[source]
    invalid = int((~finite).sum())
    return {
        "metric": metric,
        "unit": METRICS[metric].unit,
        "more_leakage": METRICS[metric].more_leakage,
        "value": own.value,
        "ci95": own.ci95,
        "n": len(finite),
        "n_invalid": invalid,
        "n_clusters": own.clusters,
        "interval_unit": own.unit,
        "floor": floor,
        "best_floor": best,
        "gain": gain,
        "status": "failed" if invalid else "not_validated",
        "reason": f"{invalid} of {len(finite)} reconstructions are not finite"
        if invalid
        else "competence not yet checked",
    }


def private_images(images: Tensor, contribution: Contribution) -> Tensor:
    """The private images of one upload, [N,c,h,w] in [0,1], in `sample_ids` order. images: uint8 data set."""
    return images[contribution.sample_ids].float() / 255.0


def floor_images(view: ServerView, images: Tensor, labels: Tensor, seed: int) -> dict[str, Tensor]:
    """What the attackers who ignore the upload answer, for the newest upload of one client: name -> [n,c,h,w]."""
    knowledge = Q0(images=images, labels=labels, num_classes=view.num_classes, seed=seed)
    return {floor.name: floor().fit(knowledge).reconstruct(view).images for floor in FLOORS}
