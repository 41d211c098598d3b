"""Mixings in blocks of samples."""

import pytest
import torch

from knowledge_forms import base
from knowledge_forms.base import Mixing


@pytest.mark.parametrize("shape", [(50, 8), (50,), (50, 3, 2, 2)])
def test_a_mixing_gives_the_same_bits_in_blocks(shape, monkeypatch):
    draw = torch.Generator().manual_seed(0)
    mixing = Mixing(torch.randint(5, (50,), generator=draw), torch.rand(50, generator=draw), 5)
    values = torch.randn(shape, generator=draw)
    whole = mixing.apply(values)
    monkeypatch.setattr(base, "AT_ONCE", 7)
    assert torch.equal(mixing.apply(values), whole)
