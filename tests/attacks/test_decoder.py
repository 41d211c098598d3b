"""The convolutional decoder: floor, learning, shapes, and the choice between it and ridge."""

import math

import pytest
import torch
from torch import nn

from attacks.decoder import DecoderAttack, DecoderNetwork, Distance, has_bf16, own_range
from attacks.floors import MeanImage
from attacks.knowledge import Q3
from attacks.ridge import Ridge
from knowledge_forms.base import ServerView, Upload

SHAPE = (1, 8, 8)


class Rectified(nn.Module):
    """A fixed random layer whose units saturate: no affine map undoes it."""

    def __init__(self, width: int = 10) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.weight = nn.Parameter(torch.randn(math.prod(SHAPE), width, generator=generator))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.sign(images.flatten(1) @ self.weight - 0.5 * self.weight.sum(0))


def blobs(count: int, seed: int) -> torch.Tensor:
    """Images of one bright square each: few numbers decide them, and not affinely."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.zeros(count, *SHAPE)
    for image, (y, x) in zip(images, torch.randint(0, 5, (count, 2), generator=generator).tolist(), strict=True):
        image[:, y : y + 4, x : x + 4] = 1.0
    return images


def knowledge(images: torch.Tensor, encoder: nn.Module) -> Q3:
    labels = torch.arange(len(images)) % 2
    return Q3(images=images, labels=labels, num_classes=2, seed=0, architecture=nn.Flatten, encoder=encoder,
              module=encoder)  # fmt: skip


def view(z: torch.Tensor) -> ServerView:
    encoding = torch.full((len(z), 2), 0.5)
    return ServerView("", "raw", "", z.shape[1], 2, (Upload(0, 0, "raw", z.detach(), encoding),))


def error(attack, z, images):
    return float((attack.reconstruct(view(z)).images - images).square().mean())


@pytest.fixture(scope="module")
def known():
    return knowledge(blobs(600, 0), Rectified())


@pytest.fixture(scope="module")
def fitted(known):
    return DecoderAttack(steps=60).fit(known)


@pytest.mark.parametrize("options", [{"lr": 0.0, "steps": 5}, {"steps": 0}])
def test_without_learning_it_is_the_mean_image_exactly(known, options):
    z = known.auxiliary_representations[:9]
    attack = DecoderAttack(**options, fallback=False).fit(known)
    assert torch.equal(attack.reconstruct(view(z)).images, MeanImage().fit(known).reconstruct(view(z)).images)


@pytest.mark.parametrize("shape", [(1, 3, 3), (1, 28, 28), (3, 32, 32), (3, 24, 40), (3, 64, 64), (1, 5, 37)], ids=str)
def test_every_size_comes_out_exactly(shape):
    network = DecoderNetwork(torch.randn(9, 20), torch.rand(shape))
    nn.init.ones_(network.last.weight)
    assert network(torch.randn(2, 20)).shape == (2, *shape)


def test_beats_ridge_where_the_encoder_is_not_affine(fitted, known):
    images = blobs(200, 7)
    z = known.encoder(images)
    assert error(fitted, z, images) < 0.7 * error(Ridge().fit(known), z, images)
    assert fitted.choice_.count("decoder") > 190


def test_prototypes_of_many_images_go_to_ridge(fitted, known):
    images = blobs(600, 8).reshape(6, 100, *SHAPE)
    z = torch.stack([known.encoder(group).mean(0) for group in images])
    found = fitted.reconstruct(view(z)).images
    assert fitted.choice_ == ("ridge",) * 6
    assert torch.equal(found, Ridge().fit(known).reconstruct(view(z)).images)
    far = 20 * known.auxiliary_representations[:2]
    fitted.reconstruct(view(far))
    assert fitted.choice_ == ("ridge",) * 2


def test_a_decoder_that_never_wins_is_never_trusted(known):
    attack = DecoderAttack(steps=0).fit(known)
    z = known.auxiliary_representations[:20]
    assert torch.equal(attack.reconstruct(view(z)).images, Ridge().fit(known).reconstruct(view(z)).images)
    assert attack.range_[0] == math.inf


def test_stops_early_on_what_cannot_be_learned_and_keeps_the_best():
    generator = torch.Generator().manual_seed(0)
    noise = torch.rand(60, *SHAPE, generator=generator)
    attack = DecoderAttack(steps=200).fit(knowledge(noise, Rectified(4)))
    errors = dict(attack.validation_curve_)
    assert attack.steps_ < 200
    assert list(errors)[-1] == attack.steps_
    assert attack.steps_ - min(errors, key=errors.get) >= 6 * 10


def test_collapsed_encoder_gives_the_mean_image(known):
    class Constant(nn.Module):
        def forward(self, images):
            return torch.ones(len(images), 5)

    constant = knowledge(known.images, Constant())
    attack = DecoderAttack(steps=20).fit(constant)
    found = attack.reconstruct(view(torch.ones(3, 5))).images
    mean = MeanImage().fit(constant).reconstruct(view(torch.ones(3, 5))).images
    torch.testing.assert_close(found, mean, atol=0.05, rtol=0)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_handful_of_auxiliary_images_suffices(count):
    attack = DecoderAttack(steps=3).fit(knowledge(blobs(count, 0), Rectified()))
    assert attack.reconstruct(view(torch.zeros(2, 10))).images.isfinite().all()


def test_precision_barely_matters(known, fitted):
    images = blobs(100, 7)
    z = known.encoder(images)
    full = DecoderAttack(steps=60, bf16=False).fit(known)
    assert abs(error(full, z, images) - error(fitted, z, images)) < 0.02
    assert not has_bf16(torch.device("meta"))


def test_distance_of_a_mean_shrinks_with_the_root_of_its_count():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(4000, 16, generator=generator) * torch.linspace(0.5, 2, 16) + 3
    distance = Distance.of(z)
    groups = z.reshape(250, 16, 16)
    assert distance(z).mean() == pytest.approx(1.0, abs=0.05)
    assert distance(groups.mean(1)).mean() == pytest.approx(0.25, abs=0.02)


def test_range_ends_where_the_better_decoder_changes():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(400, 30, generator=generator)
    images = z[:, :4].reshape(-1, 1, 2, 2)
    distance = Distance.of(z)
    # Right on single images only: its answer does not shrink with the input.
    decoder = lambda v: (v / distance(v)[:, None])[:, :4]  # noqa: E731
    affine = lambda v: 0.8 * v[:, :4]  # noqa: E731
    low, high = own_range(distance, decoder, affine, z, images, generator)
    assert 0.5 < low < 1.0 < high
