"""Ridge against closed forms."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as SklearnRidge

from attacks.ridge import PENALTIES, choose_penalty, ridge
from knowledge_forms.errors import AuditError


def data(n=300, d=20, p=15, noise=0.1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    source = torch.randn(n, d, generator=generator)
    mixing = torch.randn(d, p, generator=generator)
    return source, source @ mixing + noise * torch.randn(n, p, generator=generator)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_equals_scikit_learn(penalty):
    source, target = data()
    scaled = (source / source.std(correction=0)).numpy()
    reference = SklearnRidge(alpha=penalty * len(source)).fit(scaled, target.numpy())
    ours = ridge(source, target, penalty)(source)
    np.testing.assert_allclose(ours.numpy(), reference.predict(scaled), atol=1e-4)


def test_is_affine_so_a_mean_decodes_to_the_mean():
    source, target = data()
    decoder = ridge(source, target, 0.01)
    torch.testing.assert_close(decoder(source[:5].mean(0, keepdim=True))[0], decoder(source[:5]).mean(0))


def test_collapsed_encoder_lands_on_the_mean():
    _, target = data()
    constant = torch.ones(300, 20)
    torch.testing.assert_close(ridge(constant, target, 0.01)(constant[:2]), target.mean(0).expand(2, -1))


def test_shuffled_pairs_choose_the_strongest_penalty():
    source, target = data(noise=1.0)
    order = torch.randperm(len(source), generator=torch.Generator().manual_seed(3))
    assert choose_penalty(source, target[order]) == max(PENALTIES)
    assert choose_penalty(source, target) < max(PENALTIES)


def test_an_encoder_about_to_collapse_is_solved_in_double_precision():
    draw = torch.Generator().manual_seed(0)
    direction = 1e3 * torch.randn(300, 1, generator=draw) @ torch.randn(1, 200, generator=draw)
    z, x = direction + 1e-3 * torch.randn(300, 200, generator=draw), torch.rand(300, 5, generator=draw)
    scaled = z / z.std(correction=0)
    gram = ((scaled - scaled.mean(0)).T @ (scaled - scaled.mean(0))).double()
    assert torch.linalg.eigvalsh(gram)[0] < -1e-6 * len(z)  # what float32 products give: no factor at this penalty
    found = ridge(z, x, 1e-6)(z)
    reference = SklearnRidge(alpha=1e-6 * len(z)).fit(scaled.double().numpy(), x.double().numpy())
    expected = torch.from_numpy(reference.predict(scaled.double().numpy()))
    torch.testing.assert_close(found.double(), expected, atol=2e-3, rtol=0)


def test_representations_that_are_no_numbers_are_one_clear_error():
    z = torch.full((20, 4), float("nan"))
    with pytest.raises(AuditError, match="not finite numbers"):
        ridge(z, torch.rand(20, 3), 0.1)
