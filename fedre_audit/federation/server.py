"""What the server does with uploads: train the one global classifier on them."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from knowledge_forms.base import Classifier, Upload


def stack(uploads: Sequence[Upload]) -> tuple[Tensor, Tensor]:
    """All rows of a round in upload order: representations [m,d] and label encodings [m,C]."""
    return (
        torch.cat([upload.representation for upload in uploads]),
        torch.cat([upload.label_encoding for upload in uploads]),
    )


def server_step(
    classifier: Classifier,
    representations: Tensor,
    label_encodings: Tensor,
    *,
    lr: float,
    batch_size: int = 32,
    epochs: int = 1,
    reduction: Literal["sum", "mean"] = "sum",
    shuffle: torch.Generator | None = None,
) -> tuple[Classifier, float]:
    """SGD on soft-label cross-entropy, continuing from the previous global classifier.

    representations [m,d], label_encodings [m,C] (rows sum to 1) -> the new classifier and the mean loss per row as
    met during the pass. reduction: of the loss over a batch. shuffle: draws the order of rows of each epoch; None
    keeps upload order. With the released values of FedRE (arXiv 2511.22265: lr 0.01, batch 32, one epoch, sum) ten
    entangled uploads are exactly one gradient step.
    """
    weight = classifier.weight.detach().clone().requires_grad_()
    bias = classifier.bias.detach().clone().requires_grad_()
    total, rows = representations.new_zeros(()), len(representations)
    for _ in range(epochs):
        order = torch.arange(rows) if shuffle is None else torch.randperm(rows, generator=shuffle)
        for index in order.split(batch_size):
            r, y = representations[index], label_encodings[index]
            loss = F.cross_entropy(F.linear(r, weight, bias), y, reduction="sum")
            step = lr / len(index) if reduction == "mean" else lr
            with torch.no_grad():
                for parameter, gradient in zip((weight, bias), torch.autograd.grad(loss, (weight, bias)), strict=True):
                    parameter -= step * gradient
            total = total + loss.detach()
    return Classifier(weight.detach(), bias.detach()), float(total) / (epochs * rows)
