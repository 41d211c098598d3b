"""Mappings to one width: windows as published, MP above AP, FC of the client's own."""

import math

import pytest
import torch

from fedre_audit.models import build_model, load_clients, save_clients
from knowledge_forms.mapping import MAPPINGS


@pytest.mark.parametrize(("name", "reduce"), [("AP", torch.mean), ("MP", torch.amax)])
@pytest.mark.parametrize(("native", "width"), [(8, 8), (16, 8), (32, 8), (20, 8), (12, 8), (5, 8)])
def test_windows_are_the_published_ones(name, reduce, native, width):
    features = torch.randn(3, native, generator=torch.Generator().manual_seed(native))
    found = MAPPINGS[name](native, width)(features)
    for i in range(width):
        window = features[:, math.floor(i * native / width) : math.ceil((i + 1) * native / width)]
        torch.testing.assert_close(found[:, i], reduce(window, dim=1))


def test_fc_is_learned_and_kept_with_the_client(tmp_path):
    model = build_model("small_vit", (1, 12, 12), 3, 48, seed=1, mapping="FC")
    assert model.encoder.mapping.weight.shape == (48, 768)
    assert model.encoder.mapping.weight.requires_grad
    again = build_model("small_vit", (1, 12, 12), 3, 48, seed=1, mapping="FC")
    assert torch.equal(model.encoder.mapping.weight, again.encoder.mapping.weight)
    save_clients(tmp_path, [model])
    (loaded,) = load_clients(tmp_path)
    images = torch.rand(2, 1, 12, 12)
    torch.testing.assert_close(loaded.represent(images), model.eval().represent(images))
    assert loaded.rebuild()(images).shape == (2, 48)


@pytest.mark.parametrize("name", MAPPINGS)
def test_every_mapping_fits_every_native_width(name):
    for native in (3, 48, 100):
        assert MAPPINGS[name](native, 48)(torch.zeros(2, native)).shape == (2, 48)
