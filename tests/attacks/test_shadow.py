"""Shadow encoder: reads what the classifiers look at, and nothing of what they do not."""

import pytest
import torch

from attacks.floors import MeanImage
from attacks.knowledge import Q0
from attacks.shadow import Shadow, seen_by
from knowledge_forms.base import Classifier
from knowledge_forms.errors import AuditError
from tests.attacks.tiny import upload_of

CLASSES, WIDTH = 4, 8


def world(count=400, seed=0):
    """Images whose brightness is their class and a little more, and classifiers that read brightness off z."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, CLASSES, (count,), generator=generator)
    level = (labels + torch.rand(count, generator=generator)) / CLASSES
    images = level[:, None, None, None] + 0.05 * torch.randn(count, 1, 8, 8, generator=generator)
    return images.clamp(0, 1), labels


def heads():
    weight = torch.zeros(CLASSES, WIDTH)
    weight[:, :CLASSES] = torch.eye(CLASSES) * 4.0
    return {0: Classifier(weight * 0.5, torch.zeros(CLASSES)), 1: Classifier(weight, torch.zeros(CLASSES))}


def encoder(images):
    """An honest client's features: how near the brightness is to each class, then four the classifiers never use."""
    level = images.flatten(1).mean(1, keepdim=True)
    centres = (torch.arange(CLASSES) + 0.5) / CLASSES
    seen = torch.exp(-(((level - centres) * CLASSES) ** 2))
    return torch.cat([seen, images.flatten(1)[:, :4]], 1)


def test_basis_spans_what_the_classifiers_tell_apart():
    basis = seen_by(heads(), 0.05)
    assert basis.shape == (WIDTH, CLASSES - 1)  # contrasts: a common shift of all logits is invisible
    torch.testing.assert_close(basis.T @ basis, torch.eye(CLASSES - 1))
    assert basis[CLASSES:].abs().max() < 1e-6


def test_reads_the_image_through_the_classifiers_alone_and_the_null_does_not():
    images, labels = world()
    known = Q0(images, labels, CLASSES, 0, classifiers=heads())
    private, own = world(100, seed=1)
    view = upload_of(encoder(private), torch.eye(CLASSES)[own])
    attack = Shadow(steps=150).fit(known)

    def error(found):
        return float((found - private).square().mean())

    floor = error(MeanImage().fit(known).reconstruct(view).images)
    assert error(attack.reconstruct(view).images) < 0.5 * floor
    order = torch.randperm(100, generator=torch.Generator().manual_seed(2))
    someone = upload_of(encoder(private)[order], torch.eye(CLASSES)[own])
    assert error(attack.reconstruct(someone).images) > 0.9 * floor


def test_dimensions_no_classifier_reads_change_nothing():
    images, labels = world()
    attack = Shadow(steps=20).fit(Q0(images, labels, CLASSES, 0, classifiers=heads()))
    z = encoder(world(10, seed=1)[0])
    other = z.clone()
    other[:, CLASSES:] += 5.0
    found = [attack.reconstruct(upload_of(rows)).images for rows in (z, other)]
    torch.testing.assert_close(found[0], found[1])


def test_without_a_broadcast_it_refuses():
    images, labels = world(20)
    with pytest.raises(AuditError, match="turn --broadcast on"):
        Shadow().fit(Q0(images, labels, CLASSES, 0))
