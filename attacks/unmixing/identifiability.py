"""How far unmixing can be trusted, without any truth: rank, condition, predicted error, permuted-weights null."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

BAND = 2.5  # predicted and true error agree within this factor on the pilot streams
LIMIT = 0.8  # predicted error above which nothing is claimed
ROUNDS_PER_CLASS = 1.2  # at T = h the mean error is infinite


def rank_of(weights: Tensor) -> tuple[int, float]:
    """Weights [T,h] -> (numerical rank at float32 precision, condition number; infinite below full rank)."""
    values = torch.linalg.svdvals(weights)
    rank = int((values > 1e-6 * values[0]).sum())
    return rank, float(values[0] / values[-1]) if rank == weights.shape[1] else math.inf


def minimum_rounds(classes: int) -> int:
    """Uploads needed before recovery of `classes` prototypes may be claimed."""
    return math.ceil(ROUNDS_PER_CLASS * classes)


@dataclass(frozen=True)
class Judgement:
    """status: validated | inconclusive | not_validated | refused. reason: one sentence in plain words."""

    status: str
    reason: str


def judge(
    *, rounds: int, classes: int, rank: int, error: float, null_gap: float, models_drift: bool = True
) -> Judgement:
    """The rule, from what the server knows alone. error: predicted relative error. null_gap: nats per scalar.

    A method that takes prototypes for constant (or a fixed curve) cannot predict its own error, so it never claims.
    """
    neither = "unmixing not validated: neither leak nor safety shown"
    if rounds < minimum_rounds(classes):
        return Judgement(
            "not_validated",
            f"{neither}; {rounds} uploads for {classes} classes, at least {minimum_rounds(classes)} are needed",
        )
    if rank < classes:
        return Judgement("not_validated", f"{neither}; the label encodings have rank {rank} for {classes} classes")
    if math.isnan(null_gap):
        return Judgement("not_validated", f"{neither}; no permuted-weights null was run, or its fit is not finite")
    if not models_drift:
        return Judgement("not_validated", f"{neither}; this method knows no drift, so its error cannot be predicted")
    if not null_gap > 0:
        return Judgement(
            "not_validated", f"{neither}; permuted weights explain the uploads as well (gap {null_gap:.2f} nats)"
        )
    if not error <= LIMIT:
        return Judgement("not_validated", f"{neither}; the predicted error {error:.2f} is above {LIMIT}")
    if error * BAND > 1.0:
        return Judgement(
            "inconclusive",
            f"predicted error {error:.2f}, its band {error / BAND:.2f}-{error * BAND:.2f} reaches 1 (no recovery)",
        )
    return Judgement(
        "validated",
        f"predicted error {error:.2f} (band {error / BAND:.2f}-{error * BAND:.2f}, 1 is no recovery), "
        f"permuted weights fit worse by {null_gap:.2f} nats",
    )
