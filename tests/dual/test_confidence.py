"""Confidence bounds against closed forms, scipy's exact interval and simulated coverage."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from evenhand.dual.confidence import (
    betting_upper,
    check_statement,
    clopper_pearson_lower,
    clopper_pearson_upper,
    empirical_bernstein_upper,
    hoeffding_upper,
    lower_bound,
)

UPPERS = [hoeffding_upper, empirical_bernstein_upper, betting_upper]


def test_hoeffding_is_its_formula():
    assert hoeffding_upper([0.0, 1.0, 2.0, 1.0], 4.0, 0.05) == pytest.approx(1 + 4 * math.sqrt(math.log(20) / 8))


@pytest.mark.parametrize("upper", UPPERS)
@pytest.mark.parametrize("draw", ["uniform", "rare", "constant"])
def test_coverage_and_order(upper, draw):
    rng = np.random.default_rng(0)
    samples = {
        "uniform": lambda: rng.uniform(0, 2, 100),
        "rare": lambda: 2.0 * (rng.random(100) < 0.01),
        "constant": lambda: np.full(100, 0.5),
    }[draw]
    mean = {"uniform": 1.0, "rare": 0.02, "constant": 0.5}[draw]
    draws = [samples() for _ in range(400)]
    assert np.mean([upper(values, 2.0, 0.1) >= mean for values in draws]) >= 0.9
    assert np.mean([lower_bound(upper, values, 2.0, 0.1) <= mean for values in draws]) >= 0.9
    assert all(lower_bound(upper, v, 2.0, 0.1) <= v.mean() <= upper(v, 2.0, 0.1) <= 2.0 for v in draws[:20])


@pytest.mark.parametrize("upper", UPPERS)
def test_tightens_with_n_and_scales_with_the_unit(upper):
    rng = np.random.default_rng(1)
    values = rng.beta(1, 9, 4000)
    assert upper(values, 1.0, 0.05) < upper(values[:400], 1.0, 0.05) + 0.02
    assert upper(values, 1.0, 0.05) - values.mean() < 0.03
    assert upper(3 * values, 3.0, 0.05) == pytest.approx(3 * upper(values, 1.0, 0.05), rel=1e-8)


def test_betting_is_the_tightest_on_small_variance():
    values = np.random.default_rng(2).uniform(0, 0.1, 1000)
    bounds = [upper(values, 1.0, 0.025) for upper in UPPERS]
    assert bounds[2] < bounds[1] < bounds[0]


@pytest.mark.parametrize(("count", "n"), [(0, 30), (7, 30), (30, 30), (1, 1000)])
def test_clopper_pearson_is_scipys_exact_interval(count, n):
    interval = binomtest(count, n).proportion_ci(confidence_level=0.9, method="exact")
    assert clopper_pearson_upper(count, n, 0.05) == pytest.approx(interval.high)
    assert clopper_pearson_lower(count, n, 0.05) == pytest.approx(interval.low)


@pytest.mark.parametrize("upper", UPPERS)
def test_values_outside_the_range_and_empty_samples_are_refused(upper):
    with pytest.raises(ValueError, match="range must be one that was known"):
        upper([0.5, 1.5], 1.0, 0.05)
    with pytest.raises(ValueError, match="known"):
        upper([0.5, float("nan")], 1.0, 0.05)
    with pytest.raises(ValueError, match="known"):
        upper([0.5, -0.5], 1.0, 0.05)
    with pytest.raises(ValueError, match="known"):
        upper([0.5, float("inf")], float("inf"), 0.05)
    with pytest.raises(ValueError, match="at least one value"):
        upper([], 1.0, 0.05)
    with pytest.raises(ValueError, match="alpha"):
        upper([0.5], 1.0, 0.0)


def test_the_betting_bound_never_looks_ahead():
    """Changing the last row changes no stake before it: the capital's first n - 1 factors stay."""
    values = np.random.default_rng(3).uniform(0, 1, 50)
    worse = values.copy()
    worse[-1] = 1.0
    better = values.copy()
    better[-1] = 0.0
    low, middle, high = (betting_upper(v, 1.0, 0.05) for v in (better, values, worse))
    assert low <= middle + 1e-9 <= high + 2e-9


@pytest.mark.parametrize(
    ("eps", "confidence", "says"),
    [
        (-1, 0.95, "eps must be a finite number, at least 0"),
        (float("nan"), 0.95, "eps must be a finite number"),
        (float("inf"), 0.95, "eps must be a finite number"),
        (0.1, 95, "give confidence=0.95"),
        (0.1, 1, "strictly between 0 and 1"),
        (0.1, 0, "strictly between 0 and 1"),
        (0.1, float("nan"), "strictly between 0 and 1"),
    ],
)
def test_statements_that_make_no_sense_are_refused(eps, confidence, says):
    with pytest.raises(ValueError, match=says):
        check_statement(eps, confidence)
    check_statement(0, 0.5)


def test_empirical_bernstein_is_its_formula():
    """Maurer and Pontil 2009, Theorem 4, on [0, 4]: two tails share alpha, hence log(2 / alpha)."""
    values = np.array([0.0, 1.0, 2.0, 1.0, 0.5] * 40)
    n, log_term = 200, math.log(2 / 0.05)
    expected = values.mean() + math.sqrt(2 * values.var(ddof=1) * log_term / n) + 7 * 4 * log_term / (3 * (n - 1))
    assert empirical_bernstein_upper(values, 4.0, 0.05) == pytest.approx(expected)


def capital(values, m, alpha):
    """The largest capital of a gambler against the mean m, written as the paper's recursion, row by row."""
    n, goal = len(values), math.log(1 / alpha)
    wealth, best, total, spread = 0.0, -math.inf, 0.5, 0.25
    for i, value in enumerate(values):
        variance = spread / (i + 1)  # of the rows before this one, and a quarter to begin with
        stake = min(math.sqrt(2 * goal / (n * variance)), 0.75 / (1 - m))
        wealth += math.log1p(-stake * (value - m))
        best = max(best, wealth)
        total += value
        spread += (value - total / (i + 2)) ** 2
    return best


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_betting_bound_is_where_the_gambler_stops_winning(seed):
    values, alpha = np.random.default_rng(seed).beta(1, 5, 150), 0.05
    bound = betting_upper(values, 1.0, alpha)
    assert capital(values, bound + 1e-6, alpha) >= math.log(1 / alpha)
    assert capital(values, bound - 1e-6, alpha) < math.log(1 / alpha)


@pytest.mark.parametrize(
    ("count", "n", "alpha"), [(0, 0, 0.05), (4, 3, 0.05), (-1, 3, 0.05), (1, 3, 0.0), (1, 3, 1.0), (1, -1, 0.05)]
)
def test_counts_that_make_no_sense_are_refused(count, n, alpha):
    for bound in (clopper_pearson_lower, clopper_pearson_upper):
        with pytest.raises(ValueError, match="expected 0 <= count <= n"):
            bound(count, n, alpha)


def test_from_below_by_reflection():
    values = np.array([3.0, 4.0, 2.0, 3.0] * 50)
    below = values.mean() - 4 * math.sqrt(math.log(20) / 400)
    assert lower_bound(hoeffding_upper, values, 4.0, 0.05) == pytest.approx(below)
    assert lower_bound(hoeffding_upper, np.zeros(3), 4.0, 0.05) == 0  # never negative
    assert 2.5 < lower_bound(betting_upper, values, 4.0, 0.05) < 3


def test_a_tiny_bound_is_found_too():
    assert 0 < betting_upper(np.zeros(100_000), 1.0, 0.99) < 1e-6
