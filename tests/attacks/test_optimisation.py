"""Pixel optimisation: exact where the encoder keeps everything, inert where it learns nothing or cannot step."""

import pytest
import torch
from torch import nn

from attacks.optimisation import Optimisation, optimise, total_variation
from knowledge_forms.errors import AuditError
from tests.attacks.tiny import knowledge, upload_of


def images(count=4, shape=(1, 6, 6), seed=1):
    return torch.rand(count, *shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("optimiser", "lr"), [("adam", 0.05), ("gd", 1.0)])
@pytest.mark.parametrize("start", ["noise", "grey", "ridge"])
def test_identity_encoder_is_inverted(optimiser, lr, start):
    attack = Optimisation(start=start, tv=0.0, optimiser=optimiser, lr=lr, steps=400).fit(knowledge())
    truth = images()
    found = attack.reconstruct(upload_of(truth.flatten(1))).images
    torch.testing.assert_close(found, truth, atol=1e-3, rtol=0)


def test_learning_rate_zero_lands_on_the_start():
    start = images(seed=2)
    found, loss = optimise(nn.Flatten(), images().flatten(1), start, lr=0.0, steps=5)
    assert torch.equal(found, start)
    torch.testing.assert_close(loss, (start - images()).flatten(1).square().sum(1))


def test_collapsed_encoder_lands_on_the_start():
    start = images(seed=2)
    found, _ = optimise(lambda x: x.flatten(1) * 0.0, torch.zeros(4, 36), start, steps=20)
    assert torch.equal(found, start)


@pytest.mark.parametrize("distance", ["squared", "cosine"])
def test_rows_do_not_influence_each_other(distance):
    truth, start = images(), images(seed=2)
    options = {"steps": 10, "tv": 0.1, "l2": 0.1, "distance": distance}
    together, _ = optimise(nn.Flatten(), truth.flatten(1), start, **options)
    alone, _ = optimise(nn.Flatten(), truth.flatten(1), start, batch=1, **options)
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=0)


def test_more_noise_on_the_upload_more_error():
    truth = images()
    noise = torch.randn(truth.flatten(1).shape, generator=torch.Generator().manual_seed(4))
    errors = []
    for sigma in (0.0, 0.05, 0.2, 0.8):
        found, _ = optimise(nn.Flatten(), truth.flatten(1) + sigma * noise, images(seed=2), lr=0.05)
        errors.append(float((found - truth).square().mean()))
    assert errors == sorted(errors)
    assert errors[0] < 1e-4 < errors[-1]


def test_priors_pull_to_smooth_images_and_to_the_centre():
    truth = images()
    options = {"steps": 100, "scale": 36.0}
    plain, _ = optimise(nn.Flatten(), truth.flatten(1), truth, **options)
    smooth, _ = optimise(nn.Flatten(), truth.flatten(1), truth, tv=1.0, **options)
    near, _ = optimise(nn.Flatten(), truth.flatten(1), truth, l2=10.0, centre=0.2, **options)
    assert (total_variation(smooth) < 0.8 * total_variation(plain)).all()
    assert (near - 0.2).abs().mean() < 0.5 * (plain - 0.2).abs().mean()


def test_restarts_keep_the_nearest_representation():
    class Halves(nn.Module):
        """Blind to brightness outside a window: a start out there never moves."""

        def forward(self, x):
            return torch.relu(x.flatten(1) - 0.5)

    truth = images() * 0.5 + 0.5
    view = upload_of(Halves()(truth))
    known = knowledge(module=Halves())
    losses = []
    for restarts in (1, 4):
        found = Optimisation(start="noise", tv=0.0, steps=30, restarts=restarts).fit(known).reconstruct(view).images
        losses.append((Halves()(found) - Halves()(truth)).square().sum(1))
    assert (losses[1] <= losses[0] + 1e-6).all()
    assert (losses[1] < losses[0]).any()


def test_unknown_options_are_named():
    with pytest.raises(AuditError, match=r"unknown distance 'l3'.*squared, cosine"):
        optimise(nn.Flatten(), torch.zeros(1, 36), images(1), distance="l3")
    with pytest.raises(AuditError, match=r"unknown optimiser 'lbfgs'.*adam, gd"):
        optimise(nn.Flatten(), torch.zeros(1, 36), images(1), optimiser="lbfgs")
