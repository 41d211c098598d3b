"""Who is this row? Matchers score every candidate image of a pool against every row of an upload.

The auditor builds the pool and ranks the scores. Identifying leakage shows here even where pixels stay blurred.
A row that is not finite scores NaN against every candidate: it is counted, never read as privacy.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Self, final

import torch
from torch import Tensor
from torch.nn import functional as F

from attacks.base import Attack
from attacks.knowledge import Q0, Q2, limited
from knowledge_forms.base import ServerView


def nearness(rows: Tensor, candidates: Tensor) -> Tensor:
    """Minus the Euclidean distance: rows [n,...] and candidates [m,...] of equal shape -> [n,m]; higher = nearer."""
    a, b = rows.float().flatten(1), candidates.float().flatten(1).to(rows.device)
    # In float32 |a|^2 + |b|^2 - 2ab loses the small distances that decide who is nearest; a common shift mends most.
    centre = b.mean(0)
    return -torch.cdist(a - centre, b - centre)


def pixel_scores(reconstructions: Tensor, candidates: Tensor) -> Tensor:
    """Reconstructions [n,c,h,w] against candidate images [m,c,h,w] by pixel distance -> [n,m]; higher = likelier."""
    return nearness(reconstructions, candidates)


def correlation_scores(reconstructions: Tensor, candidates: Tensor) -> Tensor:
    """The same by correlation, [n,m] in [-1,1]: pixel distance between images of equal mean and contrast.

    A decoder that minimises squared error fades what it is unsure of, and plain distance then prefers every pale
    candidate; correlation does not see contrast. An image without any contrast scores 0 against all.
    """
    a, b = (x.float().flatten(1) for x in (reconstructions, candidates.to(reconstructions.device)))
    return F.normalize(a - a.mean(1, keepdim=True)) @ F.normalize(b - b.mean(1, keepdim=True)).T


def embedding_scores(representation: Tensor, embeddings: Tensor) -> Tensor:
    """Rows [n,d] of an upload against the candidates' embeddings [m,d] -> [n,m]; higher = likelier."""
    return nearness(representation, embeddings)


class Matcher(ABC):
    """`fit` takes what the threat level gives, `scores` ranks a pool. name: in reports. level: lowest threat level."""

    name: str
    level: ClassVar[str] = "Q0"

    @final
    def fit(self, knowledge: Q0) -> Self:
        """Learn from the attacker's knowledge; returns self. Raises AuditError below the matcher's level."""
        knowledge = limited("matcher", self.name, self.level, knowledge)
        self._fit(knowledge)
        return self

    @abstractmethod
    def _fit(self, knowledge: Q0) -> None:
        """Learned state goes to attributes that end in `_`."""

    @abstractmethod
    def _scores(self, view: ServerView, candidates: Tensor) -> Tensor:
        """[n,m], higher = likelier."""

    @final
    def scores(self, view: ServerView, candidates: Tensor) -> Tensor:
        """The view of one client (n rows in its newest upload) and candidates [m,c,h,w] in [0,1] -> [n,m] float32."""
        with torch.no_grad():
            scores = self._scores(view, candidates)
        expected = (len(view.latest.representation), len(candidates))
        if tuple(scores.shape) != expected:
            raise ValueError(f"matcher '{self.name}' returned {tuple(scores.shape)} instead of {expected}")
        return scores


class ByEmbedding(Matcher):
    """Distance between the row and the encoder's answer for the candidate: no decoder needed."""

    name = "embedding"
    level = "Q2"

    def _fit(self, knowledge: Q0) -> None:
        assert isinstance(knowledge, Q2)  # the final caller has checked the level
        self.encoder_ = knowledge.encoder

    def _scores(self, view: ServerView, candidates: Tensor) -> Tensor:
        embeddings = torch.cat([self.encoder_(batch) for batch in candidates.split(512)])
        return embedding_scores(view.latest.representation.to(embeddings.device), embeddings)


class ByReconstruction(Matcher):
    """Correlation of an attack's reconstruction with the candidate; needs the level that the attack needs."""

    def __init__(self, *, attack: Attack) -> None:
        self.attack = attack

    @property
    def name(self) -> str:  # type: ignore[override]
        """The attack's name."""
        return self.attack.name

    @property
    def level(self) -> str:  # type: ignore[override]
        """The attack's level."""
        return self.attack.level

    def _fit(self, knowledge: Q0) -> None:
        self.attack.fit(knowledge)

    def _scores(self, view: ServerView, candidates: Tensor) -> Tensor:
        return correlation_scores(self.attack.reconstruct(view).images, candidates)
