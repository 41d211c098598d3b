"""Convolutional decoder: a small network that turns representations into images, trained on auxiliary pairs.

Squared error makes it an estimate of E[image | representation] (Dosovitskiy & Brox, CVPR 2016, arXiv 1506.02753).
It knows single images only: a prototype of many images lies nearer to the centre than any of them, and there the
affine ridge decoder, which maps means to means, is the better one. `DecoderAttack` chooses row by row, from
auxiliary images alone, and records its choice.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attacks.base import ATTACKS, Attack
from attacks.knowledge import Q0, Q2
from attacks.ridge import PENALTIES, choose_penalty, ridge
from attacks.transposed import DoublingConvolution
from knowledge_forms.base import Upload

Decode = Callable[[Tensor], Tensor]

CHECKS = 20  # validations in a full budget
PATIENCE = 6  # of them without a better one before training stops
CHECKED = 512  # held-out images looked at in each
MIXED, LARGEST = 256, 7  # means of 1, 2, ..., 2^LARGEST held-out pairs that the decoder is compared with ridge on
WIDEST, NARROWEST = 256, 32


def has_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 natively: AVX512-BF16 or AMX on a CPU, Ampere or newer on CUDA."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    info = Path("/proc/cpuinfo")
    known = device.type == "cpu" and info.is_file()
    return known and any(flag in info.read_text() for flag in ("avx512_bf16", "amx_bf16"))


class DecoderNetwork(nn.Module):
    """Representations [n,d] -> images [n,c,h,w] of any size, as a correction to `mean` [c,h,w].

    A coarse grid (4x4 at 32x32) is doubled by transposed convolutions until it covers the image, then cropped.
    The last layer starts at zero: an untrained network answers with the mean image exactly.
    """

    def __init__(self, representations: Tensor, mean: Tensor) -> None:
        """representations [N,d]: their mean and deviation standardise every later input."""
        super().__init__()
        channels, height, width = mean.shape
        doublings = max(0, round(math.log2(min(height, width) / 4)))
        self.grid = [math.ceil(side / 2**doublings) for side in (height, width)]
        widths = [max(NARROWEST, WIDEST >> i) for i in range(doublings + 1)]
        self.expand = nn.Linear(representations.shape[1], WIDEST * self.grid[0] * self.grid[1])
        self.body = nn.Sequential(
            nn.BatchNorm2d(WIDEST),
            nn.ReLU(),
            *[layer for before, after in pairwise(widths) for layer in _doubled(before, after)],
        )
        self.last = nn.Conv2d(widths[-1], channels, 3, padding=1)
        for parameter in self.last.parameters():
            nn.init.zeros_(parameter)
        deviation = representations.std(0, correction=0)
        overall = representations.std(correction=0)
        floor = torch.where(overall > 0, 1e-3 * overall, torch.ones_like(overall))  # a collapsed encoder has none
        self.register_buffer("centre", representations.mean(0))
        self.register_buffer("spread", deviation + floor)
        self.register_buffer("mean", mean)

    def forward(self, z: Tensor) -> Tensor:
        """[n,d] -> [n,c,h,w] float32, not clipped."""
        z = (z - self.get_buffer("centre")) / self.get_buffer("spread")
        x = self.expand(z).unflatten(1, (WIDEST, *self.grid)).contiguous(memory_format=torch.channels_last)
        mean = self.get_buffer("mean")
        return mean + self.last(self.body(x))[..., : mean.shape[1], : mean.shape[2]].float()


def _doubled(before: int, after: int) -> list[nn.Module]:
    """[n,before,h,w] -> [n,after,2h,2w]."""
    return [DoublingConvolution(before, after), nn.BatchNorm2d(after), nn.ReLU()]


@dataclass(frozen=True)
class Trained:
    """The best network by validation, the steps taken, and (step, held-out mean squared error) at each check."""

    network: DecoderNetwork
    steps: int
    curve: list[tuple[int, float]]


def train_decoder(
    network: DecoderNetwork,
    train: tuple[Tensor, Tensor],
    held_out: tuple[Tensor, Tensor],
    *,
    steps: int,
    lr: float,
    batch_size: int,
    bf16: bool,
    generator: torch.Generator,
) -> Trained:
    """AdamW and a one-cycle rate with peak `lr` on (representations [N,d], images [N,c,h,w]), batches with replacement.

    The weights kept are those of the least held-out error, the untrained ones included.
    """
    source, target = train
    held_out = (held_out[0][:CHECKED], held_out[1][:CHECKED])
    network.to(memory_format=torch.channels_last)
    precision = torch.autocast(source.device.type, dtype=torch.bfloat16, enabled=bf16)
    optimiser = torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=1e-4, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=lr, total_steps=max(steps, 1))
    every = max(1, steps // CHECKS)
    curve = [(0, _error(network, held_out, bf16))]
    best, kept = curve[0], copy.deepcopy(network.state_dict())
    step = 0
    for step in range(1, steps + 1):
        index = torch.randint(len(source), (batch_size,), generator=generator).to(source.device)
        network.train()
        with precision:
            found = network(source[index])
        loss = F.mse_loss(found, target[index])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if step % every and step < steps:
            continue
        curve.append((step, _error(network, held_out, bf16)))
        if curve[-1][1] < best[1]:
            best, kept = curve[-1], copy.deepcopy(network.state_dict())
        elif step - best[0] >= PATIENCE * every:
            break
    network.load_state_dict(kept)
    return Trained(network.eval(), step, curve)


def decode(network: DecoderNetwork, z: Tensor, *, bf16: bool) -> Tensor:
    """[n,d] -> [n,c,h,w] in eval mode without gradients."""
    network.eval()
    device = network.expand.weight.device
    with torch.no_grad(), torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16):
        return torch.cat([network(part) for part in z.to(device).float().split(256)])


def _error(network: DecoderNetwork, held_out: tuple[Tensor, Tensor], bf16: bool) -> float:
    return float(F.mse_loss(decode(network, held_out[0], bf16=bf16), held_out[1]))


@dataclass(frozen=True)
class Distance:
    """How far a representation lies from the centre of the auxiliary ones: Mahalanobis, divided by sqrt(d).

    About 1 for a single image, about 1/sqrt(n) for the mean of n unrelated ones.
    """

    centre: Tensor
    factor: Tensor

    @classmethod
    def of(cls, representations: Tensor) -> "Distance":
        """From representations [N,d]; the covariance is shrunk a tenth of the way to a multiple of the identity."""
        centred = (representations - representations.mean(0)).double()
        covariance = centred.T @ centred / len(centred)
        size = covariance.diagonal().mean()
        covariance = 0.9 * covariance
        covariance.diagonal().add_(torch.where(size > 0, 0.1 * size, torch.ones_like(size)))
        return cls(representations.mean(0), torch.linalg.cholesky(covariance))

    def __call__(self, z: Tensor) -> Tensor:
        """[n,d] -> [n]."""
        centred = (z.to(self.centre) - self.centre).double()
        scaled = torch.linalg.solve_triangular(self.factor, centred.T, upper=False)
        return scaled.square().mean(0).sqrt().float()


def own_range(
    distance: Distance, decoder: Decode, affine: Decode, source: Tensor, target: Tensor, generator: torch.Generator
) -> tuple[float, float]:
    """(low, high): distances within which the decoder is trusted more than the affine map; high < low is nowhere.

    Judged on means of 1, 2, 4, ... of the held-out pairs source [N,d], target [N,c,h,w]: `low` gives the least
    squared error over all of them, each count with equal weight. `high` is a quarter beyond the farthest single one.
    """
    distances, gains = [], []
    rows = min(len(source), MIXED)
    for count in (2**i for i in range(LARGEST + 1) if 2**i <= max(1, len(source) // 2)):
        draw = torch.stack([torch.randperm(len(source), generator=generator)[:count] for _ in range(rows)])
        mixing = torch.zeros(rows, len(source)).scatter_(1, draw, 1 / count).to(source)
        z, images = mixing @ source, mixing @ target.flatten(1)
        errors = [(found(z).flatten(1) - images).square().mean(1) for found in (affine, decoder)]
        distances.append(distance(z))
        gains.append(errors[0] - errors[1])
    far, order = torch.cat(distances).sort()
    # Summed from the far end: what is won by trusting the decoder at this distance and beyond.
    won = torch.cat(gains)[order].double().flip(0).cumsum(0).flip(0)
    best = int(won.argmax())
    low = float(far[best]) if won[best] > 0 else math.inf
    return low, 1.25 * float(distances[0].max())


@ATTACKS.register("decoder")
class DecoderAttack(Attack):
    """Convolutional decoder trained on auxiliary pairs; ridge takes the rows where that does better.

    steps: the attacker's budget (`steps_` says what early stopping left of it). lr: peak learning rate.
    fallback: False decodes every row with the network. bf16: None decides by the processor.
    After `reconstruct`, `choice_` names the decoder of each row: "decoder" or "ridge".
    """

    name = "decoder"
    level = "Q2"
    cost = "heavy"

    def __init__(
        self,
        *,
        steps: int = 800,
        lr: float = 2e-3,
        batch_size: int = 64,
        fallback: bool = True,
        bf16: bool | None = None,
    ) -> None:
        self.steps = steps
        self.lr = lr
        self.batch_size = batch_size
        self.fallback = fallback
        self.bf16 = bf16

    def _fit(self, knowledge: Q0) -> None:
        assert isinstance(knowledge, Q2)  # the final caller has checked the level
        source = knowledge.auxiliary_representations
        target = knowledge.images.to(source.device)
        generator = knowledge.generator()
        split = len(source) - max(1, len(source) // 10)  # one image alone: it is both parts
        train, held_out = (source[: split or None], target[: split or None]), (source[split:], target[split:])
        self.bf16_ = has_bf16(source.device) if self.bf16 is None else self.bf16
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(torch.randint(2**62, (), generator=generator)))
            network = DecoderNetwork(source, target.mean(0)).to(source.device)
        trained = train_decoder(
            network, train, held_out, steps=self.steps, lr=self.lr, batch_size=self.batch_size, bf16=self.bf16_,
            generator=generator,
        )  # fmt: skip
        self.network_, self.steps_, self.validation_curve_ = trained.network, trained.steps, trained.curve
        if not self.fallback:
            return
        penalty = choose_penalty(source, target.flatten(1), PENALTIES)
        rival = ridge(train[0], train[1].flatten(1), penalty)  # fitted on what the decoder was fitted on
        self.distance_ = Distance.of(train[0])
        self.range_ = own_range(self.distance_, self._decode, rival, *held_out, generator)
        self.ridge_ = ridge(source, target.flatten(1), penalty)

    def _decode(self, z: Tensor) -> Tensor:
        return decode(self.network_, z, bf16=self.bf16_)

    def _reconstruct(self, upload: Upload) -> Tensor:
        z = upload.representation
        images = self._decode(z)
        if not self.fallback:
            self.choice_ = ("decoder",) * len(z)
            return images
        low, high = self.range_
        distance = self.distance_(z)
        own = (distance >= low) & (distance <= high)
        self.choice_ = tuple("decoder" if mine else "ridge" for mine in own.tolist())
        return torch.where(own[:, None, None, None], images, self.ridge_(z).reshape_as(images))
