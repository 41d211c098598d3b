"""What no attacker can beat, and what a linear one reaches. All mean squared errors are per pixel, on x's own scale.

An upload is e = f(x) + N(0, sigma^2 I_m), x in R^d, J = df/dx; information I = E[J^T J] / sigma^2;
S = E[grad log pi (grad log pi)^T] of the prior pi. S >= inverse covariance, with equality for Gaussian x alone: put
there, the inverse covariance gives `lmmse`, which a linear decoder *achieves*; it is then no lower bound.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from knowledge_forms.errors import AuditError

Matrix = NDArray[np.float64]
NULL_SPACE = 1e-4


def lmmse(covariance: Matrix, linear: Matrix, sigma: float) -> float:
    """Error of the best affine decoder of e = A x + noise. covariance: [d,d] of x, linear: A [m,d]. ACHIEVABLE.

    Tr(C - C A^T (A C A^T + sigma^2 I)^+ A C) / d; for Gaussian x it is the minimum over all decoders.
    """
    d = len(covariance)
    cross = linear @ covariance
    noisy = cross @ linear.T + sigma**2 * np.eye(len(linear))
    explained = np.sum(cross * (np.linalg.pinv(noisy, hermitian=True) @ cross))
    return float((np.trace(covariance) - explained) / d)


def prior_fits(covariance: Matrix, prior: Matrix) -> bool:
    """Whether S can be the prior's: every eigenvalue of C^1/2 S C^1/2 must be at least 1 (up to rounding)."""
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(values.clip(min=0))) @ vectors.T
    return bool(np.linalg.eigvalsh(root @ prior @ root).min() >= 1 - 1e-6)


def van_trees(information: Matrix, prior: Matrix) -> float:
    """Matrix van Trees LOWER bound Tr((I + S)^-1) / d. information, prior: [d,d] (Hwang et al., Corollary 1)."""
    return float(np.trace(np.linalg.inv(information + prior)) / len(prior))


def noise_free(gram: Matrix, prior: Matrix, threshold: float = NULL_SPACE) -> float:
    """LOWER bound without noise: Tr((U^T S U)^-1) / d with U the null space of G = E[J^T J] (Corollary 2).

    Directions of eigenvalue at most `threshold` times the largest count as null; 0 where there are none.
    """
    values, vectors = np.linalg.eigh(gram)
    null = vectors[:, values <= threshold * values[-1]]
    if null.shape[1] == 0:
        return 0.0
    return float(np.trace(np.linalg.inv(null.T @ prior @ null)) / len(prior))


def dfil(information: Matrix) -> float:
    """Diagonal Fisher information leakage Tr I / d; an unbiased decoder has an error of at least its inverse."""
    return float(np.trace(information) / len(information))


def scalar_bound(information: Matrix, prior: Matrix) -> float:
    """LOWER bound d / (Tr I + Tr S): valid, far looser than `van_trees` (Maeng et al. 2023, arXiv 2305.04146)."""
    return float(len(prior) / (np.trace(information) + np.trace(prior)))


def information_nats(covariance: Matrix, linear: Matrix, sigma: float) -> float:
    """I(x;e) = 1/2 logdet(I + A C A^T / sigma^2) of Gaussian x, in nats."""
    return float(np.linalg.slogdet(np.eye(len(linear)) + linear @ covariance @ linear.T / sigma**2)[1] / 2)


def entropy_floor(entropy: float, nats: float, d: int) -> float:
    """LOWER bound (2 pi e)^-1 exp(2 (h(x) - I) / d) from differential entropy and information in nats; loose."""
    return math.exp(2 * (entropy - nats) / d) / (2 * math.pi * math.e)


def rero(kappa: float, radius: float, sigma: float, rounds: int = 1) -> float:
    """Upper bound on the success of reconstruction under Gaussian noise: Phi(Phi^-1(kappa) + R sqrt(T) / sigma).

    kappa: success of the best guess without the upload, a true supremum over guesses. radius: of a ball that holds
    every noise-free upload. (Balle et al. 2022, arXiv 2201.04845; Hayes et al. 2023, arXiv 2302.07225)

    >>> round(rero(0.5, 1.0, 1.0), 3)
    0.841
    """
    return float(stats.norm.cdf(stats.norm.ppf(kappa) + radius * math.sqrt(rounds) / sigma))


@dataclass(frozen=True)
class LowerBound:
    """A proven lower bound on the mean squared error of every attack on a form."""

    form: str
    kind: str
    value: float


def enforce(bound: LowerBound, attack: str, error: float, tolerance: float = 0.01) -> None:
    """Raise AuditError where a measured error lies below a bound by more than `tolerance` of it.

    No attack can do that: the bound's assumptions, the noise or the split is wrong, and no number of the run holds.
    """
    if error < bound.value * (1 - tolerance):
        raise AuditError(
            f"attack '{attack}' on {bound.form} uploads has mean squared error {error:.6g}, below the {bound.kind} "
            f"bound {bound.value:.6g}, which is impossible; check the noise level, the prior and that the "
            "attacker's images are not the private ones"
        )
