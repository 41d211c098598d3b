"""The `small` family: five architectures that differ in kind and train in milliseconds a step on one CPU core.

Each keeps a coarse grid of positions in its features, as the flattened CNNs of the literature do. Images of any
size, one or three channels. Native widths 512, 512, 1024, 512 and 768: the AP mapping is exercised.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fedre_audit.models.base import FAMILIES, MODELS, ImageShape

GRID = 4  # positions kept along each side


def _pooled() -> list[nn.Module]:
    """[N,c,h,w] -> [N,16c]: average-pooled to the coarse grid, flattened."""
    return [nn.AdaptiveAvgPool2d(GRID), nn.Flatten()]


@MODELS.register("small_cnn")
def small_cnn(image_shape: ImageShape) -> nn.Module:
    """Plain CNN, [N,c,h,w] -> [N,512]."""
    return nn.Sequential(
        nn.Conv2d(image_shape[0], 16, 5, stride=2, padding=2), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(GRID), nn.Flatten(),
        nn.Linear(32 * GRID * GRID, 512), nn.ReLU(),
    )  # fmt: skip


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with batch norm beside a 1x1 shortcut (He et al., arXiv 1512.03385)."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
            nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip
        self.shortcut = nn.Conv2d(channels, out, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[N,channels,h,w] -> [N,out,h/stride,w/stride]."""
        return F.relu(self.body(x) + self.shortcut(x))


@MODELS.register("small_resnet")
def small_resnet(image_shape: ImageShape) -> nn.Module:
    """Residual network with batch norm, [N,c,h,w] -> [N,512]."""
    return nn.Sequential(
        nn.Conv2d(image_shape[0], 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        ResidualBlock(16, 32, stride=2),
        *_pooled(),
    )  # fmt: skip


def _separable(channels: int, out: int, kernel: int, stride: int) -> list[nn.Module]:
    """Each channel on its own, then a 1x1 convolution across: [N,channels,h,w] -> [N,out,h/stride,w/stride]."""
    return [
        nn.Conv2d(channels, channels, kernel, stride=stride, padding=kernel // 2, groups=channels),
        nn.Conv2d(channels, out, 1), nn.GroupNorm(4, out), nn.ReLU(),
    ]  # fmt: skip


@MODELS.register("small_depthwise")
def small_depthwise(image_shape: ImageShape) -> nn.Module:
    """Depthwise separable convolutions (MobileNet, arXiv 1704.04861) with group norm, [N,c,h,w] -> [N,1024]."""
    return nn.Sequential(
        nn.Conv2d(image_shape[0], 16, 5, stride=2, padding=2), nn.ReLU(),
        *_separable(16, 64, kernel=5, stride=2), *_separable(64, 64, kernel=3, stride=1),
        *_pooled(),
    )  # fmt: skip


class PatchGrid(nn.Module):
    """Cut an image of any size into side x side patches and embed each: [N,c,h,w] -> [N,side*side,dim]."""

    def __init__(self, image_shape: ImageShape, side: int, dim: int) -> None:
        super().__init__()
        channels, height, width = image_shape
        patch = (math.ceil(height / side), math.ceil(width / side))
        self.pad = (0, side * patch[1] - width, 0, side * patch[0] - height)
        self.embed = nn.Conv2d(channels, dim, patch, stride=patch)

    def forward(self, x: Tensor) -> Tensor:
        """[N,c,h,w] -> [N,side*side,dim], row by row."""
        return self.embed(F.pad(x, self.pad)).flatten(2).transpose(1, 2)


def _mlp(width: int, hidden: int) -> nn.Module:
    """Two layers over the last axis: [...,width] -> [...,width]."""
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class MixerBlock(nn.Module):
    """An MLP across tokens, then one across channels (MLP-Mixer, arXiv 2105.01601)."""

    def __init__(self, tokens: int, dim: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.across, self.within = _mlp(tokens, tokens // 2), _mlp(dim, 2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        """[N,tokens,dim] -> the same shape."""
        x = x + self.across(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.norms[1](x))


class ToGrid(nn.Module):
    """Tokens back to a map: [N,side*side,dim] -> [N,dim,side,side]."""

    def forward(self, x: Tensor) -> Tensor:
        """[N,side*side,dim] -> [N,dim,side,side]."""
        side = math.isqrt(x.shape[1])
        return x.transpose(1, 2).unflatten(2, (side, side))


@MODELS.register("small_mixer")
def small_mixer(image_shape: ImageShape) -> nn.Module:
    """MLP-Mixer on 7x7 patches whose tokens are pooled to 4x4, [N,c,h,w] -> [N,512]."""
    side, dim = 7, 32
    blocks = [MixerBlock(side * side, dim) for _ in range(2)]
    return nn.Sequential(PatchGrid(image_shape, side, dim), *blocks, ToGrid(), *_pooled())


class AttentionBlock(nn.Module):
    """Pre-norm self-attention and MLP (ViT, arXiv 2010.11929), without dropout."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.qkv, self.out, self.mlp = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), _mlp(dim, 2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        """[N,tokens,dim] -> the same shape."""
        qkv = self.qkv(self.norms[0](x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


class Positions(nn.Module):
    """Adds a learned position to every token."""

    def __init__(self, tokens: int, dim: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(0.02 * torch.randn(tokens, dim))

    def forward(self, x: Tensor) -> Tensor:
        """[N,tokens,dim] -> the same shape."""
        return x + self.embedding


@MODELS.register("small_vit")
def small_vit(image_shape: ImageShape) -> nn.Module:
    """Tiny vision transformer on 4x4 patches, all tokens kept, [N,c,h,w] -> [N,768]."""
    dim = 48
    return nn.Sequential(
        PatchGrid(image_shape, GRID, dim), Positions(GRID * GRID, dim),
        AttentionBlock(dim, 3), nn.Flatten(),
    )  # fmt: skip


FAMILIES.register("small")(("small_cnn", "small_resnet", "small_depthwise", "small_mixer", "small_vit"))
FAMILIES.register("small_cnn")(("small_cnn",))
