"""Factories of encoders as auditors bring them."""

import torch
from torch import Tensor, nn

from fedre_audit.models.base import FAMILIES, build_model

WIDTH = 32


def engine(client: int) -> nn.Module:
    """The encoder of the engine's client, so that its weights fit."""
    return build_model(
        FAMILIES["fedavg_cnn"][client % len(FAMILIES["fedavg_cnn"])], (1, 28, 28), 10, WIDTH, seed=0
    ).encoder


def plain(channels: int, size: int, width: int = WIDTH) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * size * size, width)
    )


def colour48() -> nn.Module:
    return plain(3, 48)


def grey28() -> nn.Module:
    return plain(1, 28).eval()


class Returns(nn.Module):
    """A module that returns what `how` makes of its features and of the images."""

    def __init__(self, how) -> None:
        super().__init__()
        self.inner, self.how = plain(1, 28), how

    def forward(self, images: Tensor):
        return self.how(self.inner(images), images)


def pair() -> nn.Module:
    return Returns(lambda z, x: (z, x)).eval()


def four_d() -> nn.Module:
    return Returns(lambda z, x: z[:, :, None, None]).eval()


def maps() -> nn.Module:
    return Returns(lambda z, x: z[:, :, None, None].expand(-1, -1, 3, 3)).eval()


def dictionary() -> nn.Module:
    return Returns(lambda z, x: {"features": z})


def noisy() -> nn.Module:
    return Returns(lambda z, x: z + torch.rand_like(z))


def of_batch() -> nn.Module:
    return Returns(lambda z, x: z - z.mean(0))


def not_a_number() -> nn.Module:
    return Returns(lambda z, x: z / 0 * 0)


def constant() -> nn.Module:
    return Returns(lambda z, x: torch.ones_like(z))


def dropped() -> nn.Module:
    return nn.Sequential(plain(1, 28), nn.Dropout(0.5))


def no_module() -> int:
    return 3


def asserting() -> nn.Module:
    def how(z, x):
        assert x.shape[1] == 3, "colour only"

    return Returns(how)


def keyed() -> nn.Module:
    return Returns(lambda z, x: {}["features"])
