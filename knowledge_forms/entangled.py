"""Entangled representations: one vector and one soft label encoding per round (FedRE, CVPR 2026, arXiv 2511.22265).

A mechanism is spelled by its letters: R random or V vanilla weights, S one item selected or A all averaged, the items
being R representations or P class prototypes. Only RAP is in the authors' code; the other five are our reading.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from knowledge_forms.base import FORMS, KnowledgeForm, Mixing
from knowledge_forms.registry import Registry

Draw = Callable[[int, torch.Generator], Tensor]
LAWS: Registry[Draw] = Registry("weight law")
"""Name -> raw draws [size] float64 of any sign; absolute value and normalisation come after."""


@LAWS.register("uniform")
def uniform(size: int, generator: torch.Generator) -> Tensor:
    """U(0,1), as in the authors' code."""
    return torch.rand(size, generator=generator, dtype=torch.float64)


@LAWS.register("gaussian")
def gaussian(size: int, generator: torch.Generator) -> Tensor:
    """Standard normal."""
    return torch.randn(size, generator=generator, dtype=torch.float64)


@LAWS.register("laplace")
def laplace(size: int, generator: torch.Generator) -> Tensor:
    """Laplace of scale 1: the difference of two standard exponentials."""
    pair = -torch.log1p(-torch.rand(2, size, generator=generator, dtype=torch.float64))
    return pair[0] - pair[1]


def normalise(draws: Tensor) -> Tensor:
    """Draws [m] of any sign -> weights [m] float64 >= 0 that sum to 1, whatever was drawn.

    >>> normalise(torch.tensor([-1.0, 3.0])).tolist(), normalise(torch.zeros(2)).tolist()
    ([0.25, 0.75], [0.5, 0.5])
    """
    positive = draws.double().abs().clamp_(min=1e-12)  # never a zero sum
    return positive / positive.sum()


@dataclass(frozen=True)
class Mechanism:
    """items: what is mixed. weighting: how. discloses: what its label encoding tells the server."""

    items: Literal["representations", "prototypes"]
    weighting: Literal["select", "equal", "random"]
    discloses: str


MECHANISMS: Registry[Mechanism] = Registry("mechanism")
for _name, _mechanism in {
    "RSR": Mechanism("representations", "select", "the label of one image, whose representation is sent as it is"),
    "VAR": Mechanism("representations", "equal", "the exact share of every class among the client's images"),
    "RAR": Mechanism(
        "representations",
        "random",
        "the set of classes the client holds and a noisy share of each, which averages out over rounds",
    ),
    "RSP": Mechanism("prototypes", "select", "one class the client holds, whose prototype is sent as it is"),
    "VAP": Mechanism("prototypes", "equal", "the set of classes the client holds"),
    "RAP": Mechanism("prototypes", "random", "the set of classes the client holds and the exact mixing weights"),
}.items():
    MECHANISMS.register(_name)(_mechanism)


@FORMS.register("entangled")
class EntangledRepresentation(KnowledgeForm):
    """One weighted sum of a client's representations or prototypes, with the same sum of their labels.

    mechanism: RSR, VAR, RAR, RSP, VAP or RAP. law: uniform, gaussian or laplace, for random weights.
    weights: 'per_round' draws afresh each round; 'fixed' draws once per client, by class id (or by position for
    representations), so that a class keeps its draw while the class set around it changes.
    """

    name = "entangled"

    def __init__(
        self,
        *,
        mechanism: str = "RAP",
        law: str = "uniform",
        weights: Literal["per_round", "fixed"] = "per_round",
    ) -> None:
        self.mechanism = mechanism
        self.law = law
        self.weights = weights

    @property
    def lasting(self) -> bool:
        """Whether the same draws serve every round."""
        return self.weights == "fixed"

    @property
    def discloses(self) -> str:
        """What the label encoding of this mechanism tells the server."""
        told = MECHANISMS[self.mechanism].discloses
        return told.removesuffix(", which averages out over rounds") if self.lasting else told

    def mixing(self, labels: Tensor, num_classes: int, generator: torch.Generator) -> Mixing:
        """All samples enter the one row; of prototypes, each with its class's weight / (images of the class)."""
        mechanism, n = MECHANISMS[self.mechanism], len(labels)
        counts = torch.bincount(labels, minlength=num_classes)
        prototypes = mechanism.items == "prototypes"
        present = counts > 0 if prototypes else torch.ones(n, dtype=torch.bool)
        item = torch.zeros(len(present), dtype=torch.float64)
        item[present] = self._item_weights(mechanism.weighting, present, generator)
        weight = (item / counts.clamp(min=1))[labels] if prototypes else item
        return Mixing(row=torch.zeros_like(labels), weight=weight, n=1)

    def _item_weights(self, weighting: str, present: Tensor, generator: torch.Generator) -> Tensor:
        """Weights of the present items. Every item is drawn for, present or not: a draw belongs to its class id."""
        held = int(present.sum())
        if weighting == "equal":
            return torch.full((held,), 1.0 / held, dtype=torch.float64)
        if weighting == "random":
            return normalise(LAWS[self.law](len(present), generator)[present])
        scores = torch.rand(len(present), generator=generator, dtype=torch.float64)[present]
        return torch.zeros(held, dtype=torch.float64).index_fill_(0, scores.argmax(), 1.0)
