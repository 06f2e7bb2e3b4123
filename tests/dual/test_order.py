"""The order of people is either undone or noticed."""

import numpy as np
import pandas as pd
import pytest

from evenhand.dual.order import Trend, in_own_order, own_order, seed_of, shuffled


def trend_of(values, step=97):
    trend = Trend()
    for start in range(0, len(values), step):
        trend.add(values[start : start + step])
    return trend


def test_the_permutation_comes_from_the_people_not_from_their_order():
    order = shuffled(1000, 3)
    assert sorted(order) == list(range(1000))
    assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.1
    x = np.random.default_rng(0).normal(size=(50, 2))
    assert seed_of(x) == seed_of(x[::-1]) == seed_of(pd.DataFrame(x)) != seed_of(x + 1e-3)
    assert seed_of(np.repeat(x[:1], 2, 0)) != seed_of(np.repeat(x[1:2], 2, 0))  # equal rows do not cancel
    assert seed_of(["a", "b"]) != seed_of(["a", "c"])
    np.testing.assert_array_equal(in_own_order(x[:, 0]), in_own_order(np.sort(x[:, 0])))
    assert sorted(in_own_order(x[:, 0])) == sorted(x[:, 0])
    assert abs(np.corrcoef(in_own_order(np.arange(400)), np.arange(400))[0, 1]) < 0.2


def test_no_permutation_is_the_same_for_every_sorted_sample():
    """One that puts large ranks first would do so for every sorted sample of that size."""
    first = [in_own_order(np.random.default_rng(seed).random(100))[:50].mean() for seed in range(40)]
    assert np.std(first) == pytest.approx(np.sqrt(1 / 12 / 50), rel=0.4)
    assert np.mean(first) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e9])
def test_sorted_streams_are_noticed_and_random_ones_are_not(scale):
    rng = np.random.default_rng(0)
    x = scale * rng.exponential(size=(2000, 3)) + 5 * scale
    assert trend_of(x).column() is None
    assert trend_of(x[np.argsort(x[:, 1])]).column() == 1
    assert trend_of(x[np.argsort(-x[:, 2])]).column() == 2
    grouped = np.column_stack([x[:, 0], rng.random(2000) < 0.3])
    assert trend_of(grouped[np.argsort(grouped[:, 1], kind="stable")]).column() == 1
    assert trend_of(np.ones((2000, 2))).column() is None  # constant columns have no order


def test_the_trend_is_the_correlation_with_the_row_number():
    rng = np.random.default_rng(1)
    n = 500
    v = rng.normal(size=n) + 0.02 * np.arange(n)
    r = np.corrcoef(v, np.arange(n))[0, 1]
    assert abs(r) * n**0.5 > 7
    assert trend_of(v[:, None]).column() == 0
    weak = rng.normal(size=n) + 0.0005 * np.arange(n)
    assert abs(np.corrcoef(weak, np.arange(n))[0, 1]) * n**0.5 < 7
    assert trend_of(weak[:, None]).column() is None


def test_rows_give_themselves_their_order():
    x = np.random.default_rng(2).normal(size=(300, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": np.where(x[:, 1] > 0, "yes", "no")})
    order, other = own_order(frame), np.argsort(x[:, 0])
    assert sorted(order) == list(range(300))
    np.testing.assert_array_equal(frame.iloc[order], frame.iloc[other].iloc[own_order(frame.iloc[other])])
    assert abs(np.corrcoef(frame["a"].iloc[order], np.arange(300))[0, 1]) < 0.2
    assert not np.array_equal(own_order(frame, seed=1), order)
