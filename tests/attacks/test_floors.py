"""Floors and the permuted null."""

import torch

from attacks.floors import ClassMean, MeanImage, permuted_view
from tests.attacks.tiny import knowledge, view


def test_class_mean_is_the_mean_of_the_class_and_the_mean_image_for_unseen_classes():
    known = knowledge()
    own = view(torch.eye(4)[[0, 1]])
    means = ClassMean().fit(known).reconstruct(own).images
    torch.testing.assert_close(means[0], known.images[known.labels == 0].mean(0))
    mean = MeanImage().fit(known).reconstruct(own).images
    torch.testing.assert_close(mean[0], known.images.mean(0))


def test_mixed_label_encoding_mixes_the_class_means():
    known = knowledge()
    own = view(torch.tensor([[0.25, 0.75, 0.0, 0.0]]))
    expected = 0.25 * known.images[known.labels == 0].mean(0) + 0.75 * known.images[known.labels == 1].mean(0)
    torch.testing.assert_close(ClassMean().fit(known).reconstruct(own).images[0], expected)


def test_permuted_view_moves_every_row_and_keeps_the_label_encoding():
    own = view(torch.eye(4)[[0, 1, 2, 3, 0]])
    null = permuted_view(own, knowledge())
    kept, moved = own.latest.representation, null.latest.representation
    assert not (kept == moved).all(1).any()
    assert torch.equal(kept.sort(0).values, moved.sort(0).values)
    assert torch.equal(own.latest.label_encoding, null.latest.label_encoding)


def test_single_row_null_is_made_of_auxiliary_images_with_the_same_weights():
    known = knowledge()
    own = view(torch.tensor([[0.5, 0.5, 0.0, 0.0]]))
    null = permuted_view(own, known, images_per_class=10_000).latest
    z = known.auxiliary_representations
    expected = 0.5 * z[known.labels == 0].mean(0) + 0.5 * z[known.labels == 1].mean(0)
    torch.testing.assert_close(null.representation[0], expected)
