"""What an extractor costs, counted on shapes alone: no weight is allocated."""

from collections.abc import Callable

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fedre_audit.models.base import ImageShape


def measure(build: Callable[[ImageShape], nn.Module], image_shape: ImageShape = (3, 32, 32)) -> tuple[int, int, int]:
    """(parameters, FLOPs of one image's forward pass, native width) of an extractor, without mapping and head.

    A multiplication and an addition count two FLOPs; activations, norms and pooling count none.

    >>> from fedre_audit.models.base import MODELS
    >>> measure(MODELS["fedavg_cnn"])
    (873408, 15641600, 512)
    """
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        extractor = build(image_shape).eval()
        width = extractor(torch.empty(1, *image_shape)).shape[1]
    return sum(parameter.numel() for parameter in extractor.parameters()), int(counter.get_total_flops()), width
