"""How many private and public images are taken where the data set has fewer than the preset asks for."""

import pytest
import torch

from fedre_audit.config import AuditConfig, resolve
from fedre_audit.data.base import ImageData
from fedre_audit.stages.prepare import sizes_of


def images(count, tests=0):
    """A data set of `count` images, the last `tests` of them its official test part."""
    split = torch.zeros(count, dtype=torch.int8)
    split[count - tests :] = 1
    labels = torch.arange(count) % 6
    return ImageData("toy", torch.zeros(count, 1, 2, 2, dtype=torch.uint8), labels, tuple("abcdef"), split)


@pytest.mark.parametrize(
    ("options", "data", "sizes"),
    [
        ({}, images(4625), (1500, 2500)),
        ({}, images(240), (240 * 1500 // 4625, 240 * 2500 // 4625)),
        ({}, images(240, tests=200), (40, 129)),
        ({"private_images": 120}, images(240), (120, 2500)),  # what the user chose; the split shrinks public ones
        ({"auxiliary_images": 40}, images(240), (190, 40)),
        ({"auxiliary_images": 4000}, images(240), (240 * 1500 // 6500, 4000)),
        ({"auxiliary": "mnist5k"}, images(240), (240 * 1500 // 2125, 2500)),
        ({"auxiliary": "classes:odd"}, images(240), (77, 129)),
        ({"preset": "full"}, images(5000), (3913, 869)),
    ],
)
def test_the_preset_makes_room_and_the_user_is_heeded(options, data, sizes):
    assert sizes_of(resolve(AuditConfig(**options)), data) == sizes
