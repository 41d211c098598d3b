"""Ridge against closed forms."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as SklearnRidge

from attacks.ridge import PENALTIES, choose_penalty, ridge


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
