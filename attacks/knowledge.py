"""Threat levels as types: an attacker is handed exactly what its level allows, and can reach nothing else.

| level | attacker has                                | who                                              |
|-------|---------------------------------------------|--------------------------------------------------|
| Q0    | uploads, its own classifier, public images  | the server alone, in a model-heterogeneous system |
| Q1    | + the client's architecture                 | a server that knows which model each client runs |
| Q2    | + answers of the client's encoder           | a colluding client with the same model           |
| Q3    | + the encoder's weights                     | the auditor's worst case                         |
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from knowledge_forms.base import Classifier, Encoder
from knowledge_forms.class_means import class_means
from knowledge_forms.errors import AuditError


@dataclass(frozen=True)
class Q0:
    """Public auxiliary images [N,c,h,w] in [0,1] in random order, labels [N], the number of classes, a seed.

    A label of -1 belongs to an image of none of the clients' classes. classifiers: the server's own heads, by round.
    """

    images: Tensor
    labels: Tensor
    num_classes: int
    seed: int
    classifiers: Mapping[int, Classifier] = field(default_factory=dict, kw_only=True)

    level = "Q0"

    def __post_init__(self) -> None:
        if len(self.images) == 0:
            raise AuditError("no auxiliary images: every attack needs some; raise --auxiliary_images or add data")

    def generator(self) -> torch.Generator:
        """A fresh generator: what one attack draws never moves another attack's draws."""
        return torch.Generator().manual_seed(self.seed)

    def class_means(self, values: Tensor) -> Tensor:
        """Means of values [N,...] per class -> [C,...]; the mean of all stands in for classes never seen."""
        labelled = self.labels >= 0
        means, counts = class_means(values[labelled], self.labels[labelled], self.num_classes)
        means[counts == 0] = values.mean(0)
        return means


@dataclass(frozen=True)
class Q1(Q0):
    """Adds the client's architecture: calling it builds an untrained module, images [N,c,h,w] -> [N,d]."""

    architecture: Callable[[], nn.Module]

    level = "Q1"


@dataclass(frozen=True)
class Q2(Q1):
    """Adds queries of the client's encoder."""

    encoder: Encoder

    level = "Q2"

    @cached_property
    def auxiliary_representations(self) -> Tensor:
        """Encoder answers for all auxiliary images, [N,d]; asked once, shared by every attack.

        Raises AuditError where one is not finite: nothing can be learned from such an encoder.
        """
        with torch.no_grad():
            answers = torch.cat([self.encoder(batch) for batch in self.images.split(512)]).float()
        broken = int((~answers.isfinite().all(1)).sum())
        if broken:
            raise AuditError(
                f"the client's encoder answers {broken} of {len(answers)} public images with NaN or infinity; "
                "train it at a lower --lr, or give images that it can encode"
            )
        return answers


@dataclass(frozen=True)
class Q3(Q2):
    """Adds the encoder's weights: a module that gradients flow through, images [N,c,h,w] in [0,1] -> [N,d]."""

    module: nn.Module

    level = "Q3"


LEVELS: dict[str, type[Q0]] = {"Q0": Q0, "Q1": Q1, "Q2": Q2, "Q3": Q3}


def limited(kind: str, name: str, level: str, knowledge: Q0) -> Q0:
    """The part of the knowledge that `level` gives, as its type; representations asked for once stay asked for once.

    Up to Q2 the client is behind functions without attributes: an encoder that answers has no weights to read, and an
    architecture that builds no model it came from. Raises AuditError, naming attacker and levels, below `level`.
    """
    allowed = LEVELS[level]
    if not isinstance(knowledge, allowed):
        raise AuditError(
            f"{kind} '{name}' needs threat level {level}, was given {knowledge.level}; "
            "choose a cheaper attack or raise the level"
        )
    if allowed is Q3:
        return knowledge
    held = {item.name: getattr(knowledge, item.name) for item in fields(allowed)}
    found = allowed(**held | {key: _behind(held[key]) for key in ("architecture", "encoder") if key in held})
    if isinstance(knowledge, Q2) and isinstance(found, Q2):
        vars(found)["auxiliary_representations"] = knowledge.auxiliary_representations
    return found


def _behind(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same answers from a plain function."""
    return lambda *arguments: function(*arguments)
