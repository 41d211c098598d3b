"""Unmixing by least squares: all rounds, a window, a polynomial in time, or with a prior.

OLS error variance per entry is sigma^2 [(W^T W)^-1]_cc, about 3 h^2 sigma^2 / (T-h-1) for normalised uniform
weights. Windowed averages: Lam et al., ICML 2021 (gradient disaggregation).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attacks.unmixing.likelihood import Estimate
from attacks.unmixing.model import Stream, scale_of


def solve(design: Tensor, uploads: Tensor, *, penalty: float = 0.0) -> tuple[Tensor, Tensor]:
    """Design [T,m], uploads [T,d] -> (coefficients [m,d], inverse Gram [m,m]); minimum norm where T < m.

    penalty: sigma^2 / tau^2 of a Gaussian prior with mean 0.
    """
    if penalty > 0:
        m = design.shape[1]
        design = torch.cat([design, math.sqrt(penalty) * torch.eye(m, dtype=design.dtype)])
        uploads = torch.cat([uploads, uploads.new_zeros(m, uploads.shape[1])])
    inverse = torch.linalg.pinv(design)
    return inverse @ uploads, inverse @ inverse.T


@dataclass(frozen=True, kw_only=True)
class LeastSquares:
    """One set of prototypes for all rounds, or a polynomial in time read at the last round.

    windowed: only the last max(2h, h+8) rounds. degree: of the polynomial, 0 for constant prototypes.
    ridge: (upload noise / prior deviation)^2 of a Gaussian prior with mean `prior` [h,d] (None: 0), 0 for none.
    """

    windowed: bool = False
    degree: int = 0
    ridge: float = 0.0
    prior: Tensor | None = None

    def __call__(self, stream: Stream, weights: Tensor) -> Estimate:
        """Weights [N,T,h] (the true ones first); the states are the same in every round (degree 0) or follow it."""
        rounds, h, d = stream.shape
        last = min(rounds, max(2 * h, h + 8)) if self.windowed else rounds
        shift = torch.zeros(h, d, dtype=torch.float64) if self.prior is None else self.prior.double()
        time = torch.linspace(-1.0, 0.0, rounds, dtype=torch.float64) if rounds > 1 else torch.zeros(1).double()
        basis = torch.stack([time**power for power in range(self.degree + 1)], 1)
        nll = []
        for w in weights:
            design = torch.einsum("tp,th->tph", basis, w).flatten(1)[-last:]
            target = (stream.uploads - w @ shift)[-last:]
            found, inverse = solve(design, target, penalty=self.ridge)
            free = max(1, last - design.shape[1])
            residual = (target - design @ found).square().sum() / (free * d)
            floor = (1e-9 * (scale_of(stream.uploads) or 1.0)) ** 2
            nll.append(0.5 * free * d * (residual.clamp(min=floor).log() + 1.0))
            if len(nll) == 1:
                read = torch.einsum("tp,hj->thpj", basis, torch.eye(h, dtype=torch.float64)).reshape(rounds, h, -1)
                states = (read @ found + shift).float()
                covariance = residual * (read @ inverse @ read.mT)
        return Estimate(states, states, covariance, covariance, torch.stack(nll), {"rounds_used": float(last)}, False)
