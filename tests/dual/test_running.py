"""Bounded memory: the same statements as with everything kept, or ones that are a little weaker, never stronger."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.dual.confidence import betting_upper, empirical_bernstein_upper, hoeffding_upper
from evenhand.dual.pool import Pool
from evenhand.dual.running import BlockMeans, StreamedPool


def filled(kind, d_y, d_x, parts=3):
    for rows in np.array_split(np.arange(len(d_y)), parts):
        kind.add(d_y[rows], d_x[rows])
    return kind


@settings(deadline=None, max_examples=80)
@given(
    st.integers(1, 30), st.integers(1, 8), st.sampled_from([0.0, 0.001, 0.1, 1.0, 50.0]),
    st.sampled_from([1e-3, 1.0, 1e4]), st.integers(0, 10**6),
)  # fmt: skip
def test_hinges_bound_the_pool_from_below_and_closely(n, m, eps, guess, seed):
    rng = np.random.default_rng(seed)
    d_y, d_x = rng.exponential(size=(n, m)), rng.exponential(size=(n, m)) * rng.integers(0, 3, (n, m))
    exact, found = filled(Pool(), d_y, d_x).minimise(eps), filled(StreamedPool(guess, 0.5), d_y, d_x).minimise(eps)
    assert found.value <= exact.value + 1e-12
    assert found.value >= exact.value * (1 - 5e-3)  # few people: the function is all kinks
    assert found.lam >= 0


def test_hinges_of_many_people_are_as_good_as_the_pool():
    rng = np.random.default_rng(0)
    d_y, d_x = rng.exponential(size=(3000, 20)), rng.exponential(size=(3000, 20))
    for eps in (0.001, 0.05, 0.3):
        pool = filled(Pool(), d_y, d_x)
        exact = pool.minimise(eps)
        hinges = filled(StreamedPool(3 * exact.lam, 1.5), d_y, d_x)
        found = hinges.minimise(eps)
        assert exact.value * (1 - 1e-4) <= found.value <= exact.value + 1e-12
        assert hinges.share_above(found.lam) == pytest.approx((pool.choice(exact.lam)[0] > 1.5).mean(), abs=0.005)


def test_hinges_refuse_nonsense_and_nobody():
    with pytest.raises(ValueError, match="empty"):
        StreamedPool(1.0, 0.5).minimise(0.1)
    with pytest.raises(ValueError, match="NaN"):
        StreamedPool(1.0, 0.5).add([[float("nan")]], [[1.0]])
    nothing = StreamedPool(0.0, 0.5)
    nothing.add(np.zeros((3, 2)), np.ones((3, 2)))
    assert nothing.minimise(0.1).value == 0


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 300), st.integers(1, 40), st.sampled_from([2, 4, 10]), st.integers(0, 10**6))
def test_everybody_is_in_one_block_however_they_come(n, step, limit, seed):
    values = np.random.default_rng(seed).random(n)
    means, whole = BlockMeans(limit), BlockMeans(limit)
    for start in range(0, n, step):
        means.add(values[start : start + step])
    whole.add(values)
    assert len(means.values) <= limit
    if n <= limit:
        assert sorted(means.values) == sorted(values)
    else:
        assert (means.values * means._counts[means._counts > 0]).sum() == pytest.approx(values.sum())
    np.testing.assert_allclose(means.values, whole.values)  # the parts do not matter
    assert means.mean == pytest.approx(values.mean())
    assert means.n == n


@pytest.mark.parametrize("limit", [64, 2048])
@pytest.mark.parametrize("order", [np.sort, lambda v: np.sort(v)[::-1]])
def test_sorted_people_are_covered_as_often_as_shuffled_ones(order, limit):
    """The betting bound reads its values one by one: sorted, it was void."""
    rng, truth, covered, unshuffled = np.random.default_rng(0), 0.3 / 3.3, 0, 0
    for _ in range(300):
        values = order(rng.beta(0.3, 3.0, 1024))
        means = BlockMeans(limit)
        means.add(values)
        covered += betting_upper(means.values, 1.0, 0.1) >= truth
        unshuffled += betting_upper(values, 1.0, 0.1) >= truth
    assert covered >= 0.9 * 300
    assert unshuffled < 0.9 * 300 or order is not np.sort  # what the shuffling is for


@pytest.mark.parametrize("upper", [betting_upper, empirical_bernstein_upper, hoeffding_upper])
def test_confidence_bounds_hold_for_means_of_blocks(upper):
    """Coverage of the bound from 64 means of 16 people each."""
    rng, misses = np.random.default_rng(0), 0
    for _ in range(400):
        means = BlockMeans(64)
        means.add(rng.beta(0.3, 3.0, 1024))
        misses += upper(means.values, 1.0, 0.1) < 0.3 / 3.3
    assert len(means.values) == 64
    assert misses <= 400 * 0.1


def test_bounds_that_follow_the_variance_hardly_widen():
    values = np.random.default_rng(0).beta(0.3, 3.0, 2**17)
    means = BlockMeans(2**14)  # blocks of eight on average
    means.add(values)
    for upper in (betting_upper, empirical_bernstein_upper):
        whole, blocks = (upper(sample, 1.0, 0.05) - sample.mean() for sample in (values, means.values))
        assert blocks < 1.6 * whole
    whole, blocks = (hoeffding_upper(sample, 1.0, 0.05) - sample.mean() for sample in (values, means.values))
    assert blocks > 2.5 * whole  # what does not follow the variance


def test_above_is_above_and_at_this_lam():
    """Two people gain 1 at price 1 and 3 at price 4, one also .5 for nothing: from lam = 2/3 on nobody takes the
    dear one, from lam = 1 on only what is free is left."""
    d_y, d_x = np.array([[0.5, 1.0, 3.0], [0.0, 1.0, 3.0]]), np.array([[0.0, 1.0, 4.0], [0.0, 1.0, 4.0]])
    shares = {tau: StreamedPool(1.0, tau) for tau in (0.5, 0.75, 1.0, 2.0, 3.0)}
    for pool in shares.values():
        pool.add(d_y, d_x)
    for lam, expected in ((0.1, [1, 1, 1, 1, 0]), (0.8, [0.5, 0.5, 0, 0, 0]), (5.0, [0, 0, 0, 0, 0])):
        assert [pool.share_above(lam) for pool in shares.values()] == expected, lam


@pytest.mark.parametrize("guess", [0.0, -1.0, np.inf, np.nan])
def test_a_guess_that_says_nothing_does_no_harm(guess):
    rng = np.random.default_rng(0)
    d_y, d_x = rng.exponential(size=(200, 5)), rng.exponential(size=(200, 5))
    exact, found = (filled(kind, d_y, d_x).minimise(0.05) for kind in (Pool(), StreamedPool(guess, 0.5)))
    assert exact.value * (1 - 1e-3) <= found.value <= exact.value + 1e-12


def test_a_limit_of_nothing_is_refused():
    means = BlockMeans(1)
    means.add([1.0, 2.0, 6.0])
    assert means.values.tolist() == [3.0]
    with pytest.raises(ValueError, match="at least 1"):
        BlockMeans(0)
