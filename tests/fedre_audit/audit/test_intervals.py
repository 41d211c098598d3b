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
    values = np.array([0.0, 0.0, 0.0, 4.0, 9.0, 10.0, 11.0])
    rows = np.array([0, 0, 0, 1, 2, 3, 4])
    clients = np.array([0, 0, 0, 0, 1, 1, 1])
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


def test_two_unequal_clients_equal_welchs_test():
    rng = np.random.default_rng(1)
    first, second = rng.normal(18.0, 3.0, 8), rng.normal(16.0, 1.0, 200)
    found = estimate(np.r_[first, second], np.arange(208), np.repeat([0, 1], [8, 200]))
    # The mean of two means is half the difference between the one and the negative other.
    expected = stats.ttest_ind(first, -second, equal_var=False)
    assert found.ci95 == pytest.approx(tuple(end / 2 for end in expected.confidence_interval(0.95)))
    assert found.value == pytest.approx((first.mean() + second.mean()) / 2)
    assert found.ci95[0] < found.value < found.ci95[1]
    assert found.unit == "image"
    by_chance = estimate(np.r_[first - 18.0, second - 16.0], np.arange(208), np.repeat([0, 1], [8, 200]))
    one_sided = stats.ttest_ind(first - 18.0, 16.0 - second, equal_var=False, alternative="greater")
    assert by_chance.p == pytest.approx(one_sided.pvalue)


def test_one_client_equals_the_t_interval_of_its_rows():
    values = np.random.default_rng(2).normal(1.0, 1.0, 30)
    rows = np.arange(30) // 2
    found = estimate(values, rows, np.zeros(30, dtype=np.int64))
    assert found.ci95 == pytest.approx(t_interval(values.reshape(15, 2).mean(1)))


def test_three_unequal_clients_have_the_width_of_a_bootstrap_within_clients():
    rng = np.random.default_rng(3)
    parts = [rng.normal(mean, sd, n) for mean, sd, n in ((20.0, 2.0, 60), (15.0, 4.0, 90), (10.0, 1.0, 300))]
    clients = np.repeat([0, 1, 2], [60, 90, 300])
    found = estimate(np.concatenate(parts), np.arange(450), clients)
    draws = np.mean([rng.choice(part, (4000, len(part))).mean(1) for part in parts], axis=0)
    low, high = np.quantile(draws, [0.025, 0.975])
    assert found.ci95[1] - found.ci95[0] == pytest.approx(high - low, rel=0.08)
    assert sum(found.ci95) / 2 == pytest.approx((low + high) / 2, abs=0.1)


def test_a_client_of_one_row_makes_it_the_mean_over_rows():
    values = np.array([9.0, 1.0, 2.0, 3.0, 2.0])
    found = estimate(values, np.arange(5), np.array([0, 1, 1, 1, 1]))
    assert found.value == pytest.approx(values.mean())
    assert found.ci95 == pytest.approx(t_interval(values))
    assert found.p == pytest.approx(stats.ttest_1samp(values, 0.0, alternative="greater").pvalue)


def test_values_without_spread_are_taken_at_their_word():
    clients = np.repeat([0, 1], [2, 6])
    found = estimate(np.repeat([3.0, -1.0], [2, 6]), np.arange(8), clients)
    assert (found.value, found.ci95, found.p) == (1.0, (1.0, 1.0), 0.0)
    assert estimate(np.zeros(8), np.arange(8), clients).p == 1.0


@pytest.mark.parametrize("sizes", [(8, 200), (5, 30, 100), (40,)])
def test_coverage_over_images_of_few_unequal_clients(sizes):
    rng = np.random.default_rng(len(sizes))
    clients = np.repeat(np.arange(len(sizes)), sizes)
    means, spreads = np.array([6.0, -0.2, 2.0])[clients], np.array([2.0, 1.0, 4.0])[clients]
    truth = np.array([6.0, -0.2, 2.0])[: len(sizes)].mean()
    covered = 0
    for _ in range(2000):
        found = estimate(means + spreads * rng.standard_normal(len(clients)), np.arange(len(clients)), clients).ci95
        assert found is not None
        covered += found[0] <= truth <= found[1]
    assert 0.93 <= covered / 2000 <= 0.97
