"""Drift-aware unmixing with hyper-parameters chosen by likelihood from the uploads alone."""

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attacks.unmixing.kalman import Dynamics, Track, decaying_variance, rotate, run_filter, smooth
from attacks.unmixing.model import Stream, scale_of, smoothed_norms, within_bounds

COMMON_SCALE = 10.0  # deviation of what classes share in the first state, in units of the upload scale
CONTRAST_SCALE = 1.0  # and of what sets one apart: no more than uploads vary; ten times that ruins many classes
NOISE_FLOOR = 1e-3


@dataclass(frozen=True)
class Grid:
    """B hyper-parameters, each [B] float64: q in units of the upload scale, tau in rounds, common, floor, noise."""

    q: Tensor
    tau: Tensor
    common: Tensor
    floor: Tensor
    noise: Tensor

    def __len__(self) -> int:
        return len(self.q)

    def at(self, index: int) -> "Grid":
        """One point, kept as a batch of one."""
        return Grid(*(getattr(self, name)[index : index + 1] for name in ("q", "tau", "common", "floor", "noise")))

    def describe(self) -> dict[str, float]:
        """The hyper-parameters of a grid of one point."""
        return {name: float(getattr(self, name)[0]) for name in ("q", "tau", "common", "floor", "noise")}


def make_grid(
    q: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3),
    tau: tuple[float, ...] = (20.0, 60.0),
    common: tuple[float, ...] = (0.0, 1.0, 3.0, 10.0),
    floor: tuple[float, ...] = (1e-3, 0.1, 1.0),
    noise: tuple[float, ...] = (0.0,),
) -> Grid:
    """The product of the axes; a constant drift (floor 1) hardly depends on tau, so one tau serves. Default: 80."""
    points = [
        point
        for point in itertools.product(q, tau, common, floor, noise)
        if not (point[3] >= 1.0 and point[1] != tau[0])
    ]
    return Grid(*torch.tensor(points, dtype=torch.float64).T)


DEFAULT_GRID = make_grid()


@dataclass(frozen=True)
class Estimate:
    """What an unmixer found, in the upload's own units.

    filtered, smoothed: [T,h,d] float32, P_t given uploads to t, and given all. covariance: [T,h,h] of the smoothed
    state, one for all features. nll: [N], nats, of each weight hypothesis. options: the hyper-parameters chosen.
    models_drift: whether the covariance allows for prototypes that move.
    """

    filtered: Tensor
    smoothed: Tensor
    covariance: Tensor
    filtered_covariance: Tensor
    nll: Tensor
    options: dict[str, float]
    models_drift: bool = True


def refine(dynamics: Dynamics, smoothed: Track, lagged: Tensor, features: int) -> Dynamics:
    """One expectation-maximisation step on the drift: a variance for each round, one covariance shape for all rounds.

    The shape, [h,h], says which classes drift more and which together. Its scale starts from the process noise the
    smoothed track was made with. Source: Shumway & Stoffer 1982, doi 10.1111/j.1467-9892.1982.tb00349.x.
    """
    step = smoothed.mean.diff(dim=0)
    moved = step @ step.mT / features + smoothed.covariance[1:] + smoothed.covariance[:-1] - lagged - lagged.mT
    h = moved.shape[1]
    process = torch.einsum("ij,tji->t", torch.linalg.inv(dynamics.shape[0]), moved) / h
    shape = (moved / process[:, None, None]).mean(0)
    process = torch.cat([process.new_zeros(1), process])[:, None]
    return Dynamics(process, (shape + shape.T)[None] / 2, dynamics.noise, dynamics.prior)


