"""What attackers are given."""

import pytest
import torch
from torch import nn

from attacks.base import ATTACKS
from attacks.knowledge import Q3
from knowledge_forms.errors import AuditError


class Overflows(nn.Module):
    """Flattens images; the one whose first pixel is 1 comes out infinite."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.flatten(1) / (1.0 - images[:, 0, 0, :1])


@pytest.mark.parametrize("name", ["ridge", "random_features_ridge", "nearest_auxiliary_embedding", "corrector"])
def test_an_encoder_that_overflows_is_named(name):
    images = 0.5 * torch.rand(20, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    images[7, 0, 0, 0] = 1.0
    encoder = Overflows()
    knowledge = Q3(images, torch.arange(20) % 2, 2, 0, architecture=nn.Flatten, encoder=encoder, module=encoder)
    with pytest.raises(AuditError, match=r"1 of 20 public images with NaN or infinity"):
        ATTACKS[name]().fit(knowledge)
