"""What the server does with uploads: train the one global classifier on them."""

import torch
from torch import Tensor
from torch.nn import functional as F

from knowledge_forms.base import Classifier


def server_step(
    classifier: Classifier,
    representations: Tensor,
    label_encodings: Tensor,
    *,
    lr: float,
    batch_size: int = 32,
    epochs: int = 1,
) -> tuple[Classifier, float]:
    """SGD on soft-label cross-entropy, *summed* over each batch, continuing from the previous global classifier.

    representations [m,d], label_encodings [m,C] (rows sum to 1), in upload order -> the new classifier and the mean
    loss per row as met during the pass. With the released values (lr 0.01, batch 32, one epoch) ten entangled
    uploads are exactly one gradient step (FedRE, arXiv 2511.22265, released code).
    """
    weight = classifier.weight.detach().clone().requires_grad_()
    bias = classifier.bias.detach().clone().requires_grad_()
    total = representations.new_zeros(())
    for _ in range(epochs):
        for r, y in zip(representations.split(batch_size), label_encodings.split(batch_size), strict=True):
            loss = F.cross_entropy(F.linear(r, weight, bias), y, reduction="sum")
            with torch.no_grad():
                for parameter, gradient in zip((weight, bias), torch.autograd.grad(loss, (weight, bias)), strict=True):
                    parameter -= lr * gradient
            total = total + loss.detach()
    return Classifier(weight.detach(), bias.detach()), float(total) / (epochs * len(representations))
