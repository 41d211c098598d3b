"""Shifted public data: the right classes, the right shape, never an image that is to be guessed."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedre_audit.data.auxiliary import auxiliary_data, fit_images, parse_classes
from fedre_audit.data.base import ImageData, image_hashes
from fedre_audit.data.splits import make_split
from knowledge_forms.errors import AuditError


def data(count=120, shape=(1, 8, 8), classes=("a", "b", "c", "d"), seed=0):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (count, *shape), generator=generator, dtype=torch.uint8)
    return ImageData("tiny", images, torch.arange(count) % len(classes), classes, torch.zeros(count, dtype=torch.int8))


def draw(spec, own, other=None, count=30):
    split = make_split(own, private=40, auxiliary=None, evaluation=10, seed=0)
    return split, auxiliary_data(own, split, spec, count=count, seed=0, load=lambda name: other)


def test_some_classes_of_the_same_data_without_the_private_images():
    own = data()
    split, found = draw("classes:odd", own)
    assert set(found.labels.tolist()) == {1, 3}
    assert len(found) == 30
    taken = own.images[torch.cat([split.private, split.evaluation])]
    assert not np.isin(image_hashes(found.images), image_hashes(taken)).any()


def test_a_private_image_that_occurs_twice_is_left_out():
    own = data()
    twice = own.subset(torch.arange(120).repeat(2))
    split, found = draw("classes:even", twice, count=200)
    assert not np.isin(image_hashes(found.images), image_hashes(twice.images[split.private])).any()


def test_another_data_set_takes_shape_and_class_numbers_of_the_audited_one():
    other = data(50, (3, 16, 12), ("d", "x", "a"), seed=1)
    _, found = draw("other", data(), other)
    assert found.images.shape == (30, 1, 8, 8)
    assert found.images.dtype == torch.uint8
    assert set(found.labels.tolist()) == {3, -1, 0}
    assert found.classes == ("a", "b", "c", "d")


def test_another_data_set_with_private_images_is_refused():
    own = data()
    with pytest.raises(AuditError, match="auxiliary images are also among the private"):
        draw("other", own, replace(own, name="copy"), count=120)


def test_same_leaves_the_split_its_own_part():
    assert draw("same", data())[1] is None


def test_grey_to_colour_and_back_keeps_a_grey_image():
    grey = data(4).images
    colour = fit_images(grey, (3, 8, 8))
    assert colour.shape == (4, 3, 8, 8)
    assert (colour[:, 0] == colour[:, 2]).all()
    assert torch.equal(fit_images(colour, (1, 8, 8)), grey)


def test_a_flat_image_stays_flat_at_another_size():
    flat = torch.full((2, 3, 9, 7), 77, dtype=torch.uint8)
    assert torch.equal(fit_images(flat, (3, 12, 16)), torch.full((2, 3, 12, 16), 77, dtype=torch.uint8))


@pytest.mark.parametrize("text", ["", "none", "1-", "0,9", "3-1"])
def test_bad_classes_are_named(text):
    with pytest.raises(AuditError, match=f"--auxiliary classes:{text}"):
        parse_classes(text, 4)
