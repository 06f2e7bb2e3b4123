"""The domain against brute force over its vertices."""

import itertools

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.domain import Box

BOX = Box([-1.0, 0, 0, 0, 0, 2], [2.0, 1, 1, 1, 1, 3], blocks=[(1, 2, 3)], binary=[4])


def vertices():
    hot = torch.eye(3, dtype=torch.float64)
    return torch.stack(
        [
            torch.cat([torch.tensor([a]), hot[i], torch.tensor([b, c])]).double()
            for a, i, b, c in itertools.product((-1.0, 2.0), range(3), (0.0, 1.0), (2.0, 3.0))
        ]
    )


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-5, 5), min_size=6, max_size=6))
def test_support_is_the_largest_vertex_and_projection_the_nearest_point(values):
    direction = torch.tensor(values, dtype=torch.float64)
    corners = vertices()
    assert BOX.support(direction).item() == pytest.approx((corners @ direction).max().item(), abs=1e-9)
    nearest = BOX.project(direction[None])[0]
    # Kolmogorov's criterion: the projection is the point whose residual makes no acute angle with any vertex
    assert ((corners - nearest) @ (direction - nearest)).max().item() <= 1e-9
    rounded = BOX.round(direction[None])
    assert BOX.contains(rounded).all()
    assert BOX.support(direction[None]).shape == (1,)


def test_what_is_inside():
    corners = vertices()
    assert BOX.contains(corners).all()
    middle = corners.mean(0, keepdim=True)
    assert not BOX.contains(middle).any()  # the hull's middle is no member of the discrete set
    wrong = corners[:1].clone()
    wrong[0, 5] = 3.5
    assert not BOX.contains(wrong).any()
    torch.testing.assert_close(BOX.round(corners), corners)


def test_a_box_unpacks_like_the_pair_it_stands_for():
    low, high = BOX
    assert (low[0], high[0]) == (-1, 2)
    assert Box.of((low, high), 6).binary == ()
    assert Box.of(BOX, 6) is BOX
    assert Box.of((0, 1), 3).low.tolist() == [0, 0, 0]
    assert BOX.restrict([0, 1, 2, 3, 5]).blocks == ((1, 2, 3),)
    assert BOX.restrict([0, 4]).binary == (1,)
    assert repr(BOX) == "Box of 6 columns, 1 of them binary, 1 one-hot blocks"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Box(0.0, 1.0), "give d="),
        (lambda: Box([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]]), "one value per column"),
        (lambda: Box([[0.0, 0.0]], [1.0, 1.0]), "one value per column"),
        (lambda: Box([0.0, 2.0], [1.0, 1.0]), "low <= high"),
        (lambda: Box([0.0], [float("inf")]), "infinite"),
        (lambda: Box([0.0, 0.0], [1.0, 1.0], binary=[2]), "between 0 and 1"),
        (lambda: Box([0.0, 0.0], [1.0, 2.0], blocks=[(0, 1)], binary=[1]), "distinct"),
        (lambda: Box([0.5, 0.0], [1.0, 1.0], blocks=[(0, 1)]), "bounds 0 and 1"),
        (lambda: Box([0.0, 0.0], [1.0, 0.5], blocks=[(0, 1)]), "bounds 0 and 1"),
        (lambda: Box.of(None, 3), "bounds are needed"),
        (lambda: Box.of(BOX, 3), "6 columns"),
    ],
)
def test_impossible_boxes_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize("unit", [1e-7, 1.0, 1e7])
def test_outside_is_outside_in_any_unit(unit):
    box = Box([0.0, -unit], [unit, unit], binary=[0])
    x = unit * torch.tensor([[0.0, 0.5], [1.0, 1.0], [0.4, 0.5], [0.0, 1.5]], dtype=torch.float64)
    assert box.contains(x).tolist() == [True, True, False, False]


def test_a_person_has_exactly_one_category():
    box = Box(0.0, 1.0, blocks=[[0, 1, 2]], binary=[3], d=5)
    rows = [[1, 0, 0, 0, 0.5], [1, 1, 0, 0, 0.5], [0, 0, 0, 0, 0.5], [1, 0, 0, 0.5, 0.5], [0.5, 0.5, 0, 1, 0.5]]
    assert box.contains(torch.tensor(rows, dtype=torch.float64)).tolist() == [True, False, False, False, False]


def test_every_binary_column_has_one_of_its_values():
    box = Box(0.0, 1.0, binary=[0, 1], d=2)
    rows = [[0.0, 1.0], [0.5, 1.0], [1.0, 0.5], [0.5, 0.5]]
    assert box.contains(torch.tensor(rows, dtype=torch.float64)).tolist() == [True, False, False, False]
    assert Box(0.0, 1.0, d=2).contains(torch.tensor(rows, dtype=torch.float64)).all()
    nothing = Box([0.0, 0.0], [0.0, 1.0])  # a column that is always zero
    assert nothing.contains(torch.tensor([[0.0, 0.5], [0.1, 0.5]], dtype=torch.float64)).tolist() == [True, False]


def test_bounds_may_come_from_a_frame():
    frame = pd.DataFrame({"a": [1, 3], "b": [0.5, 0.25]})
    box = Box.of((frame.min(), frame.max()), 2)
    assert box.low.tolist() == [1, 0.25]
    assert box.high.tolist() == [3, 0.5]
    free = box.freed([[1.0], [0.0]], frame)
    assert (free.free_low.tolist(), free.free_high.tolist()) == ([1.0], [3.0])
    with pytest.raises(TypeError, match="one per column; got list of others"):
        Box(["a", "b"], ["c", "d"])
