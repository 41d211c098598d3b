"""Intervals: the right unit, and the coverage they promise."""

import numpy as np
import pytest
from scipy import stats

from fedre_audit.audit.intervals import estimate, t_interval


def test_t_interval_equals_scipy():
    values = np.array([1.0, 4.0, 2.5, 3.0, 0.5])
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert t_interval(values) == pytest.approx((expected.low, expected.high))


def test_averages_upload_first_then_client():
    values = np.array([0.0, 0.0, 0.0, 4.0, 10.0])
    rows = np.array([0, 0, 0, 1, 2])
    clients = np.array([0, 0, 0, 0, 1])
    assert estimate(values, rows, clients).value == pytest.approx((2.0 + 10.0) / 2)


def test_few_clients_give_an_image_interval_and_say_so():
    rng = np.random.default_rng(0)
    values, rows = rng.normal(size=40), np.arange(40)
    few = estimate(values, rows, rows % 3)
    many = estimate(values, rows, rows % 8)
    assert (few.unit, few.clusters) == ("image", 3)
    assert (many.unit, many.clusters) == ("client", 8)


@pytest.mark.parametrize("clients", [4, 6, 10])
def test_coverage_over_clients(clients):
    rng = np.random.default_rng(clients)
    covered = 0
    for _ in range(2000):
        per_client = rng.normal(1.0, 1.0, clients)
        values = np.repeat(per_client, 5) + rng.normal(0, 1.0, clients * 5)
        ids = np.repeat(np.arange(clients), 5)
        interval = estimate(values, np.arange(clients * 5), ids).ci95
        assert interval is not None
        covered += interval[0] <= 1.0 <= interval[1]
    assert 0.93 <= covered / 2000 <= 0.97
