"""What a client does with its own data: local training, representing, evaluating. Pure functions of their inputs."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from fedre_audit.models.base import ClientModel, evaluating

BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
HEAVY = 4_000_000
"""Forward FLOPs per image from which bfloat16 pays: at 1.5 million and fewer it gains nothing or loses, at 8.5 it
takes 30 % off a step (one core with AVX512-BF16, batch 32)."""


@dataclass(frozen=True)
class ClientData:
    """One client's images: uint8 [N,c,h,w] with labels and ids int64 [N] to train on, and its own test images."""

    images: Tensor
    labels: Tensor
    ids: Tensor
    test_images: Tensor
    test_labels: Tensor

    def to(self, device: torch.device) -> "ClientData":
        """Images and labels on `device`, still uint8; ids stay where they are."""
        names = ("images", "labels", "test_images", "test_labels")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})

    def whole_batches(self, batch_size: int) -> "ClientData":
        """Without the tail that fills no batch: what a loader with drop_last ever shows of unshuffled data."""
        kept = len(self.images) // batch_size * batch_size
        return replace(self, images=self.images[:kept], labels=self.labels[:kept], ids=self.ids[:kept])


def as_float(images: Tensor) -> Tensor:
    """uint8 in 0..255 -> float32 in [0,1]."""
    return images.float().div_(255.0)


def batches(order: Tensor, batch_size: int, *, merge_single: bool = False) -> list[Tensor]:
    """Split an order [N] into batches; `merge_single` joins a last batch of one to the batch before it.

    >>> [len(batch) for batch in batches(torch.arange(5), 2)]
    [2, 2, 1]
    >>> [len(batch) for batch in batches(torch.arange(5), 2, merge_single=True)]
    [2, 3]
    """
    parts = list(order.split(batch_size))
    if merge_single and len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


def forward_flops(model: ClientModel) -> int:
    """FLOPs of one image's forward pass; a multiplication and an addition count two."""
    weight = model.classifier.weight
    with evaluating(model), FlopCounterMode(display=False) as counter:
        model(weight.new_zeros(1, *model.image_shape))
    return int(counter.get_total_flops())


def autocast(device: torch.device, bf16: bool) -> torch.autocast:
    """Convolutions and matrix products in bfloat16 where `bf16`; weights and their updates stay float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16)


class SGDStep:
    """One plain SGD step on cross-entropy: index [b] into images uint8 [N,c,h,w], labels [N] -> the batch loss []."""

    def __init__(self, model: ClientModel, images: Tensor, labels: Tensor, *, lr: float, bf16: bool = False) -> None:
        self.model, self.images, self.labels, self.bf16 = model, images, labels, bf16
        # `fused` would copy every channels_last gradient on a CPU (13 % of a ResNet-18 step).
        self.optimiser = torch.optim.SGD(model.parameters(), lr=lr, foreach=True)

    def __call__(self, index: Tensor) -> Tensor:
        with autocast(self.images.device, self.bf16):
            logits = self.model(as_float(self.images[index]))
        loss = F.cross_entropy(logits.float(), self.labels[index])
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return loss.detach()


def launched(values: Tensor, device: torch.device) -> Tensor:
    """CPU values on the device; on CUDA from pinned memory, since a plain copy waits for all that was launched."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)


def run_epochs(
    step: Callable[[Tensor], Tensor],
    model: ClientModel,
    size: int,
    *,
    epochs: int,
    batch_size: int,
    shuffle: bool,
    generator: torch.Generator,
) -> Tensor:
    """Every one of `size` samples once an epoch, by `step` of batches of indices; returns the mean batch loss [].

    The loss may be non-finite: the caller knows the client and the round, and names them. Batch norm cannot take
    statistics of one image, so a last batch of one joins the batch before it, and with batches of one throughout
    batch norm runs in eval mode.
    """
    model.train()
    norms = [module for module in model.modules() if isinstance(module, BATCH_NORM)]
    if min(size, batch_size) == 1:
        for norm in norms:
            norm.eval()
    device = model.classifier.weight.device
    orders = [torch.randperm(size, generator=generator) if shuffle else torch.arange(size) for _ in range(epochs)]
    losses = []
    for order in [launched(order, device) for order in orders]:
        losses += [step(index) for index in batches(order, batch_size, merge_single=bool(norms))]
    model.zero_grad()  # gradients of many clients at once are memory
    return torch.stack(losses).mean()


def train_local(
    model: ClientModel, images: Tensor, labels: Tensor, *, epochs: int, lr: float, batch_size: int, shuffle: bool,
    generator: torch.Generator, bf16: bool = False,
) -> float:  # fmt: skip
    """`run_epochs` of plain SGD over images uint8 [N,c,h,w], labels [N]; returns the mean batch loss."""
    step = SGDStep(model, images, labels, lr=lr, bf16=bf16)
    loss = run_epochs(
        step, model, len(images), epochs=epochs, batch_size=batch_size, shuffle=shuffle, generator=generator
    )
    return float(loss)


def represent_all(model: ClientModel, images: Tensor, batch_size: int = 256, *, bf16: bool = False) -> Tensor:
    """Images uint8 [N,c,h,w] -> representations [N,d] float32, in eval mode; mode and buffers stay as they were."""
    with evaluating(model), autocast(images.device, bf16):
        return torch.cat([model.represent(as_float(part)).float() for part in images.split(batch_size)])


def count_correct(
    model: ClientModel, images: Tensor, labels: Tensor, batch_size: int = 256, *, bf16: bool = False
) -> Tensor:
    """How many of images uint8 [N,c,h,w] the model classifies right, in eval mode: [] int64; N may be 0."""
    hits = labels.new_zeros(())
    with evaluating(model), autocast(images.device, bf16):
        for part, truth in zip(images.split(batch_size), labels.split(batch_size), strict=True):
            if len(part):
                hits += (model(as_float(part)).argmax(1) == truth).sum()
    return hits


def accuracy(model: ClientModel, images: Tensor, labels: Tensor) -> float | None:
    """Share of images classified right, in [0,1]; None without images."""
    return int(count_correct(model, images, labels)) / len(images) if len(images) else None
