"""The filter against closed forms: least squares, the batch problem it solves, invariances."""

import numpy as np
import pytest
import torch

from attacks.unmixing.kalman import Dynamics, decaying_variance, predicted_error, rotate, run_filter, smooth
from attacks.unmixing.likelihood import DriftFilter, make_grid
from attacks.unmixing.model import Stream
from tests.attacks.unmixing.streams import planted, relative


def constant(rounds, m, *, q, noise, prior, common=0.0):
    process = torch.full((rounds, 1), q**2, dtype=torch.float64)
    process[0] = 0
    shape = torch.eye(m, dtype=torch.float64) + common**2 * torch.ones(m, m, dtype=torch.float64)
    return Dynamics(
        process, shape[None], torch.tensor([noise**2], dtype=torch.float64), prior**2 * torch.eye(m).double()
    )


def track_of(weights, uploads, dynamics, **options):
    coordinates, basis = rotate(uploads)
    defaults = {"features": uploads.shape[1], "drop": 0, "adaptive": False, "keep": True}
    nll, track = run_filter(weights[None], coordinates, dynamics, **(defaults | options))
    return nll, track, basis


def test_without_drift_the_filter_is_least_squares():
    weights, uploads, _ = planted(static=True, sigma=0.1)
    _, track, basis = track_of(weights, uploads, constant(100, 10, q=0.0, noise=0.1, prior=1e4))
    expected = np.linalg.lstsq(weights.numpy(), uploads.numpy(), rcond=None)[0]
    found = (track.mean[-1] @ basis).numpy()
    assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < 1e-6


def test_smoother_solves_the_batch_problem():
    rounds, h, q, noise, prior, common = 15, 3, 0.3, 0.2, 5.0, 1.5
    weights, uploads, _ = planted(h, rounds, 6, sigma=noise, walk=q)
    dynamics = constant(rounds, h, q=q, noise=noise, prior=prior, common=common)
    _, track, basis = track_of(weights, uploads, dynamics)
    smoothed, lagged = smooth(track)
    means = smoothed.mean @ basis
    # minimise sum |r_t - P_t^T w_t|^2/noise^2 + |P_t - P_{t-1}|^2_{Q^-1} + |P_0|^2/prior^2 over all P at once
    inverse = torch.linalg.inv(q**2 * dynamics.shape[0])
    system = torch.zeros(rounds * h, rounds * h).double()
    right = torch.zeros(rounds * h, 6).double()
    for t in range(rounds):
        at = slice(t * h, (t + 1) * h)
        system[at, at] += torch.outer(weights[t], weights[t]) / noise**2
        right[at] += torch.outer(weights[t], uploads[t]) / noise**2
        if t == 0:
            system[at, at] += torch.eye(h).double() / prior**2
        else:
            before = slice((t - 1) * h, t * h)
            system[at, at] += inverse
            system[before, before] += inverse
            system[at, before] -= inverse
            system[before, at] -= inverse
    expected = torch.linalg.solve(system, right).reshape(rounds, h, 6)
    torch.testing.assert_close(means, expected, rtol=1e-7, atol=1e-8)
    covariance = torch.linalg.inv(system)
    here, after = slice(4 * h, 5 * h), slice(5 * h, 6 * h)
    torch.testing.assert_close(smoothed.covariance[4], covariance[here, here])
    torch.testing.assert_close(lagged[4], covariance[after, here])


def test_likelihood_is_that_of_the_joint_gaussian():
    rounds, h, d = 8, 2, 5
    weights, uploads, _ = planted(h, rounds, d, sigma=0.1, walk=0.2)
    dynamics = constant(rounds, h, q=0.2, noise=0.1, prior=2.0)
    nll, _, _ = track_of(weights, uploads, dynamics)
    steps = torch.minimum(torch.arange(rounds)[:, None], torch.arange(rounds)[None]).double()
    joint = (4.0 + 0.04 * steps) * (weights @ weights.T) + 0.01 * torch.eye(rounds).double()
    law = torch.distributions.MultivariateNormal(torch.zeros(rounds).double(), joint)
    constant_term = 0.5 * rounds * d * np.log(2 * np.pi)
    assert float(nll) == pytest.approx(-float(law.log_prob(uploads.T).sum()) - constant_term, rel=1e-9)


def test_single_precision_grid_agrees_with_the_kept_run():
    weights, uploads, _ = planted(5, 40, 96, walk=0.1)
    dynamics = constant(40, 5, q=0.1, noise=0.01, prior=10.0)
    kept, _, _ = track_of(weights, uploads, dynamics, adaptive=True)
    coordinates, _ = rotate(uploads)
    fast, _ = run_filter(weights[None], coordinates, dynamics, features=96, drop=0, adaptive=True, keep=False)
    assert float(fast) == pytest.approx(float(kept), rel=1e-3)


def test_hypotheses_and_grid_points_do_not_touch_each_other():
    weights, uploads, _ = planted(4, 30, 16, walk=0.1)
    stream = Stream(weights, uploads, torch.arange(4), torch.arange(30))
    other = planted(4, 30, 16, seed=1)[0]
    grid = make_grid(q=(0.1, 0.3), tau=(20.0,), common=(0.0, 3.0), floor=(0.1,))
    both = DriftFilter(grid=grid)(stream, torch.stack([weights, other]))
    for i, alone in enumerate((weights, other)):
        assert float(both.nll[i]) == pytest.approx(float(DriftFilter(grid=grid)(stream, alone[None]).nll[0]), rel=1e-6)


def test_default_grid_has_80_points():
    assert len(make_grid()) == 80


def test_scale_of_the_uploads_does_not_matter():
    weights, uploads, truth = planted(5, 40, 32, walk=0.05)

    def run(factor):
        stream = Stream(weights, factor * uploads, torch.arange(5), torch.arange(40))
        return DriftFilter()(stream, weights[None]).smoothed[-1] / factor

    torch.testing.assert_close(run(1e3), run(1.0), rtol=1e-4, atol=1e-5)
    assert relative(run(1.0), truth[-1]) < 0.3


def test_a_gap_gathers_the_process_noise_of_its_rounds():
    q, tau, floor = (torch.tensor([x]).double() for x in (0.5, 20.0, 0.1))
    every = decaying_variance(torch.arange(6), q, tau, floor)
    gap = decaying_variance(torch.tensor([0, 1, 4, 5]), q, tau, floor)
    assert float(every[0]) == 0
    torch.testing.assert_close(gap[:, 0], torch.stack([every[0, 0], every[1, 0], every[2:5, 0].sum(), every[5, 0]]))
    assert float(every[1]) == pytest.approx((0.5 * (np.exp(-1 / 20) + 0.1)) ** 2)


def test_predicted_error_is_the_expected_one():
    h, d = 4, 2000
    g = torch.Generator().manual_seed(0)
    mean = torch.randn(h, d, generator=g, dtype=torch.float64)
    root = 0.1 * torch.randn(h, h, generator=g, dtype=torch.float64)
    error = root @ torch.randn(h, d, generator=g, dtype=torch.float64)
    centred = (error - error.mean(0)).norm() / (mean - mean.mean(0)).norm()
    assert float(predicted_error(mean[None], (root @ root.T)[None])) == pytest.approx(float(centred), rel=0.05)
