"""Bounds against closed forms and simulation; an attack that beats one fails loudly."""

import math

import numpy as np
import pytest
from scipy import stats

from fedre_audit.audit import bounds
from knowledge_forms.errors import AuditError

D, M = 64, 16
PILOT = {1.0: 0.034600, 0.3: 0.024608, 0.1: 0.014274, 0.03: 0.009979, 0.01: 0.009281}


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((D, D)))[0]
    covariance = (basis * np.arange(1, D + 1) ** -1.5) @ basis.T
    return covariance, rng.standard_normal((M, D)) / math.sqrt(D)


@pytest.mark.parametrize("sigma", PILOT)
def test_linear_gaussian_all_forms_agree_and_simulation_reaches_them(planted, sigma):
    covariance, linear = planted
    precision = np.linalg.inv(covariance)
    least = bounds.lmmse(covariance, linear, sigma)
    assert least == pytest.approx(bounds.van_trees(linear.T @ linear / sigma**2, precision), rel=1e-6)
    assert bounds.prior_fits(covariance, precision)
    rng = np.random.default_rng(1)
    x = rng.multivariate_normal(np.zeros(D), covariance, 80000)
    e = x @ linear.T + sigma * rng.standard_normal((len(x), M))
    gain = covariance @ linear.T @ np.linalg.inv(linear @ covariance @ linear.T + sigma**2 * np.eye(M))
    assert np.square(e @ gain.T - x).mean() == pytest.approx(least, rel=0.01)
    # The pilot drew another rotation and another A from the same laws.
    assert least == pytest.approx(PILOT[sigma], rel=0.25)


@pytest.mark.parametrize("sigma", [1.0, 0.1, 0.01])
def test_looser_bounds_lie_below(planted, sigma):
    covariance, linear = planted
    precision, information = np.linalg.inv(covariance), linear.T @ linear / sigma**2
    least = bounds.lmmse(covariance, linear, sigma)
    assert 0 < bounds.scalar_bound(information, precision) < least
    entropy = 0.5 * np.linalg.slogdet(2 * math.pi * math.e * covariance)[1]
    nats = bounds.information_nats(covariance, linear, sigma)
    assert 0 < bounds.entropy_floor(entropy, nats, D) < least
    assert bounds.dfil(information) == pytest.approx(np.square(linear).sum() / sigma**2 / D)


def test_noise_free_bound_is_the_limit_of_no_noise(planted):
    covariance, linear = planted
    precision = np.linalg.inv(covariance)
    limit = bounds.noise_free(linear.T @ linear, precision)
    assert limit == pytest.approx(bounds.lmmse(covariance, linear, 1e-6), rel=1e-3)
    assert bounds.noise_free(np.eye(D), precision) == 0.0


def test_a_prior_narrower_than_the_covariance_is_no_prior(planted):
    covariance, _ = planted
    assert not bounds.prior_fits(covariance, 0.5 * np.linalg.inv(covariance))


@pytest.mark.parametrize(("candidates", "mu", "pilot"), [(2, 1.0, 0.841), (10, 1.0, 0.389), (100, 2.0, 0.372)])
def test_reconstruction_robustness(candidates, mu, pilot):
    bound = bounds.rero(1 / candidates, mu, 1.0)
    assert bound == pytest.approx(pilot, abs=0.001)
    # Simplex of radius mu: the best attack takes the largest projection.
    rng = np.random.default_rng(candidates)
    centre = np.eye(candidates) - 1 / candidates
    points = mu * centre / np.linalg.norm(centre[0])
    noisy = points[0] + rng.standard_normal((20000, candidates))
    success = (noisy @ points.T).argmax(1) == 0
    assert success.mean() <= bound + 3 * math.sqrt(bound * (1 - bound) / 20000)
    if candidates == 2:
        assert success.mean() == pytest.approx(bound, abs=0.01)


def test_rounds_compose_and_no_radius_leaves_the_prior():
    assert bounds.rero(0.5, 1.0, 2.0, rounds=4) == pytest.approx(bounds.rero(0.5, 1.0, 1.0))
    assert bounds.rero(0.1, 0.0, 1.0) == pytest.approx(0.1)
    assert bounds.rero(0.5, 2.0, 1.0) == pytest.approx(stats.norm.cdf(2.0))


def test_an_attack_that_beats_a_bound_fails_loudly():
    bound = bounds.LowerBound("raw", "van Trees", 0.01)
    bounds.enforce(bound, "ridge", 0.00995)
    with pytest.raises(AuditError, match="impossible"):
        bounds.enforce(bound, "ridge", 0.0098)