@dataclass(frozen=True, kw_only=True)
class DriftFilter:
    """Matrix Kalman filter and smoother over a grid of drift models.

    adaptive: process noise follows the innovations. norm_smoothed: uploads are first divided by their smoothed norm.
    order: 1 for a random walk, 2 for a constant velocity. noise: known noise of an upload entry, same units.
    prior: [h,d], mean of the first state (class means of public data, or aligned classifier rows); None for 0.
    learn: steps of `refine` after the grid (order 1 only). bounded: keep states within what the uploads allow.
    """

    adaptive: bool = True
    norm_smoothed: bool = True
    order: int = 1
    grid: Grid = DEFAULT_GRID
    noise: float = 0.0
    prior: Tensor | None = None
    learn: int = 0
    bounded: bool = False

    def __call__(self, stream: Stream, weights: Tensor) -> Estimate:
        """Weights [N,T,h] (the true ones first, then nulls), each with its own best point of the grid."""
        rounds, h, d = stream.shape
        norms = smoothed_norms(stream.uploads) if self.norm_smoothed else torch.ones(rounds, dtype=torch.float64)
        uploads = stream.uploads / norms[:, None]
        scale = scale_of(uploads) or 1.0
        noise = self.noise / float(norms[-10:].mean())
        centred = uploads if self.prior is None else uploads - weights[0] @ (self.prior.double() / norms[-1])
        coordinates, basis = rotate(centred)
        hypotheses = torch.cat([weights, torch.zeros_like(weights)], 2) if self.order == 2 else weights

        drop = h if rounds > h else 0
        dynamics = self._dynamics(stream.rounds, h, self.grid, scale, noise)
        options: dict[str, Any] = {"features": d, "drop": drop, "adaptive": self.adaptive}
        nll, _ = run_filter(hypotheses, coordinates, dynamics, keep=False, **options)
        best = nll.min(1)
        point = self.grid.at(int(best.indices[0]))
        dynamics = self._dynamics(stream.rounds, h, point, scale, noise)
        _, track = run_filter(hypotheses[:1], coordinates, dynamics, keep=True, **options)
        assert track is not None
        smoothed, lagged = smooth(track, dynamics.transition)
        for _ in range(self.learn):
            dynamics = refine(dynamics, smoothed, lagged, d)
            _, track = run_filter(hypotheses[:1], coordinates, dynamics, keep=True, **options | {"adaptive": False})
            assert track is not None
            smoothed, lagged = smooth(track)

        def restore(mean: Tensor) -> Tensor:
            states = mean[:, :h].float() @ basis.float()
            if self.prior is not None:
                states += self.prior.float() / float(norms[-1])
            states *= norms.float()[:, None, None]
            return within_bounds(states, weights[0], stream.uploads) if self.bounded else states

        squared = norms.square()[:, None, None]
        return Estimate(
            filtered=restore(track.mean),
            smoothed=restore(smoothed.mean),
            covariance=smoothed.covariance[:, :h, :h] * squared,
            filtered_covariance=track.covariance[:, :h, :h] * squared,
            nll=best.values + d * norms.log()[drop:].sum(),
            options=point.describe(),
        )

    def _dynamics(self, rounds: Tensor, h: int, grid: Grid, scale: float, noise: float) -> Dynamics:
        eye, ones = torch.eye(h, dtype=torch.float64), torch.ones(h, h, dtype=torch.float64)
        first = scale**2 * (COMMON_SCALE**2 * ones + CONTRAST_SCALE**2 * eye)
        process = decaying_variance(rounds, grid.q * scale, grid.tau, grid.floor)
        sigma = (grid.noise * scale).clamp(min=max(noise, NOISE_FLOOR * scale))
        if self.order == 1:
            shape = eye + grid.common.square()[:, None, None] * ones
            return Dynamics(process, shape, sigma.square(), first)
        zero = torch.zeros_like(eye)
        still = torch.block_diag(1e-10 * eye, eye).expand(len(grid), -1, -1)
        prior = torch.block_diag(first, scale**2 * eye)
        move = torch.cat([torch.cat([eye, eye], 1), torch.cat([zero, eye], 1)])
        return Dynamics(process, still, sigma.square(), prior, move)
