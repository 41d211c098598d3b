"""Image metrics, all through piq behind this one file: per image, data range 1, facts beside each metric.

Images are [n,c,h,w] in [0,1]. A pair with a non-finite pixel scores NaN, is counted, and never reads as privacy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import piq
import torch
from torch import Tensor

from knowledge_forms.errors import AuditError
from knowledge_forms.registry import Registry


@dataclass(frozen=True)
class Metric:
    """compute: (reconstructions, targets) [n,c,h,w] in [0,1] -> [n]. more_leakage: 'higher' or 'lower'."""

    name: str
    unit: str
    more_leakage: str
    smallest: int
    compute: Callable[[Tensor, Tensor], Tensor]


METRICS: Registry[Metric] = Registry("metric")


def mse_255(x: Tensor, y: Tensor) -> Tensor:
    """Mean squared error on the 0-255 scale, as published. A uniform error of 0.1 scores 650.25."""
    return (x - y).square().flatten(1).mean(1) * 255.0**2


def psnr(x: Tensor, y: Tensor) -> Tensor:
    """Peak signal-to-noise ratio in dB, data range 1, capped at 80 dB by piq's epsilon. Error 0.1 scores 20 dB."""
    return piq.psnr(x, y, data_range=1.0, reduction="none")


def ssim(x: Tensor, y: Tensor) -> Tensor:
    """Structural similarity, 11x11 Gaussian window, data range 1 (Wang et al. 2004, doi 10.1109/TIP.2003.819861)."""
    values = piq.ssim(x, y, data_range=1.0, reduction="none", downsample=False)
    assert isinstance(values, Tensor)
    return values


METRICS.register("psnr")(Metric("psnr", "dB", "higher", 1, psnr))
METRICS.register("mse")(Metric("mse", "0-255 squared", "lower", 1, mse_255))
METRICS.register("ssim")(Metric("ssim", "", "higher", 11, ssim))


@dataclass(frozen=True)
class Rate:
    """A measure that is no image metric: a share or a rank score of guesses. more_leakage is always 'higher'."""

    name: str
    unit: str = ""
    more_leakage: str = "higher"


RATES = {
    name: Rate(name)
    for name in (
        "retrieval_top1",
        "retrieval_top5",
        "retrieval_mrr",
        "membership_auc",
        "membership_tpr_at_1pct",
        "evaluator_accuracy",
    )
}


def facts(name: str) -> Metric | Rate:
    """Unit and direction of an image metric or a rate, by name."""
    return RATES[name] if name in RATES else METRICS[name]


def within_bounds(metric: str, interval: Sequence[float] | None) -> tuple[float, float] | None:
    """An interval of a share, a rate or an AUC cut at 0 and 1, which a t-interval does not know; others as they are.

    >>> within_bounds("retrieval_top1", (0.783, 1.041)), within_bounds("psnr", (-0.5, 1.5))
    ((0.783, 1.0), (-0.5, 1.5))
    """
    if interval is None:
        return None
    low, high = interval
    return (max(low, 0.0), min(high, 1.0)) if metric in RATES else (low, high)


def sign_of(name: str) -> int:
    """+1 where higher means more leakage, -1 where lower does."""
    return 1 if facts(name).more_leakage == "higher" else -1


def check_images(images: Tensor, name: str) -> None:
    """Refuse what would score wrong without a sign of it: not NCHW float, or finite values outside [0,1].

    Data in [-1,1] reads 6.02 dB low, and MSE divided by three channels 4.77 dB high; both are published mistakes.
    """
    if images.ndim != 4 or not images.is_floating_point():
        raise AuditError(f"{name} must be float [n,c,h,w]; got {images.dtype} {tuple(images.shape)}")
    low, high = torch.aminmax(images.nan_to_num(0.5, 0.5, 0.5)) if images.numel() else (0.0, 1.0)
    if low < 0 or high > 1:
        raise AuditError(
            f"{name} reach from {float(low):.3g} to {float(high):.3g}; de-normalise and clamp to [0,1] once"
        )


def score_images(
    names: tuple[str, ...], reconstructions: Tensor, targets: Tensor, batch: int = 1024
) -> dict[str, Tensor]:
    """Every metric that the image size allows, per pair: {name: [n] float64}; NaN where a pixel is not finite."""
    check_images(reconstructions, "reconstructions")
    check_images(targets, "targets")
    if reconstructions.shape != targets.shape:
        raise AuditError(f"shapes differ: {tuple(reconstructions.shape)} and {tuple(targets.shape)}")
    metrics = [METRICS[name] for name in names if min(targets.shape[-2:]) >= METRICS[name].smallest]
    out: dict[str, Tensor] = {}
    valid = torch.isfinite(reconstructions).flatten(1).all(1)
    for metric in metrics:
        values = torch.full((len(targets),), float("nan"), dtype=torch.float64)
        for index in valid.nonzero().flatten().split(batch) if valid.any() else ():
            values[index] = metric.compute(reconstructions[index], targets[index]).double().cpu()
        out[metric.name] = values
    return out
