"""Ridge on random Fourier features: kernel ridge regression with a Gaussian kernel, at the price of ridge.

Source: Rahimi & Recht, "Random features for large-scale kernel machines", NeurIPS 2007.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attacks.base import ATTACKS, Attack
from attacks.knowledge import Q0, Q2
from attacks.ridge import ridge
from knowledge_forms.base import Upload


@dataclass(frozen=True)
class FourierFeatures:
    """phi(z) = sqrt(2 / D) cos((z - centre) Omega / width + phase): phi(a)'phi(b) ~ exp(-|a-b|^2 / (2 width^2))."""

    centre: Tensor
    omega: Tensor
    phase: Tensor

    @classmethod
    def draw(cls, source: Tensor, count: int, width: float, generator: torch.Generator) -> "FourierFeatures":
        """`count` features for representations source [N,d]; width in root-mean-square distances from their mean."""
        centre = source.mean(0)
        spread = float((source - centre).square().sum(1).mean().sqrt()) or 1.0
        omega = torch.randn(source.shape[1], count, generator=generator) / (width * spread)
        phase = 2.0 * math.pi * torch.rand(count, generator=generator)
        return cls(centre, omega.to(source), phase.to(source))

    def __call__(self, z: Tensor) -> Tensor:
        """[n,d] -> [n,D] float32."""
        return math.sqrt(2.0 / len(self.phase)) * torch.cos((z.to(self.omega) - self.centre) @ self.omega + self.phase)


@ATTACKS.register("random_features_ridge")
class RandomFeaturesRidge(Attack):
    """Decoder linear in cos(Omega z + b); kernel width and penalty chosen together on held-out auxiliary pairs."""

    name = "random_features_ridge"
    level = "Q2"
    cost = "medium"

    def __init__(
        self,
        *,
        features: int = 1024,
        widths: tuple[float, ...] = (1.0, 2.0, 4.0),
        penalties: tuple[float, ...] = (1e-4, 1e-3, 1e-2),
    ) -> None:
        self.features = features
        self.widths = widths
        self.penalties = penalties

    def _fit(self, knowledge: Q0) -> None:
        assert isinstance(knowledge, Q2)  # the final caller has checked the level
        source = knowledge.auxiliary_representations
        target = knowledge.images.to(source.device).flatten(1)
        held_out = max(1, len(source) // 10)
        kept = slice(None, -held_out if len(source) > held_out else None)
        best = math.inf
        for width in self.widths:
            features = FourierFeatures.draw(source, self.features, width, knowledge.generator())
            phi = features(source)
            for penalty in self.penalties:
                found = ridge(phi[kept], target[kept], penalty)(phi[-held_out:])
                error = float((found - target[-held_out:]).square().mean())
                if error < best:
                    best, self.width_, self.penalty_, self.map_ = error, width, penalty, features
        self.decoder_ = ridge(self.map_(source), target, self.penalty_)

    def _reconstruct(self, upload: Upload) -> Tensor:
        return self.decoder_(self.map_(upload.representation)).reshape(-1, *self.image_shape_)
