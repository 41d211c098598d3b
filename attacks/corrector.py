"""Corrector: start at a decoder's image and take a few gradient steps that mend its representation (white box).

Minimises ||f(x) - z||^2 / s^2 + weight mean((x - D(z))^2) + tv TV(x), s^2 the spread of auxiliary representations; the
last term because steps along an encoder's gradient leave noise that no natural image has. The weight is chosen on
auxiliary pairs that the decoder was not fitted on, and where none beats the decoder alone it is left alone.
"""

from dataclasses import replace

import torch
from torch import Tensor

from attacks.base import ATTACKS, Attack
from attacks.knowledge import Q0, Q3
from attacks.optimisation import feature_scale, optimise
from knowledge_forms.base import ServerView, Upload

HELD_OUT = 64


@ATTACKS.register("corrector")
class Corrector(Attack):
    """Adam steps after `decoder` (the name of any attack), towards the representation and not far from its image."""

    name = "corrector"
    level = "Q3"
    cost = "medium"

    def __init__(
        self,
        *,
        decoder: str = "ridge",
        steps: int = 60,
        lr: float = 0.05,
        tv: float = 0.3,
        weights: tuple[float, ...] = (0.3, 1.0, 10.0),
    ) -> None:
        self.decoder = decoder
        self.steps = steps
        self.lr = lr
        self.tv = tv
        self.weights = weights

    def _fit(self, knowledge: Q0) -> None:
        assert isinstance(knowledge, Q3)  # the final caller has checked the level
        self.module_ = knowledge.module
        z, images = knowledge.auxiliary_representations, knowledge.images
        held_out = min(HELD_OUT, max(1, len(images) // 10))
        kept = slice(None, -held_out if len(images) > held_out else None)
        self.decoder_ = ATTACKS[self.decoder]().fit(
            replace(knowledge, images=images[kept], labels=knowledge.labels[kept])
        )
        self.scale_ = feature_scale(z, "squared")
        wanted, truth = z[-held_out:], images[-held_out:]
        encoding = torch.zeros(held_out, knowledge.num_classes)
        guess = self._decode(Upload(0, 0, "raw", wanted, encoding))
        errors: dict[float | None, float] = {None: float((guess - truth).square().mean())}
        for weight in self.weights:
            found = self._correct(wanted, guess, weight)
            errors[weight] = float((found - truth).square().mean())
        self.weight_ = min(errors, key=lambda weight: errors[weight])

    def _decode(self, upload: Upload) -> Tensor:
        view = ServerView("", upload.form, "", 0, 0, (upload,))
        return self.decoder_.reconstruct(view).images

    def _correct(self, z: Tensor, guess: Tensor, weight: float) -> Tensor:
        found, _ = optimise(
            self.module_, z, guess, steps=self.steps, lr=self.lr, tv=self.tv, l2=weight, centre=guess, scale=self.scale_
        )
        return found

    def _reconstruct(self, upload: Upload) -> Tensor:
        guess = self._decode(upload)
        return guess if self.weight_ is None else self._correct(upload.representation, guess, self.weight_)
