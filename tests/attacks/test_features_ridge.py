"""Random Fourier features against the kernel they stand for, and ridge on them against what ridge cannot do."""

import torch
from torch import nn

from attacks.features_ridge import FourierFeatures, RandomFeaturesRidge
from attacks.retrieval import NearestAuxiliaryEmbedding
from attacks.ridge import Ridge
from tests.attacks.tiny import knowledge, upload_of


class Wave(nn.Module):
    """Bends strongly: a linear decoder cannot follow."""

    def forward(self, images):
        x = images.flatten(1)[:, :3]
        return torch.cat([torch.cos(4.0 * x), torch.sin(4.0 * x)], 1)


def test_products_of_features_approach_the_gaussian_kernel():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(30, 5, generator=generator)
    features = FourierFeatures.draw(z, 40_000, 1.5, generator)
    spread = float((z - z.mean(0)).square().sum(1).mean())
    kernel = torch.exp(-torch.cdist(z, z).square() / (2 * 1.5**2 * spread))
    phi = features(z)
    torch.testing.assert_close(phi @ phi.T, kernel, atol=0.03, rtol=0)


def test_beats_ridge_where_the_encoder_bends():
    known = knowledge(count=600, module=Wave())
    truth = knowledge(count=100, seed=1).images
    view = upload_of(Wave()(truth))
    errors = []
    for attack in (RandomFeaturesRidge(features=256), Ridge()):
        found = attack.fit(known).reconstruct(view).images
        errors.append(float((found - truth).flatten(1)[:, :3].square().mean()))
    assert errors[0] < 0.5 * errors[1]


def test_collapsed_encoder_lands_on_the_mean_image():
    known = knowledge(module=nn.Sequential(nn.Flatten(), nn.Hardtanh(0.0, 1e-30)))
    blank = upload_of(torch.zeros(3, 36))
    found = RandomFeaturesRidge(features=32).fit(known).reconstruct(blank).images
    torch.testing.assert_close(found, known.images.mean(0).expand_as(found), atol=1e-3, rtol=0)


def test_nearest_auxiliary_embedding_answers_with_the_auxiliary_image_itself():
    known = knowledge()
    chosen = [3, 1, 40]
    view = upload_of(known.images[chosen].flatten(1) + 1e-4)
    assert torch.equal(NearestAuxiliaryEmbedding().fit(known).reconstruct(view).images, known.images[chosen])
