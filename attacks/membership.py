"""Was this image among the client's? Scored against the rows of an upload, or against unmixed prototypes.

Both scores are calibrated by auxiliary images of the same class, which are non-members: 0 is what a non-member
gets on average and 1 is one standard deviation above it, so that images of different classes compare.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Self, final

import torch
from torch import Tensor

from attacks.knowledge import Q0, Q2, limited
from knowledge_forms.base import ServerView, Upload
from knowledge_forms.class_means import class_means
from knowledge_forms.registry import Registry


class Membership(ABC):
    """Base of membership attackers. `_evidence` is the one method to write. level: the lowest threat level it needs."""

    name: ClassVar[str]
    level: ClassVar[str] = "Q2"

    @final
    def fit(self, knowledge: Q0) -> Self:
        """Embed the auxiliary images; returns self. Raises AuditError below the level."""
        knowledge = limited("membership attack", self.name, self.level, knowledge)
        assert isinstance(knowledge, Q2)
        self.encoder_ = knowledge.encoder
        self.auxiliary_ = knowledge.auxiliary_representations
        self.labels_ = knowledge.labels.to(self.auxiliary_.device)
        self._fit()
        return self

    def _fit(self) -> None:
        """Whatever else the evidence needs, from `auxiliary_` [N,d] and `labels_` [N]."""

    @abstractmethod
    def _evidence(self, rows: Tensor, embeddings: Tensor, label: int) -> Tensor:
        """Rows [n,d] that hold class `label`, embeddings [m,d] of images of that class -> [m]; higher = member."""

    @final
    def score(self, view: ServerView, images: Tensor, labels: Tensor) -> Tensor:
        """The view of one client, images [m,c,h,w] in [0,1] with labels [m] -> [m] float32; higher = member.

        The newest upload decides; a view of unmixed prototypes (one row a class, one-hot) serves as well as any.
        -inf where the upload holds no row of the class: the label encoding says that no such image contributed.
        """
        with torch.no_grad():
            embeddings = torch.cat([self.encoder_(batch) for batch in images.split(512)]).float()
            scores = torch.full((len(images),), -torch.inf, device=embeddings.device)
            for label in labels.unique().tolist():
                rows = rows_of_class(view.latest, label).to(embeddings.device)
                if len(rows):
                    asked = (labels == label).to(embeddings.device)
                    known = self.auxiliary_[self.labels_ == label]
                    reference = self._evidence(rows, known if len(known) > 1 else self.auxiliary_, label)
                    spread = reference.std(correction=0).clamp(min=1e-12)
                    scores[asked] = (self._evidence(rows, embeddings[asked], label) - reference.mean()) / spread
        return scores


def rows_of_class(upload: Upload, label: int) -> Tensor:
    """The rows [n',d] whose label encoding gives class `label` any weight."""
    return upload.representation[upload.label_encoding[:, label] > 0].float()


MEMBERSHIP: Registry[type[Membership]] = Registry("membership attack", package="attacks")


@MEMBERSHIP.register("distance")
class Distance(Membership):
    """Nearness of the image's embedding to the nearest row of its class: decisive for raw rows and tiny classes."""

    name = "distance"

    def _evidence(self, rows: Tensor, embeddings: Tensor, label: int) -> Tensor:
        # Row by row differences, exact at distance 0, in blocks: a member of a raw upload sits on its row.
        return torch.stack([-(rows - one).square().sum(1).min().sqrt() for one in embeddings])


@MEMBERSHIP.register("projection")
class Projection(Membership):
    """Whitened inner product with the shift of the prototype against auxiliary images: for means of many images.

    (z - m)' S^-1 (p - m), m and S from auxiliary images of the class: to first order in 1/n the log-likelihood ratio
    of "z is one of the n images whose mean is p" under Gaussian representations.
    Source: Dwork et al., "Robust traceability from trace amounts", FOCS 2015, doi 10.1109/FOCS.2015.46.
    """

    name = "projection"

    def __init__(self, *, shrinkage: float = 0.1) -> None:
        self.shrinkage = shrinkage

    def _fit(self) -> None:
        _, group = self.labels_.unique(return_inverse=True)
        means, _ = class_means(self.auxiliary_, group, int(group.max()) + 1)
        centred = (self.auxiliary_ - means[group]).double()
        covariance = centred.T @ centred / len(centred)
        ridge = self.shrinkage * covariance.diagonal().mean().clamp(min=1e-12)
        covariance.diagonal().add_(ridge)
        self.factor_ = torch.linalg.cholesky(covariance)

    def _evidence(self, rows: Tensor, embeddings: Tensor, label: int) -> Tensor:
        known = self.auxiliary_[self.labels_ == label]
        mean = (known if len(known) else self.auxiliary_).mean(0).double()
        shift = torch.cholesky_solve((rows.double() - mean).T, self.factor_)
        return ((embeddings.double() - mean) @ shift).max(1).values.float()
