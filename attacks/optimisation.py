"""Pixel optimisation: change the image until the encoder gives the observed representation (white box).

rMLE of He, Zhang & Lee, ACSAC 2019, doi 10.1145/3359789.3359824, with its total-variation and l2 priors.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from attacks.base import ATTACKS, Attack
from attacks.knowledge import Q0, Q3
from knowledge_forms.base import Encoder, ServerView, Upload
from knowledge_forms.errors import AuditError


def squared(found: Tensor, wanted: Tensor) -> Tensor:
    """||f(x) - z||^2 per row: [n,d] twice -> [n]."""
    return (found - wanted).square().sum(1)


def cosine(found: Tensor, wanted: Tensor) -> Tensor:
    """1 - cos(f(x), z) per row: [n,d] twice -> [n]."""
    return 1.0 - F.cosine_similarity(found, wanted, dim=1)


DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"squared": squared, "cosine": cosine}
OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": torch.optim.Adam, "gd": torch.optim.SGD}
NOISE = "noise"


def total_variation(images: Tensor) -> Tensor:
    """Mean absolute difference between neighbours, both directions added: [n,c,h,w] -> [n]."""
    vertical = images.diff(dim=2).abs().flatten(1).mean(1) if images.shape[2] > 1 else images.new_zeros(len(images))
    horizontal = images.diff(dim=3).abs().flatten(1).mean(1) if images.shape[3] > 1 else images.new_zeros(len(images))
    return vertical + horizontal


def optimise(
    encoder: Encoder,
    z: Tensor,
    start: Tensor,
    *,
    steps: int = 200,
    lr: float = 0.05,
    tv: float = 0.0,
    l2: float = 0.0,
    centre: Tensor | float = 0.5,
    scale: float = 1.0,
    distance: str = "squared",
    optimiser: str = "adam",
    decay: bool = True,
    batch: int = 256,
) -> tuple[Tensor, Tensor]:
    """Minimise distance(f(x), z) / scale + tv TV(x) + l2 mean((x - centre)^2) over x in [0,1], each row by itself.

    z [n,d], start [n,c,h,w], centre a number or [n,c,h,w] -> images [n,c,h,w] and their distance / scale [n].
    The learning rate falls to 0 along a cosine where `decay`; every step is projected onto [0,1]. Rows never
    influence each other, so `batch` (rows at a time) decides memory and not the result.
    """
    for table, name, what in ((DISTANCES, distance, "distance"), (OPTIMISERS, optimiser, "optimiser")):
        if name not in table:
            raise AuditError(f"unknown {what} '{name}' of the optimisation attack; choose one of: {', '.join(table)}")
    images, losses = [], []
    for i in range(0, len(z), batch):
        rows = slice(i, i + batch)
        wanted = z[rows].to(start)
        x = start[rows].clone(memory_format=torch.channels_last).requires_grad_()
        middle = centre[rows] if isinstance(centre, Tensor) else centre
        stepper = OPTIMISERS[optimiser]([x], lr=lr)
        for step in range(steps):
            if decay:
                stepper.param_groups[0]["lr"] = lr * (1.0 + math.cos(math.pi * step / steps)) / 2.0
            with torch.enable_grad():
                loss = DISTANCES[distance](encoder(x), wanted) / scale
                if tv:
                    loss = loss + tv * total_variation(x)
                if l2:
                    loss = loss + l2 * (x - middle).square().flatten(1).mean(1)
                (x.grad,) = torch.autograd.grad(loss.sum(), x)
            stepper.step()
            with torch.no_grad():
                x.clamp_(0.0, 1.0)
        with torch.no_grad():
            losses.append(DISTANCES[distance](encoder(x), wanted) / scale)
        images.append(x.detach().contiguous())
    return torch.cat(images), torch.cat(losses)


def feature_scale(representations: Tensor, distance: str) -> float:
    """Mean distance of auxiliary representations [N,d] from their mean: with it a loss of 1 is a guess."""
    if distance != "squared":
        return 1.0
    spread = float((representations - representations.mean(0)).square().sum(1).mean())
    return spread if spread > 0 else 1.0


@ATTACKS.register("optimisation")
class Optimisation(Attack):
    """Pixels fitted to the representation through the encoder's weights; of several restarts the nearest is kept.

    start: 'noise' or the name of an attack whose reconstruction is the first guess ('grey', 'mean_image', 'ridge').
    The weights `tv` and `l2` are relative to the distance of an average auxiliary image. Restarts after the first
    add noise to the start.
    """

    name = "optimisation"
    level = "Q3"
    cost = "heavy"

    def __init__(
        self,
        *,
        start: str = "ridge",
        steps: int = 200,
        lr: float = 0.05,
        tv: float = 0.3,
        l2: float = 0.0,
        restarts: int = 1,
        distance: str = "squared",
        optimiser: str = "adam",
        batch: int = 256,
    ) -> None:
        self.start = start
        self.steps = steps
        self.lr = lr
        self.tv = tv
        self.l2 = l2
        self.restarts = restarts
        self.distance = distance
        self.optimiser = optimiser
        self.batch = batch

    def _fit(self, knowledge: Q0) -> None:
        assert isinstance(knowledge, Q3)  # the final caller has checked the level
        self.module_ = knowledge.module
        self.seed_ = knowledge.seed
        self.device_ = knowledge.images.device
        self.scale_ = feature_scale(knowledge.auxiliary_representations, self.distance)
        self.guess_ = None if self.start == NOISE else ATTACKS[self.start]().fit(knowledge)

    def _starts(self, upload: Upload) -> list[Tensor]:
        """One start per restart, [n,c,h,w] each."""
        generator = torch.Generator().manual_seed(self.seed_)
        shape = (len(upload.representation), *self.image_shape_)
        noise = [torch.rand(shape, generator=generator).to(self.device_) for _ in range(max(1, self.restarts))]
        if self.guess_ is None:
            return noise
        own = ServerView("", upload.form, "", 0, 0, (upload,))
        guess = self.guess_.reconstruct(own).images.to(self.device_)
        return [guess, *((guess + 0.2 * (one - 0.5)).clamp(0.0, 1.0) for one in noise[1:])]

    def _reconstruct(self, upload: Upload) -> Tensor:
        best, nearest = None, None
        for start in self._starts(upload):
            images, loss = optimise(
                self.module_,
                upload.representation,
                start,
                steps=self.steps,
                lr=self.lr,
                tv=self.tv,
                l2=self.l2,
                scale=self.scale_,
                distance=self.distance,
                optimiser=self.optimiser,
                batch=self.batch,
            )
            if best is None or nearest is None:
                best, nearest = images, loss
            else:
                better = loss < nearest
                best = torch.where(better[:, None, None, None], images, best)
                nearest = torch.where(better, loss, nearest)
        assert best is not None
        return best
