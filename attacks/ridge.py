"""Ridge decoder: the best affine map from representations to images (linear minimum-mean-square-error estimator).

Being affine it maps a mean of representations to the mean of their reconstructions, which makes it the right decoder
for prototypes of many images. Source: Hoerl & Kennard 1970, doi 10.1080/00401706.1970.10488634.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attacks.base import ATTACKS, Attack
from attacks.knowledge import Q0, Q2
from knowledge_forms.base import Upload
from knowledge_forms.errors import AuditError

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class Affine:
    """x = target_mean + (z / scale - source_mean) @ weight."""

    scale: Tensor
    source_mean: Tensor
    target_mean: Tensor
    weight: Tensor

    def __call__(self, z: Tensor) -> Tensor:
        """[m,d] -> [m,p]."""
        return self.target_mean + (z.to(self.weight) / self.scale - self.source_mean) @ self.weight


def ridge(source: Tensor, target: Tensor, penalty: float) -> Affine:
    """Ridge regression of target [n,p] on source [n,d], both centred, source divided by its overall deviation.

    weight = (Z'Z + penalty n I)^-1 Z'A, the system solved in float64. A constant source gives weight 0 (the mean).
    """
    deviation = source.std(correction=0)
    scale = torch.where(deviation > 0, deviation, torch.ones_like(deviation))
    z = source / scale
    source_mean, target_mean = z.mean(0), target.mean(0)
    z = z - source_mean
    cross = (z.T @ (target - target_mean)).double()
    weight = torch.cholesky_solve(cross, _factor(z, penalty)).to(target)
    return Affine(scale, source_mean, target_mean, weight)


def _factor(z: Tensor, penalty: float) -> Tensor:
    """Cholesky factor of Z'Z + penalty n I in float64.

    Products are taken in float32 for speed. Where a few directions hold nearly all the variance, as in an encoder about
    to collapse, their rounding can exceed the penalty and leave the matrix indefinite: then they are taken in float64.
    """
    for products in (z, z.double()):
        gram = (products.T @ products).double()
        gram.diagonal().add_(penalty * len(z))
        factor, failed = torch.linalg.cholesky_ex(gram)
        if not failed:
            return factor
    raise AuditError(
        "ridge cannot be fitted: the encoder's representations of the auxiliary images are not finite numbers; "
        "check the client's weights, or train with a lower --lr"
    )


def choose_penalty(source: Tensor, target: Tensor, penalties: tuple[float, ...] = PENALTIES) -> float:
    """The penalty with the least squared error on the last tenth of the pairs (they come in random order)."""
    held_out = max(1, len(source) // 10)
    if len(source) <= held_out:
        return max(penalties)
    train = slice(None, -held_out)
    errors = torch.stack(
        [
            (ridge(source[train], target[train], penalty)(source[-held_out:]) - target[-held_out:]).square().mean()
            for penalty in penalties
        ]
    )
    return penalties[int(errors.argmin())]


@ATTACKS.register("ridge")
class Ridge(Attack):
    """Affine decoder fitted on auxiliary images and the encoder's answers; penalty chosen on held-out pairs."""

    name = "ridge"
    level = "Q2"

    def __init__(self, *, penalties: tuple[float, ...] = PENALTIES) -> None:
        self.penalties = penalties

    def _fit(self, knowledge: Q0) -> None:
        assert isinstance(knowledge, Q2)  # the final caller has checked the level
        source = knowledge.auxiliary_representations
        target = knowledge.images.to(source.device).flatten(1)
        self.penalty_ = choose_penalty(source, target, self.penalties)
        self.decoder_ = ridge(source, target, self.penalty_)

    def _reconstruct(self, upload: Upload) -> Tensor:
        return self.decoder_(upload.representation).reshape(-1, *self.image_shape_)
