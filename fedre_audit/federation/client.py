"""What a client does with its own data: local training, representing, evaluating. Pure functions of their inputs."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fedre_audit.models.base import ClientModel, evaluating

BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


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


def train_local(
    model: ClientModel,
    images: Tensor,
    labels: Tensor,
    *,
    epochs: int,
    lr: float,
    batch_size: int,
    shuffle: bool,
    generator: torch.Generator,
) -> float:
    """Plain SGD on cross-entropy over images uint8 [N,c,h,w], labels [N]; returns the mean batch loss.

    Every sample trains each epoch. The loss may be non-finite: the caller knows the client and the round, and
    names them. Batch norm cannot take statistics of one image, so a
    last batch of one joins the batch before it, and with batches of one throughout batch norm runs in eval mode.
    """
    model.train()
    norms = [module for module in model.modules() if isinstance(module, BATCH_NORM)]
    if min(len(images), batch_size) == 1:
        for norm in norms:
            norm.eval()
    optimiser = torch.optim.SGD(model.parameters(), lr=lr)
    losses = []
    for _ in range(epochs):
        order = torch.randperm(len(images), generator=generator) if shuffle else torch.arange(len(images))
        for index in batches(order, batch_size, merge_single=bool(norms)):
            index = index.to(images.device)
            loss = F.cross_entropy(model(as_float(images[index])), labels[index])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.detach())
    return float(torch.stack(losses).mean())


def represent_all(model: ClientModel, images: Tensor, batch_size: int = 256) -> Tensor:
    """Images uint8 [N,c,h,w] -> representations [N,d] float32, in eval mode; mode and buffers stay as they were."""
    with evaluating(model):
        return torch.cat([model.represent(as_float(part)) for part in images.split(batch_size)]).float()


def count_correct(model: ClientModel, images: Tensor, labels: Tensor, batch_size: int = 256) -> int:
    """How many of images uint8 [N,c,h,w] the model classifies right, in eval mode; N may be 0."""
    with evaluating(model):
        hits = [
            (model(as_float(part)).argmax(1) == truth).sum()
            for part, truth in zip(images.split(batch_size), labels.split(batch_size), strict=True)
            if len(part)
        ]
    return int(torch.stack(hits).sum()) if hits else 0


def accuracy(model: ClientModel, images: Tensor, labels: Tensor) -> float | None:
    """Share of images classified right, in [0,1]; None without images."""
    return count_correct(model, images, labels) / len(images) if len(images) else None
