"""Metrics against closed forms and scikit-image."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.metrics import structural_similarity

from fedre_audit.audit.metrics import METRICS, score_images, sign_of
from knowledge_forms.errors import AuditError

SHAPES = [(1, 28, 28), (3, 32, 32), (3, 24, 40)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_uniform_error_of_a_tenth(shape):
    target = torch.rand(4, *shape, generator=torch.Generator().manual_seed(0)) * 0.9
    scores = score_images(("psnr", "mse"), target + 0.1, target)
    torch.testing.assert_close(scores["psnr"], torch.full((4,), 20.0, dtype=torch.float64), atol=1e-3, rtol=0)
    torch.testing.assert_close(scores["mse"], torch.full((4,), 650.25, dtype=torch.float64), atol=1e-2, rtol=0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_ssim_agrees_with_scikit_image(shape):
    generator = torch.Generator().manual_seed(1)
    target = torch.rand(3, *shape, generator=generator)
    noisy = (target + 0.2 * torch.randn(3, *shape, generator=generator)).clamp(0, 1)
    ours = score_images(("ssim",), noisy, target)["ssim"]
    for i in range(3):
        reference = structural_similarity(
            noisy[i].numpy(), target[i].numpy(), channel_axis=0, data_range=1.0,
            gaussian_weights=True, sigma=1.5, use_sample_covariance=False,
        )  # fmt: skip
        assert abs(float(ours[i]) - reference) < 1e-3


@pytest.mark.parametrize("name", METRICS)
@settings(deadline=None)
@given(seed=st.integers(0, 1000))
def test_identity_symmetry_and_monotone_in_noise(name, seed):
    generator = torch.Generator().manual_seed(seed)
    target = torch.rand(1, 3, 16, 16, generator=generator) * 0.6 + 0.2
    noise = torch.randn(1, 3, 16, 16, generator=generator).clamp(-2, 2) * 0.05
    metric = METRICS[name]
    perfect, little, much = (
        float(metric.compute((target + scale * noise).clamp(0, 1), target)) * sign_of(name) for scale in (0, 1, 2)
    )
    assert perfect > little > much
    assert float(metric.compute(target, target + noise)) == pytest.approx(
        float(metric.compute(target + noise, target)), abs=1e-5
    )


def test_nan_is_counted_never_scored():
    target = torch.rand(3, 1, 16, 16)
    broken = target.clone()
    broken[1, 0, 3, 3] = float("nan")
    scores = score_images(("psnr", "mse", "ssim"), broken, target)
    for values in scores.values():
        assert np.isnan(values[1])
        assert np.isfinite(values[[0, 2]]).all()


@pytest.mark.parametrize("bad", [torch.rand(2, 1, 12, 12) * 2 - 1, torch.rand(2, 1, 12, 12) * 255])
def test_a_wrong_range_is_refused(bad):
    with pytest.raises(AuditError, match="clamp to"):
        score_images(("psnr",), torch.rand(2, 1, 12, 12), bad)


def test_wrong_types_and_shapes_are_refused():
    with pytest.raises(AuditError, match="must be float"):
        score_images(("psnr",), torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(2, 1, 4, 4))
    with pytest.raises(AuditError, match="shapes differ"):
        score_images(("psnr",), torch.zeros(2, 1, 4, 4), torch.zeros(2, 3, 4, 4))


def test_ssim_is_left_out_where_the_image_is_smaller_than_its_window():
    assert set(score_images(("psnr", "ssim"), torch.zeros(1, 1, 8, 8), torch.zeros(1, 1, 8, 8))) == {"psnr"}
