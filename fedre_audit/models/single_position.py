"""Convolutions that leave one position, as the matrix product they are.

Networks made for 224x224 shrink a 32x32 image to a single position, and there a 3x3 kernel with padding meets one
pixel: eight of nine taps multiply zeros, forwards and backwards, and convolution libraries are slow at that shape.
Half a ResNet-18 step at batch 32 goes there. Same sums, same gradients, up to the order of additions.
"""

from torch import Tensor, nn
from torch.nn import functional as F


def taps_that_meet(size: int, kernel: int, padding: int) -> tuple[slice, slice]:
    """Along one axis of `size` pixels, for the first position of a kernel: its taps that meet the image, and where.

    >>> taps_that_meet(1, 3, 1), taps_that_meet(2, 3, 1)
    ((slice(1, 2, None), slice(0, 1, None)), (slice(1, 3, None), slice(0, 2, None)))
    """
    first, last = padding, min(kernel, size + padding)
    return slice(first, last), slice(0, last - first)


class SinglePositionConv2d(nn.Conv2d):
    """`nn.Conv2d`, computed as a matrix product (depthwise: as a weighted sum) wherever one position comes out."""

    def forward(self, input: Tensor) -> Tensor:
        """[N,c,h,w] -> [N,o,h',w'] as `nn.Conv2d` gives."""
        depthwise = self.groups == self.in_channels == self.out_channels
        usual = self.padding_mode == "zeros" and self.dilation == (1, 1) and (self.groups == 1 or depthwise)
        if isinstance(self.padding, str) or not usual:
            return super().forward(input)
        axes = list(zip(input.shape[-2:], self.kernel_size, self.padding, strict=True))
        beyond = [size + 2 * padding - kernel for size, kernel, padding in axes]
        if not all(0 <= rest < stride for rest, stride in zip(beyond, self.stride, strict=True)):
            return super().forward(input)
        height, width = (taps_that_meet(*axis) for axis in axes)
        # Channels last before slicing: the gradient then has the strides of a channels_last weight.
        patch = input.permute(0, 2, 3, 1)[:, height[1], width[1]]
        weight = self.weight.permute(0, 2, 3, 1)[:, height[0], width[0]]
        if self.groups == 1:
            found = F.linear(patch.flatten(1), weight.flatten(1), self.bias)
        else:
            found = (patch * weight[..., 0].permute(1, 2, 0)).sum((1, 2))
            found = found if self.bias is None else found + self.bias
        return found[..., None, None]


def as_matrix_products(model: nn.Module) -> None:
    """Let every plain convolution of `model` take the shorter way; weights and names stay as they are."""
    for module in model.modules():
        if type(module) is nn.Conv2d:
            module.__class__ = SinglePositionConv2d  # a new module would have to copy weights and hooks


def as_convolutions(model: nn.Module) -> None:
    """Undo `as_matrix_products`: for counting nominal FLOPs, and for comparison."""
    for module in model.modules():
        if isinstance(module, SinglePositionConv2d):
            module.__class__ = nn.Conv2d  # type: ignore[assignment]
