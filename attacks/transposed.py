"""Transposed convolution that doubles a map, with a quicker gradient of its weight on processors.

oneDNN computes that gradient at half the rate of a matrix product, and it is two fifths of training the decoder. As
one product of the input with the unfolded gradient of the output it runs at nearly the full rate.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

KERNEL, STRIDE, PADDING = 4, 2, 1
UNFOLDED = 2**20
"""Numbers unfolded at a time: a block stays in the cache."""


class DoublingConvolution(nn.ConvTranspose2d):
    """[n,before,h,w] -> [n,after,2h,2w]: `nn.ConvTranspose2d` with kernel 4, stride 2 and padding 1, and its values."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__(before, after, KERNEL, stride=STRIDE, padding=PADDING)

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        """The layer's output, in the precision of an enclosing autocast."""
        if x.device.type != "cpu" or output_size is not None:
            return super().forward(x, output_size)
        own = self.weight.dtype
        return _Doubled.apply(
            x.to(torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else own), self.weight, self.bias
        )


class _Doubled(torch.autograd.Function):
    """Computed in the precision of x; the gradients of weight and bias are summed in their own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        own, ctx.dtype = weight.to(x.dtype), weight.dtype
        ctx.save_for_backward(x, own)
        return F.conv_transpose2d(x, own, bias.to(x.dtype), stride=STRIDE, padding=PADDING)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        of_input = F.conv2d(gradient, weight, stride=STRIDE, padding=PADDING)
        return of_input, weight_gradient(x, gradient, ctx.dtype), gradient.sum((0, 2, 3), dtype=ctx.dtype)


def weight_gradient(x: Tensor, gradient: Tensor, dtype: torch.dtype) -> Tensor:
    """Input [n,before,h,w], gradient of the output [n,after,2h,2w] -> gradient of the weight [before,after,4,4]."""
    before, after = x.shape[1], gradient.shape[1]
    at_once = max(1, UNFOLDED // (KERNEL * KERNEL * after * x.shape[2] * x.shape[3]))
    total = x.new_zeros(before, KERNEL * KERNEL * after, dtype=dtype)
    for part, slope in zip(x.split(at_once), gradient.split(at_once), strict=True):
        total += part.permute(0, 2, 3, 1).reshape(-1, before).T @ _unfolded(slope)
    return total.view(before, KERNEL, KERNEL, after).permute(0, 3, 1, 2)


def _unfolded(gradient: Tensor) -> Tensor:
    """[n,after,2h,2w] -> [n*h*w,4*4*after]: for each input position the outputs it takes part in, row by row."""
    n, after, height, width = gradient.shape
    padded = F.pad(gradient.permute(0, 2, 3, 1), (0, 0, PADDING, PADDING, PADDING, PADDING))
    image, row, column, _ = padded.stride()
    windows = padded.as_strided(
        (n, height // STRIDE, width // STRIDE, KERNEL, KERNEL * after), (image, STRIDE * row, STRIDE * column, row, 1)
    )
    return windows.reshape(-1, KERNEL * KERNEL * after)
