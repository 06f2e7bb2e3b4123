"""Pieces of Dom: together they hold everybody, each lies between its linear bounds, its suprema are proved."""

import pytest
import torch
from scipy.optimize import linprog

from bounds.nets import random_points
from bounds.test_local import LAM, column_problem
from evenhand.bounds.layers import pre_activations
from evenhand.bounds.partition import Refinement, Views, split, supremum, whole


def cut_twice(problem):
    pieces = whole(problem)
    for _ in range(3):
        pieces = split(problem.layers, pieces)
    return pieces


@pytest.mark.parametrize("sizes", [(4, 6, 1), (3, 4, 4, 1)])
def test_pieces_hold_everybody_between_their_bounds(sizes):
    problem = column_problem(sizes)
    pieces, x = cut_twice(problem), random_points(column_problem(sizes), 500, 0)
    assert len(pieces) > 4
    inside = (x[:, None] >= pieces.low).all(2) & (x[:, None] <= pieces.high).all(2)
    entering = torch.cat(pre_activations(problem.layers, x)[0], 1)
    inside &= (entering[:, None] * pieces.sign >= 0).all(2)
    assert inside.any(1).all()
    sides = (pieces.side[None] * x[:, None, None]).sum(-1) + pieces.offset
    assert (sides.amin(2)[inside] >= -1e-9).all()
    f = problem.f(x)
    above, below = x @ pieces.above.T + pieces.ceiling, x @ pieces.below.T + pieces.floor
    assert (torch.where(inside, above - f, torch.zeros(())) >= -1e-9).all()
    assert (torch.where(inside, f - below, torch.zeros(())) >= -1e-9).all()


def test_supremum_is_above_the_linear_programme_and_close():
    g = torch.Generator().manual_seed(0)
    a = torch.randn(1, 1, 4, generator=g, dtype=torch.float64)
    side, offset = torch.randn(1, 2, 4, generator=g, dtype=torch.float64), torch.full((1, 2), 0.3, dtype=torch.float64)
    low, high = -torch.ones(1, 4, dtype=torch.float64), torch.ones(1, 4, dtype=torch.float64)
    exact = linprog(-a[0, 0].numpy(), A_ub=-side[0].numpy(), b_ub=offset[0].numpy(), bounds=[(-1, 1)] * 4)
    found = supremum(a, torch.zeros(1, 1, dtype=torch.float64), low, high, side, offset, iterations=200).item()
    assert -exact.fun - 1e-9 <= found <= -1.05 * exact.fun


def test_values_and_their_refinement_are_above_all_that_is_tried():
    problem = column_problem((3, 4, 4, 1))
    x, other = random_points(problem, 5, 1), random_points(problem, 20_000, 2)
    gain = torch.stack([problem.gain(row.expand_as(other), other, LAM) for row in x]).amax(1)
    nothing = torch.zeros(5, dtype=torch.float64)
    for enough in (nothing, 10 + nothing):  # what is enough is not worked on, and still counts
        views = Views(x, problem.f(x)[:, 0], problem.sigma.diagonal(), LAM, nothing, enough)
        assert (views.values(cut_twice(problem)).amax(1) >= gain - 1e-9).all()
        assert (Refinement(problem.layers, whole(problem)).upper(views, 4, 4)[0] >= gain - 1e-9).all()
