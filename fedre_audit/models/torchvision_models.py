"""The extractors of the published heterogeneous families: torchvision's networks, never pretrained, heads removed.

Layers are torchvision's own (He et al., arXiv 1512.03385; Szegedy et al., arXiv 1409.4842; Sandler et al.,
arXiv 1801.04381; Dosovitskiy et al., arXiv 2010.11929); images of one or three channels and any size from 16x16.
"""

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from fedre_audit.models.base import MODELS, ImageShape

# torchvision is imported where a network is built: it takes a second, and most audits need none of these.


def fit_channels(convolution: nn.Conv2d, channels: int) -> nn.Conv2d:
    """The same convolution for `channels` input channels; the one given where it fits already."""
    if convolution.in_channels == channels:
        return convolution
    return nn.Conv2d(
        channels,
        convolution.out_channels,
        convolution.kernel_size,  # type: ignore[arg-type]
        stride=convolution.stride,  # type: ignore[arg-type]
        padding=convolution.padding,  # type: ignore[arg-type]
        bias=convolution.bias is not None,
    )


def small_resnet_of(blocks: int) -> Callable[[ImageShape], nn.Module]:
    """The first `blocks` stages of a residual network, one basic block each: 2 blocks + 2 layers deep."""

    def build(image_shape: ImageShape) -> nn.Module:
        from torchvision.models.resnet import BasicBlock, ResNet

        model = ResNet(BasicBlock, [1, 1, 1, 1])
        for stage in range(blocks + 1, 5):
            setattr(model, f"layer{stage}", nn.Identity())
        return _without_head(model, image_shape)

    build.__doc__ = f"ResNet{2 * blocks + 2}, one basic block a stage, [N,c,h,w] -> [N,{32 << blocks}]."
    return build


def resnet_of(depth: int, width: int) -> Callable[[ImageShape], nn.Module]:
    """torchvision's residual network of this depth."""

    def build(image_shape: ImageShape) -> nn.Module:
        import torchvision

        model: Any = getattr(torchvision.models, f"resnet{depth}")(weights=None)
        return _without_head(model, image_shape)

    build.__doc__ = f"ResNet{depth}, [N,c,h,w] -> [N,{width}]."
    return build


def _without_head(model: Any, image_shape: ImageShape) -> nn.Module:
    model.conv1 = fit_channels(model.conv1, image_shape[0])
    model.fc = nn.Identity()
    return model


for _blocks in (1, 2, 3, 4):
    MODELS.register(f"resnet{2 * _blocks + 2}")(small_resnet_of(_blocks))
for _depth, _width in ((18, 512), (34, 512), (50, 2048), (101, 2048), (152, 2048)):
    MODELS.register(f"resnet{_depth}")(resnet_of(_depth, _width))


@MODELS.register("googlenet")
def googlenet(image_shape: ImageShape) -> nn.Module:
    """GoogLeNet without auxiliary heads, dropout kept, [N,c,h,w] -> [N,1024]."""
    from torchvision.models import googlenet as build

    model: Any = build(weights=None, aux_logits=False, init_weights=True)
    model.conv1.conv = fit_channels(model.conv1.conv, image_shape[0])
    model.fc = nn.Identity()
    return model


@MODELS.register("mobilenet_v2")
def mobilenet_v2(image_shape: ImageShape) -> nn.Module:
    """MobileNetV2, its dropout kept, [N,c,h,w] -> [N,1280]."""
    from torchvision.models import mobilenet_v2 as build

    model: Any = build(weights=None)
    model.features[0][0] = fit_channels(model.features[0][0], image_shape[0])
    model.classifier[1] = nn.Identity()
    return model


class Padded(nn.Module):
    """Pads images with grey (0 after normalisation) to side x side, right and below, for a network of that size."""

    def __init__(self, image_shape: ImageShape, side: int, network: nn.Module) -> None:
        super().__init__()
        self.pad = (0, side - image_shape[2], 0, side - image_shape[1])
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """[N,c,h,w] -> [N,a]."""
        return self.network(F.pad(x, self.pad))


def _vit(image_shape: ImageShape, patch: int) -> nn.Module:
    """The image size given to the network is the smallest square of whole patches that covers the image."""
    from torchvision.models.vision_transformer import VisionTransformer

    side = patch * math.ceil(max(image_shape[1:]) / patch)
    model: Any = VisionTransformer(
        image_size=side, patch_size=patch, num_layers=12, num_heads=12, hidden_dim=768, mlp_dim=3072
    )
    model.conv_proj = fit_channels(model.conv_proj, image_shape[0])
    model.heads = nn.Identity()
    return Padded(image_shape, side, model)


@MODELS.register("vit_b_16")
def vit_b_16(image_shape: ImageShape) -> nn.Module:
    """ViT-B/16, images padded to whole 16x16 patches, [N,c,h,w] -> [N,768]."""
    return _vit(image_shape, 16)


@MODELS.register("vit_b_32")
def vit_b_32(image_shape: ImageShape) -> nn.Module:
    """ViT-B/32, images padded to whole 32x32 patches, [N,c,h,w] -> [N,768]."""
    return _vit(image_shape, 32)
