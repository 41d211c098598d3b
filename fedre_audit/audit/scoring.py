"""Tables of pairs: reconstructions against truth, beside every floor on the same targets. Truth enters here."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attacks.floors import FLOORS
from attacks.knowledge import Q0
from fedre_audit.audit.intervals import Floats, Ints
from fedre_audit.audit.metrics import sign_of
from fedre_audit.audit.truth import Targets
from fedre_audit.pictures import Answers, Chosen, Images, Pixels
from knowledge_forms.base import ServerView

ATTACK = "attack"
PERMUTED = "permuted"
CHANCE = "chance"
FLOOR_NAMES = tuple(floor.name for floor in FLOORS)
SLICES = {"n1": (1, 1), "n2-5": (2, 5), "n6-19": (6, 19), "n20+": (20, 10**9)}
"""Slices by how many training images the client has of the target's class."""
Values = dict[str, dict[str, Floats]]


@dataclass
class PairScores:
    """One table of target pairs of a form, an attack and a target kind.

    client, row, sample, members, label, count: [P]; values[predictor][metric]: [P]. `row` is unique across clients,
    `members` counts the images in the row, `count` the client's training images of class `label` (-1: a mixture).
    Predictors: 'attack', 'permuted', and every floor.
    """

    client: Ints
    row: Ints
    sample: Ints
    members: Ints
    label: Ints
    count: Ints
    values: Values = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.client)

    def subset(self, kept: NDArray[np.bool_] | Ints) -> "PairScores":
        """The pairs chosen by a mask or by positions."""
        return PairScores(
            **{name: getattr(self, name)[kept] for name in INDEX},
            values={who: {name: column[kept] for name, column in named.items()} for who, named in self.values.items()},
        )

    def with_values(self, values: Values) -> "PairScores":
        """The same pairs with other values."""
        return replace(self, values=values)


INDEX = ("client", "row", "sample", "members", "label", "count")


def index_pairs(targets: Targets, client: int, labels: Tensor, class_counts: Tensor) -> PairScores:
    """Pairs of one client, without values. labels: [P] class of each target, -1 for a mixture."""
    label = labels.numpy().astype(np.int64)
    count = np.where(label >= 0, class_counts.numpy()[np.maximum(label, 0)], targets.members.numpy())
    return PairScores(
        client=np.full(len(label), client, dtype=np.int64),
        row=targets.row.numpy().astype(np.int64),
        sample=targets.sample_ids.numpy().astype(np.int64),
        members=targets.members.numpy().astype(np.int64),
        label=label,
        count=count.astype(np.int64),
    )


def join(parts: list[PairScores]) -> PairScores:
    """Tables of several clients as one; rows are renumbered so that they stay unique."""
    offsets = np.cumsum([0] + [int(part.row.max(initial=-1)) + 1 for part in parts[:-1]])
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in INDEX}
    columns["row"] = np.concatenate([part.row + offset for part, offset in zip(parts, offsets, strict=True)])
    first = parts[0].values
    return PairScores(
        **columns,
        values={
            who: {name: np.concatenate([part.values[who][name] for part in parts]) for name in named}
            for who, named in first.items()
        },
    )


def slices(table: PairScores) -> Mapping[str, PairScores]:
    """The table whole ('all'), and by the class count of the target where there is any such pair."""
    found = {"all": table}
    for name, (low, high) in SLICES.items():
        inside = (table.count >= low) & (table.count <= high) & (table.label >= 0)
        if inside.any() and not inside.all():
            found[name] = table.subset(inside)
        elif inside.all():
            found[name] = table
    return found


def best_of(table: PairScores) -> PairScores:
    """One pair per row: the best value over its members, for each metric and each predictor for itself.

    The choice uses the truth, so the result is optimistic, and every floor is given the same choice.
    """
    order = np.argsort(table.row, kind="stable")
    starts = np.flatnonzero(np.diff(table.row[order], prepend=-1))
    index = table.subset(order[starts])
    values: Values = {}
    for who, named in table.values.items():
        values[who] = {}
        for name, column in named.items():
            sign = sign_of(name)
            values[who][name] = sign * np.maximum.reduceat(sign * column[order], starts)
    return replace(index, values=values, sample=np.full(len(index), -1, dtype=np.int64))


def top_share(table: PairScores, metric: str, share: float = 0.01) -> dict[str, float]:
    """Mean of the leakiest `share` of pairs (at least one), by predictor, each with its own choice."""
    found = {}
    for who, named in table.values.items():
        column = sign_of(metric) * named[metric][np.isfinite(named[metric])]
        kept = max(1, int(np.ceil(share * len(column))))
        found[who] = float(sign_of(metric) * np.sort(column)[-kept:].mean()) if len(column) else float("nan")
    return found


def private_images(images: Tensor, ids: Tensor) -> Images:
    """Private images [N,c,h,w] in [0,1] in the order of `ids`. images: uint8 data set."""
    return Chosen(Pixels(images), ids)


def floor_images(view: ServerView, images: Tensor, labels: Tensor, seed: int) -> dict[str, Images]:
    """What the attackers who ignore the upload answer, for the newest upload of one client: name -> [n,c,h,w]."""
    knowledge = Q0(images=images, labels=labels, num_classes=view.num_classes, seed=seed)
    return {floor.name: Answers(floor().fit(knowledge), view) for floor in FLOORS}
