"""Bounds of ramps over a box, by columns and by the length of the slope: against people drawn from the box."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.ensembles.separable import by_columns, by_slopes, spread_along

pytest.importorskip("numba", reason="the search is compiled by numba")
# Two numbers, a binary column that holds 2 or 5, and a one-hot block of three.
DISCRETE, BLOCK = np.array([False, False, True, True, True, True]), np.array([-1, -1, -1, 0, 0, 0], np.int32)


def people(rng, lo, hi, n):
    """Possible people of the box."""
    drawn = rng.uniform(lo, hi, (n, 6))
    drawn[: n // 2, :2] = np.where(rng.random((n // 2, 2)) < 0.5, lo[:2], hi[:2])
    drawn[:, 2] = rng.choice([lo[2], hi[2]], n)
    drawn[:, 3:] = np.eye(3)[rng.choice(np.flatnonzero(hi[3:] == 1), n)]
    return drawn


def of_columns(slopes, edges, lo, y):
    """A sum over columns of piecewise linear functions with these slopes in the bins: (n, d) -> (n, K)."""
    lengths = np.clip(y[:, :, None] - edges[:, :-1], 0, np.diff(edges, axis=1))  # (n, d, bins)
    return np.einsum("kdb,ndb->nk", slopes, lengths)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), squared=st.booleans(), lam=st.floats(0, 5), outputs=st.integers(1, 2))
def test_no_sum_of_columns_rises_above_the_bound(seed, squared, lam, outputs):
    """h a sum over columns: its slopes in the bins are known exactly, and so is d_X = |e|^2 - (a e)^2 + e P e."""
    rng = np.random.default_rng(seed)
    lo, hi = np.array([-1.0, -2, 2, 0, 0, 0]), np.array([1.0, 0.5, 5, 1, 1, 1])
    if seed % 2:
        hi[3 + seed % 3] = 0.0
    x = np.array([rng.uniform(-2, 2), rng.uniform(-2, 2), rng.choice([2.0, 5.0]), *np.eye(3)[rng.integers(3)]])
    slopes = rng.normal(size=(outputs, 6, 4))
    slopes[:, 2:] = slopes[:, 2:, :1]  # columns with two values change evenly
    edges = np.linspace(lo, hi, 5).T
    a, p = rng.normal(size=6), rng.normal(size=(6, 2)) * 0.3 * (seed % 3 > 0)
    a, p = a / np.linalg.norm(a), p @ p.T
    others = people(rng, lo, hi, 400)
    at = rng.normal(size=outputs)

    def h(y):
        return at + of_columns(slopes, edges, lo, y)

    ref, at_x = np.clip(x, lo, hi), rng.normal(size=outputs)
    tangent = 2 * p @ (ref - x)
    corners = h(np.array(list(itertools.product(*zip(lo, hi))) + list(others)))
    inner = h(np.array(list(itertools.product(*edges[:2], lo[2:3], (0,), (0,), (0,)))))
    width = np.abs(slopes).sum((1, 2)) * 5
    weights, where = rng.normal(size=outputs), np.empty(6)
    bound = by_columns(
        x, at_x, ref, h(ref[None])[0], lo, hi, DISCRETE, BLOCK, 1, slopes, slopes,
        np.minimum(corners.min(0), inner.min(0)) - width, np.maximum(corners.max(0), inner.max(0)) + width, 1.0,
        a[None], tangent, tangent @ (ref - x) / 2, lam, 0.5, squared, weights, -np.inf, where,
    )  # fmt: skip
    e = others - x
    cost = (e**2).sum(1) - (e @ a) ** 2 + ((e @ p) * e).sum(1)
    change = h(others) - at_x
    gain = 0.5 * (change**2).sum(1) if squared else change @ weights
    assert (gain - lam * cost <= bound + 1e-9).all()
    assert ((where >= lo) & (where <= hi)).all()
    assert where[3:].sum() == 1
    if not squared and not p.any() and lam == 0:  # nothing is loose
        best = h(where[None])[0] - at_x
        assert bound == pytest.approx(best @ weights, abs=1e-6)


def test_the_bound_of_a_line_is_that_of_the_parabola():
    """h = 2 x from x = 0 over [-1, 3]: 0.5 (2 x)^2 - lam x^2 is largest at 3 for lam < 2, at 0 beyond."""
    lo, hi, x, slopes = np.array([-1.0]), np.array([3.0]), np.zeros(1), np.full((1, 1, 8), 2.0)
    for lam, expected in ((1.0, 9.0), (1.9, 0.9), (2.5, 0.0)):
        bound = by_columns(
            x, x, x, x, lo, hi, np.zeros(1, bool), np.full(1, -1, np.int32), 0, slopes, slopes, 2 * lo, 2 * hi, 1.0,
            np.zeros((0, 1)), np.zeros(1), 0.0, lam, 0.5, True, np.ones(1), 0.0, np.empty(1),
        )  # fmt: skip
        assert expected - 1e-9 <= bound <= expected + 0.03


def test_free_moves_are_free_and_others_are_not():
    """Along a = (1, -1) / sqrt 2 a move costs nothing; h = x_0 + x_1 does not change along it."""
    a, slopes = np.array([[1.0, -1.0]]) / 2**0.5, np.ones((1, 2, 4))
    lo, hi, x = np.full(2, -1.0), np.ones(2), np.zeros(2)
    bound = by_columns(
        x, np.zeros(1), x, np.zeros(1), lo, hi, np.zeros(2, bool), np.full(2, -1, np.int32), 0, slopes, slopes,
        np.full(1, -2.0), np.full(1, 2.0), 1.0, a, np.zeros(2), 0.0, 2.5, 1.0, True, np.ones(1), 0.0, np.empty(2),
    )  # fmt: skip
    assert 0 <= bound < 0.2  # (x_0 + x_1)^2 <= 2 |e|^2, and lam is above 2; the range alone says 4


def test_the_range_along_a_direction():
    rng = np.random.default_rng(0)
    lo, hi = np.array([-1.0, 0, 2, 0, 0, 0]), np.array([1.0, 0, 5, 1, 0, 1])
    x, along = rng.normal(size=6), rng.normal(size=(2, 6))
    start, stop = np.empty(2), np.empty(2)
    spread_along(x, lo, hi, BLOCK, 1, along, start, stop, np.empty(1), np.empty(1))
    z = (people(rng, lo, hi, 4000) - x) @ along.T
    assert (start, stop) == (pytest.approx(z.min(0), abs=1e-6), pytest.approx(z.max(0), abs=1e-6))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), squared=st.booleans(), lam=st.floats(0, 5), radius=st.sampled_from([0.3, np.inf]))
def test_no_smooth_function_with_these_slopes_rises_above_the_bound(seed, squared, lam, radius):
    """Linear outputs: slopes known exactly; Sigma = curvature times the identity; near is the point nearest to x."""
    rng = np.random.default_rng(seed)
    d, outputs, curvature, scale = 3, 2, float(rng.uniform(0.1, 2)), 0.5
    slopes, x = 0.5 * rng.normal(size=(outputs, d)), rng.uniform(-1, 1, d)
    lo, hi = np.sort(rng.uniform(-1, 1, (2, d)), axis=0)
    near = np.clip(x, lo, hi)
    price = curvature * ((near - x) ** 2).sum()
    weights, bins = rng.normal(size=outputs), slopes[:, :, None]
    bound = by_slopes(
        slopes @ near, slopes @ x, near, lo, hi, bins, bins, curvature, price, lam, radius, scale, squared, weights
    )
    others = rng.uniform(lo, hi, (300, d))
    others[:8] = list(itertools.product(*zip(lo, hi)))
    cost = curvature * ((others - x) ** 2).sum(1)
    change = (others - x) @ slopes.T
    gain = scale * (change**2).sum(1) if squared else change @ weights
    value = (gain - lam * cost)[cost <= radius]
    if price <= radius:
        assert (value <= bound + 1e-9).all()


def test_along_one_column_the_bound_is_the_largest_change():
    """h = x / 2 from x = 0 over [1, 2]: at the far end it has changed by 1, and the bound is 0.5 * 1^2 at lam 0."""
    x, one, two, slope = np.zeros(1), np.ones(1), np.full(1, 2.0), np.full((1, 1, 1), 0.5)
    for squared, expected in ((True, 0.5), (False, 1.0)):
        bound = by_slopes(one / 2, x / 2, one, one, two, slope, slope, 1.0, 1.0, 0.0, np.inf, 0.5, squared, np.ones(1))
        assert bound == pytest.approx(expected, rel=1e-6)
