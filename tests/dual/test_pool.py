"""The exact minimum over lam against the primal linear programme, solved by HiGHS."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from evenhand.dual.pool import Pool


def primal(d_y, d_x, eps):
    """max over couplings: weights w_ij >= 0, sum_j w_ij = 1/n, sum w d_X <= eps; staying put is a candidate."""
    n, m = d_y.shape
    d_y = np.concatenate([d_y, np.zeros((n, 1))], 1)
    d_x = np.concatenate([d_x, np.zeros((n, 1))], 1)
    rows = np.kron(np.eye(n), np.ones((1, m + 1)))
    solved = linprog(
        -d_y.ravel(), A_ub=d_x.reshape(1, -1), b_ub=[eps], A_eq=rows, b_eq=np.full(n, 1 / n), method="highs"
    )
    return -solved.fun


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 8), st.integers(1, 12), st.sampled_from([0.0, 0.001, 0.1, 1.0, 50.0]), st.integers(0, 10**6))
def test_strong_duality(n, m, eps, seed):
    rng = np.random.default_rng(seed)
    d_y, d_x = rng.exponential(size=(n, m)), rng.exponential(size=(n, m)) * rng.integers(0, 3, (n, m))
    pool = Pool()
    pool.add(d_y, d_x)
    found = pool.minimise(eps)
    assert found.value == pytest.approx(primal(d_y, d_x, eps), abs=1e-8)
    assert found.lam * eps + pool.gains(found.lam).mean() == pytest.approx(found.value, abs=1e-8) or eps == 0


def test_chunks_give_the_same_as_the_whole_and_memory_stays_small():
    rng = np.random.default_rng(0)
    d_y, d_x = rng.exponential(size=(300, 200)), rng.exponential(size=(300, 200))
    whole, parts = Pool(), Pool()
    whole.add(d_y, d_x)
    for rows in np.array_split(np.arange(300), 7):
        parts.add(d_y[rows], d_x[rows])
    assert whole.minimise(0.05).value == pytest.approx(parts.minimise(0.05).value, abs=1e-12)
    assert sum(len(part) for part in parts._d_y) < 300 * 20
    for lam in (0.0, 0.3, 1.0, 10.0):
        np.testing.assert_allclose(parts.gains(lam), np.maximum((d_y - lam * d_x).max(1), 0), atol=1e-12)


def test_nothing_to_move_is_worth_nothing_and_nonsense_is_refused():
    pool = Pool()
    pool.add(np.zeros((3, 2)), np.ones((3, 2)))
    assert pool.minimise(0.1).value == 0
    with pytest.raises(ValueError, match="NaN"):
        pool.add([[float("nan")]], [[1.0]])
    for d_y, d_x in (([[1.0, 2.0]], [[1.0]]), ([[1.0]], [1.0]), ([1.0], [1.0])):
        with pytest.raises(ValueError, match=r"must both be \(individuals, candidates\)"):
            pool.add(d_y, d_x)
    with pytest.raises(ValueError, match="negative"):
        pool.add([[1.0]], [[-1.0]])
    with pytest.raises(ValueError, match="empty"):
        Pool().minimise(0.1)


@pytest.mark.parametrize("outputs", [1e-20, 1.0, 1e18])
@pytest.mark.parametrize("inputs", [1e-14, 1.0, 1e14])
@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_units_do_not_matter(inputs, outputs, eps):
    rng = np.random.default_rng(0)
    d_y, d_x = rng.exponential(size=(50, 6)), rng.exponential(size=(50, 6)) * rng.integers(0, 2, (50, 6))
    plain, scaled = Pool(), Pool()
    plain.add(d_y, d_x)
    scaled.add(outputs * d_y, inputs * d_x)
    assert scaled.minimise(inputs * eps).value == pytest.approx(outputs * plain.minimise(eps).value, rel=1e-9)
    free = np.where(d_x == 0, d_y, 0).max(1).mean()
    assert plain.minimise(0.0).value == pytest.approx(free, rel=1e-12)
