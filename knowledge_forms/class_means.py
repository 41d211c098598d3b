"""Class means of representations (or of images): the prototypes of a client."""

import torch
from torch import Tensor


def class_means(values: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Means per class: values [N,...], labels [N] int64 -> ([C,...] float32, counts [C] int64).

    Every sample counts once; an absent class has mean 0 and count 0. Sums are taken in float64.

    >>> means, counts = class_means(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 2]), 3)
    >>> means.flatten().tolist(), counts.tolist()
    ([2.0, 0.0, 5.0], [2, 0, 1])
    """
    labels = labels.to(values.device)
    counts = torch.bincount(labels, minlength=num_classes)
    sums = values.new_zeros((num_classes, *values.shape[1:]), dtype=torch.float64)
    sums.index_add_(0, labels, values.double())
    shape = (-1,) + (1,) * (values.ndim - 1)
    return (sums / counts.clamp(min=1).reshape(shape)).float(), counts
