"""The parts of the branch and bound, each against enumeration of the people in a box. All of it: test_worst_case.py."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from evenhand.ensembles.branching import _cut, _nearest, _rounded, _settle

pytest.importorskip("numba", reason="the search is compiled by numba")
# A number, a binary column that holds 2 or 5, and a one-hot block of three.
LOW, HIGH = np.array([-1.0, 2, 0, 0, 0]), np.array([1.0, 5, 1, 1, 1])
DISCRETE, BLOCK = np.array([False, True, True, True, True]), np.array([-1, -1, 0, 0, 0], np.int32)
BOXES = [(a, b, *tail) for a, b in ((2, 2), (2, 5), (5, 5)) for tail in itertools.product((0, 1, 2), repeat=3)]


def box(second, third, *tail):
    """A box of the search: the range of the second column, and of each of the block: 0, anything, 1."""
    lo = np.array([-0.5, second, *(float(t == 2) for t in tail)])
    hi = np.array([0.7, third, *(float(t > 0) for t in tail)])
    return lo, hi


def inside(lo, hi):
    """Everybody of Dom in the box, but for the number."""
    every = [np.array([b, *np.eye(3)[c]]) for b, c in itertools.product((2.0, 5.0), range(3))]
    return [tail for tail in every if (lo[1:] <= tail).all() and (tail <= hi[1:]).all()]


@pytest.mark.parametrize("ends", BOXES)
def test_settle_keeps_everybody_and_sees_an_empty_box(ends):
    lo, hi = box(*ends)
    people = inside(lo, hi)
    assert _settle(lo, hi, LOW, HIGH, DISCRETE, BLOCK, 1) == bool(people)
    if people:  # the smallest box that holds them
        np.testing.assert_array_equal(lo[1:], np.min(people, axis=0))
        np.testing.assert_array_equal(hi[1:], np.max(people, axis=0))


def test_settle_moves_a_binary_column_to_the_end_that_is_left():
    for cut, expected in (((2.5, 5.0), (5, 5)), ((2.0, 4.0), (2, 2))):
        lo, hi = box(*cut, 1, 1, 1)
        assert _settle(lo, hi, LOW, HIGH, DISCRETE, BLOCK, 1)
        assert (lo[1], hi[1]) == expected


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), ends=st.sampled_from(BOXES))
def test_nobody_in_the_box_is_nearer_than_the_nearest(seed, ends):
    rng = np.random.default_rng(seed)
    lo, hi = box(*ends)
    people = inside(lo, hi)
    if not people:
        return
    _settle(lo, hi, LOW, HIGH, DISCRETE, BLOCK, 1)
    a = rng.normal(size=(5, 3))
    sigma = a @ a.T
    x = np.array([rng.uniform(-1, 1), rng.choice([2.0, 5.0]), *np.eye(3)[rng.integers(3)]])

    def cost(number, tail):
        e = np.array([number, *tail]) - x
        return e @ sigma @ e

    least = min(minimize(lambda z, tail=tail: cost(z[0], tail), [0.0], bounds=[(lo[0], hi[0])]).fun for tail in people)
    point = np.clip(x, lo, hi)
    step = 1 / np.linalg.eigvalsh(sigma)[-1]
    found = _nearest(x, lo, hi, BLOCK, 1, sigma, step, 2000, point, np.empty(5))
    assert 0 <= found <= least + 1e-6
    if len(people) == 1:  # then the box is an interval, and the bound exact
        assert found == pytest.approx(least, abs=1e-4 * (1 + least))
    out = np.empty(5)
    _rounded(point, lo, hi, LOW, HIGH, DISCRETE, BLOCK, 1, out)
    assert any((out[1:] == tail).all() for tail in people)
    assert lo[0] <= out[0] <= hi[0]


def test_the_rounded_person_is_the_nearer_of_two():
    lo, hi = box(2, 5, 1, 1, 1)
    out = np.empty(5)
    for point, expected in (
        ([0.2, 3.4, 0.1, 0.5, 0.4], [0.2, 2, 0, 1, 0]),
        ([9.0, 3.6, 0.6, 0.0, 0.4], [0.7, 5, 1, 0, 0]),
    ):
        _rounded(np.array(point), lo, hi, LOW, HIGH, DISCRETE, BLOCK, 1, out)
        assert out.tolist() == expected


def test_where_a_box_is_cut():
    feature, width = np.array([0, 0, 1, -1], np.int32), np.array([0.0, 0.0, 0.2, 0.0])
    threshold = np.array([-0.4, 0.3, 0.1, 0.0])
    assert _cut(0, 0.1, -1.0, 1.0, feature, threshold, width) == 0.3  # the nearer threshold
    assert _cut(0, 0.1, -1.0, 0.2, feature, threshold, width) == -0.4  # the only one that is open
    assert _cut(1, 0.1, -1.0, 1.0, feature, threshold, width) == 0.1  # inside a ramp, where it pulls
    assert _cut(1, 0.99, -1.0, 1.0, feature, threshold, width) == pytest.approx(0.8)  # but off the ends
    assert np.isnan(_cut(2, 0.0, -1.0, 1.0, feature, threshold, width))  # nothing to cut
