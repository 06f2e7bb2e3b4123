"""The compiled kernels against the definition: a tree is the sum of its leaves, weighted by the splits above."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.ensembles.kernels import at_point, compiled, evaluate, range_of_trees

pytest.importorskip("numba", reason="plain Python is the same and slow")
D, OUTPUTS, BINS = 3, 2, 4


def forest(seed, trees=3, depth=3, widths=(0.0, 0.3, 0.8)):
    """Random trees as the kernels take them, by default soft and hard splits mixed, and where a missing value goes."""
    rng = np.random.default_rng(seed)
    rows, roots = [], []

    def add(level):
        here = len(rows)
        rows.append([-1, 0.0, 0.0, 0, 0, rng.normal()])
        if level and rng.random() < 0.9:
            width = rng.choice(widths)
            rows[here] = [rng.integers(D), rng.uniform(-1, 1), width, add(level - 1), add(level - 1), 0.0]
        return here

    for _ in range(trees):
        roots.append(add(depth))
    table = np.array(rows, dtype=float)
    feature, left, right = (np.ascontiguousarray(table[:, i], dtype=np.int32) for i in (0, 3, 4))
    threshold, width, value = (np.ascontiguousarray(table[:, i]) for i in (1, 2, 5))
    output = (np.arange(trees) % OUTPUTS).astype(np.int32)
    arrays = (feature, threshold, width, left, right, value, np.array(roots, np.int32), output)
    return rng, arrays, rng.random(len(rows)) < 0.5


def by_recursion(point, arrays, missing_left, base):
    """h(x) as it is written: g of each split to the right, the rest to the left."""
    feature, threshold, width, left, right, value, root, output = arrays

    def below(node):
        if feature[node] < 0:
            return value[node]
        v, t, w = point[feature[node]], threshold[node], width[node]
        if np.isnan(v):
            g = 0.0 if missing_left[node] else 1.0
        else:
            g = np.clip((v - t + w) / (2 * w), 0, 1) if w > 0 else float(v > t)
        return (1 - g) * below(left[node]) + g * below(right[node])

    total = base.copy()
    for r, k in zip(root, output):
        total[k] += below(r)
    return total


def ranges(lo, hi, arrays, base):
    low, high, spread, pull = np.empty(OUTPUTS), np.empty(OUTPUTS), np.empty(D), np.empty(D)
    fall, rise = np.empty((OUTPUTS, D, BINS)), np.empty((OUTPUTS, D, BINS))
    range_of_trees(lo, hi, arrays, base, low, high, spread, pull, fall, rise)
    return low, high, spread, pull, fall, rise


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_values_are_those_of_the_definition(seed):
    rng, arrays, missing_left = forest(seed)
    base = rng.normal(size=OUTPUTS)
    x = rng.uniform(-1.5, 1.5, (6, D))
    x[0] = arrays[1][:D]  # on thresholds
    expected = np.array([by_recursion(row, arrays, missing_left, base) for row in x])
    out = np.empty(OUTPUTS)
    for row, h in zip(x, expected):
        at_point(row, arrays, base, out, np.empty(4096, np.int32), np.empty(4096))
        np.testing.assert_allclose(out, h, atol=1e-12)
    x[1:3, 1] = np.nan
    expected[1:3] = [by_recursion(row, arrays, missing_left, base) for row in x[1:3]]
    total = np.repeat(base[None], len(x), 0)
    evaluate(x, arrays, missing_left, total)
    np.testing.assert_allclose(total, expected, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_point_of_a_box_lies_outside_the_range(seed):
    rng, arrays, missing_left = forest(seed)
    base = rng.normal(size=OUTPUTS)
    lo, hi = np.sort(rng.uniform(-1.2, 1.2, (2, D)), axis=0)
    low, high, spread, pull, fall, rise = ranges(lo, hi, arrays, base)
    x = rng.uniform(lo, hi, (60, D))
    x[:8] = [[(lo, hi)[i >> j & 1][j] for j in range(D)] for i in range(8)]
    h = np.repeat(base[None], len(x), 0)
    evaluate(x, arrays, missing_left, h)
    assert (h >= low - 1e-12).all()
    assert (h <= high + 1e-12).all()
    if (h.max(0) - h.min(0)).max() > 1e-12:
        assert spread.max() > 0  # what moves in the box has a column to cut
    for j in np.flatnonzero(spread):
        assert lo[j] <= pull[j] / spread[j] <= hi[j]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_difference_quotient_of_ramps_leaves_the_slopes(seed):
    rng, arrays, missing_left = forest(seed, widths=(0.3, 0.8))
    base = np.zeros(OUTPUTS)
    lo, hi = np.sort(rng.uniform(-1.2, 1.2, (2, D)), axis=0)
    *_, fall, rise = ranges(lo, hi, arrays, base)
    x = rng.uniform(lo, hi, (40, D))
    for j, b in itertools.product(range(D), range(BINS)):
        ends, edges = np.zeros((2, len(x), OUTPUTS)), lo[j] + (hi[j] - lo[j]) * np.array([b, b + 1]) / BINS
        for end, place in zip(ends, edges):
            x[:, j] = place
            evaluate(x, arrays, missing_left, end)
        slope = (ends[1] - ends[0]) / (edges[1] - edges[0])
        assert (slope <= rise[:, j, b] + 1e-9).all()
        assert (slope >= fall[:, j, b] - 1e-9).all()


def test_a_ramp_by_hand():
    """One split at 0 with half-width 1, leaves -1 and 3: h = -1 + 4 (x + 1) / 2, on [-1/2, 1/2] from 0 to 2."""
    ints = [np.array(values, np.int32) for values in ([1, -1, -1], [1, 0, 0], [2, 0, 0], [0], [1])]
    feature, left, right, root, output = ints
    threshold, width, value = np.zeros(3), np.array([1.0, 0, 0]), np.array([0.0, -1.0, 3.0])
    arrays = (feature, threshold, width, left, right, value, root, output)
    lo, hi = np.full(D, -0.5), np.full(D, 0.5)
    low, high, spread, pull, fall, rise = ranges(lo, hi, arrays, np.array([7.0, 0.0]))
    assert (low.tolist(), high.tolist()) == ([7, 0], [7, 2])
    assert spread.tolist() == [0, 2, 0]
    assert pull[1] == 0
    assert fall.tolist() == rise.tolist() == [[[0] * 4] * 3, [[0] * 4, [2] * 4, [0] * 4]]
    lo[1], hi[1] = -3.5, 0.5  # the ramp reaches into the last two of four bins, and covers one of them
    *_, fall, rise = ranges(lo, hi, arrays, np.zeros(2))
    assert (fall[1, 1].tolist(), rise[1, 1].tolist()) == ([0, 0, 0, 2], [0, 0, 2, 2])


def test_without_numba_the_function_stays_as_it_is(monkeypatch):
    from evenhand.ensembles import kernels

    def double(x):
        return 2 * x

    assert compiled(double)(3) == 6
    monkeypatch.setattr(kernels, "numba", None)
    assert compiled(double) is double
