"""Matrix Kalman filter and smoother for drifting prototypes: a whole grid of hyper-parameters as one tensor axis.

All features share one gain, so the state mean is [m,d] with a single covariance [m,m]. The uploads enter through
their inner products alone, so d features are rotated to at most T coordinates, exactly; rotated uploads are lower
triangular, and round t touches t+1 coordinates. Adaptive noise and the equations: Kalman 1960,
doi 10.1115/1.3662552; Rauch, Tung & Striebel 1965, doi 10.2514/3.3166.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

INFLATION = (0.1, 1e4)


@dataclass(frozen=True)
class Dynamics:
    """A grid of G state-space models, float64.

    process: [T,G], process variance gained before upload t (0 at t=0). shape: [G,m,m], Q_t = process_t * shape.
    noise: [G], variance of one upload entry. prior: [m,m], covariance of the first state (mean 0).
    transition: [m,m], or None for the identity.
    """

    process: Tensor
    shape: Tensor
    noise: Tensor
    prior: Tensor
    transition: Tensor | None = None


@dataclass(frozen=True)
class Track:
    """States of one model over T uploads.

    mean: [T,m,k]. covariance: [T,m,m], and as predicted before each upload: [T,m,m]. process: [T], as used.
    """

    mean: Tensor
    covariance: Tensor
    predicted: Tensor
    process: Tensor


def rotate(uploads: Tensor) -> tuple[Tensor, Tensor]:
    """Uploads [T,d] -> (coordinates [T,k] lower triangular, basis [k,d] orthonormal), k = min(T,d), their product."""
    basis, coordinates = torch.linalg.qr(uploads.T)
    return coordinates.T.contiguous(), basis.T


def run_filter(
    weights: Tensor, coordinates: Tensor, dynamics: Dynamics, *, features: int, drop: int, adaptive: bool, keep: bool
) -> tuple[Tensor, Track | None]:
    """Filter coordinates [T,k] of uploads of width `features` -> (negative log-likelihood [N,G], track).

    weights: [N,T,m], N hypotheses, each under all G models. The likelihood (nats, without constant) leaves out the
    first `drop` innovations. Adaptive: the process noise of each round is scaled by what its innovation asks for,
    within INFLATION. To `keep` the track, N and G must be 1.
    """
    (n, rounds, m), g = weights.shape, len(dynamics.noise)
    # Single precision of the means leaves the likelihood as it is to three decimals and halves the traffic.
    observed = coordinates if keep else coordinates.float()
    state = observed.new_zeros(n, coordinates.shape[1], g, m)
    covariance = dynamics.prior.repeat(n, g, 1, 1)
    moves = torch.einsum("gij,ntj->tngi", dynamics.shape, weights)
    nll = coordinates.new_zeros(n, g)
    kept: tuple[list[Tensor], ...] = ([], [], [], [])
    for t in range(rounds):
        w = weights[:, t, :, None]
        if dynamics.transition is not None and t > 0:
            state = state @ dynamics.transition.T.to(state)
            covariance = dynamics.transition @ covariance @ dynamics.transition.T
        known = state[:, : t + 1]  # rotated uploads are lower triangular: the rest is still 0
        error = observed[t, : t + 1, None] - (known.flatten(1, 2) @ w.to(known)).reshape(n, -1, g)
        energy = error.square().sum(1).double()
        gain = (covariance.flatten(1, 2) @ w).reshape(n, g, m)
        variance = (gain * w.mT).sum(2) + dynamics.noise
        process = dynamics.process[t].expand(n, g)
        if t > 0:
            spread = (moves[t] * w.mT).sum(2) * process
            if adaptive:
                inflation = ((energy / features - variance) / spread.clamp(min=1e-300)).clamp(*INFLATION)
                process, spread = process * inflation, spread * inflation
            gain = gain + process[:, :, None] * moves[t]
            variance = variance + spread
            covariance.addcmul_(process[:, :, None, None], dynamics.shape)
        if t >= drop:
            nll += 0.5 * (features * variance.log() + energy / variance)
        if keep:
            kept[2].append(covariance[0, 0].clone())
        known.addcmul_(error[:, :, :, None], (gain / variance[:, :, None])[:, None].to(known))
        root = gain / variance.sqrt()[:, :, None]  # an outer square keeps the covariance exactly symmetric
        covariance.addcmul_(root[:, :, :, None], root[:, :, None, :], value=-1)
        if keep:
            kept[0].append(state[0, :, 0].T.clone())
            kept[1].append(covariance[0, 0].clone())
            kept[3].append(process[0, 0])
    return nll, Track(*(torch.stack(items) for items in kept)) if keep else None


def smooth(track: Track, transition: Tensor | None = None) -> tuple[Track, Tensor]:
    """Rauch-Tung-Striebel: every state given all uploads, and the covariances [T-1,m,m] of t+1 with t."""
    mean, covariance = track.mean.clone(), track.covariance.clone()
    step = torch.eye(mean.shape[1], dtype=mean.dtype) if transition is None else transition
    lagged = torch.empty_like(covariance[1:])
    for t in range(len(mean) - 2, -1, -1):
        # G = V F^T predicted^-1
        gain = torch.linalg.solve(track.predicted[t + 1], step @ track.covariance[t]).T
        lagged[t] = covariance[t + 1] @ gain.T
        mean[t] += gain @ (mean[t + 1] - step @ track.mean[t])
        covariance[t] += gain @ (covariance[t + 1] - track.predicted[t + 1]) @ gain.T
    return Track(mean, covariance, track.predicted, track.process), lagged


def decaying_variance(rounds: Tensor, q: Tensor, tau: Tensor, floor: Tensor) -> Tensor:
    """Process variance [T,B] gained before each upload: q^2 (e^{-t/tau} + floor)^2 summed over the gap.

    rounds: int64 [T]; t counts from the first upload. q, tau, floor: [B]; tau may be infinite (constant).
    """
    first, last = int(rounds[0]), int(rounds[-1])
    every = torch.arange(last - first + 1, dtype=torch.float64)[:, None]
    variance = (q * (torch.exp(-every / tau) + floor)).square()
    variance[0] = 0.0
    total = variance.cumsum(0)[rounds - first]
    return torch.cat([total[:1], total.diff(dim=0)])


def predicted_error(mean: Tensor, covariance: Tensor) -> Tensor:
    """Expected relative error of states mean [T,h,d] with covariance [T,h,h] -> [T], centred over classes.

    sqrt(d tr(L V L) / |L X|^2), L = I - 11^T/h: 1 means no better than one vector for all classes. Infinite where
    the states do not differ between classes; 0 classes apart (h=1) gives nan.
    """
    h, d = mean.shape[1:]
    contrast = torch.eye(h, dtype=covariance.dtype) - 1.0 / h
    variance = d * torch.einsum("ij,tjk,ik->t", contrast, covariance, contrast).clamp(min=0.0)
    size = (mean - mean.mean(1, keepdim=True)).double().square().sum((1, 2))
    return (variance / size).sqrt() if h > 1 else variance * math.nan
