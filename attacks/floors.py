"""The attackers who ignore the representation: what they reach is no leakage, whatever the score reads.

They know the label encoding, because it is sent in the clear, and public auxiliary images; no more.
`permuted_view` makes the other null: the same attacker fed an upload that belongs to someone else.
"""

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from attacks.base import ATTACKS, Attack
from attacks.knowledge import Q0, Q2
from knowledge_forms.base import ServerView, Upload


class Floor(Attack):
    """An attacker who answers without looking at the representation."""

    uses_upload: ClassVar[bool] = False


@ATTACKS.register("grey")
class Grey(Floor):
    """Constant 0.5."""

    name = "grey"

    def _reconstruct(self, upload: Upload) -> Tensor:
        return torch.full((len(upload.representation), *self.image_shape_), 0.5)


@ATTACKS.register("mean_image")
class MeanImage(Floor):
    """The mean of all auxiliary images."""

    name = "mean_image"

    def _fit(self, knowledge: Q0) -> None:
        self.mean_ = knowledge.images.mean(0)

    def _reconstruct(self, upload: Upload) -> Tensor:
        return self.mean_.expand(len(upload.representation), *self.image_shape_)


@ATTACKS.register("class_mean")
class ClassMean(Floor):
    """The auxiliary class means, mixed by the label encoding; the mean image stands in for classes never seen."""

    name = "class_mean"

    def _fit(self, knowledge: Q0) -> None:
        self.means_ = knowledge.class_means(knowledge.images)

    def _reconstruct(self, upload: Upload) -> Tensor:
        return torch.einsum("nc,cxyz->nxyz", upload.label_encoding.to(self.means_), self.means_)


@ATTACKS.register("nearest_auxiliary")
class NearestAuxiliary(Floor):
    """The auxiliary image nearest to the class-mean guess: a sharp picture instead of a blurred one."""

    name = "nearest_auxiliary"

    def _fit(self, knowledge: Q0) -> None:
        self.guess_ = ClassMean().fit(knowledge)
        self.images_ = knowledge.images

    def _reconstruct(self, upload: Upload) -> Tensor:
        guess = self.guess_._reconstruct(upload)
        distance = torch.cdist(guess.flatten(1), self.images_.flatten(1))
        return self.images_[distance.argmin(1)]


@ATTACKS.register("random_image")
class RandomImage(Floor):
    """An auxiliary image drawn at random for each row."""

    name = "random_image"

    def _fit(self, knowledge: Q0) -> None:
        self.images_ = knowledge.images
        self.order_ = torch.randperm(len(knowledge.images), generator=knowledge.generator())

    def _reconstruct(self, upload: Upload) -> Tensor:
        index = torch.arange(len(upload.representation)) % len(self.order_)
        return self.images_[self.order_[index].to(self.images_.device)]


FLOORS: tuple[type[Floor], ...] = (MeanImage, ClassMean, Grey, NearestAuxiliary, RandomImage)


def permuted_view(view: ServerView, knowledge: Q2, *, images_per_class: int = 16) -> ServerView:
    """The view of one client with its newest upload replaced by one that says nothing about the client's images.

    Several rows: rows are shifted against each other by a random derangement, so every row is someone else's.
    One row: an upload of the same label encoding made from auxiliary images (`images_per_class` of each class),
    since shifting across clients would feed a decoder another client's features and make any attack look strong.
    """
    upload = view.latest
    rows = len(upload.representation)
    generator = knowledge.generator()
    if rows > 1:
        order = torch.randperm(rows, generator=generator)
        donor = torch.empty_like(order)
        donor[order] = order.roll(1)
        representation = upload.representation[donor.to(upload.representation.device)]
    else:
        order = torch.randperm(len(knowledge.images), generator=generator)
        labels = knowledge.labels[order.to(knowledge.labels.device)]
        rank = torch.zeros_like(labels)
        for label in labels.unique():  # position of each image among its class, in random order
            rank[labels == label] = torch.arange(int((labels == label).sum()), device=labels.device)
        chosen = order[(rank < images_per_class).cpu()]
        few = replace(knowledge, images=knowledge.images[chosen], labels=knowledge.labels[chosen])
        means = few.class_means(knowledge.auxiliary_representations[chosen])
        representation = upload.label_encoding.to(means.device) @ means
    return replace(view, uploads=(replace(upload, representation=representation),))
