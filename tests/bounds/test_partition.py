"""Pieces of Dom: together they hold everybody, each lies between its linear bounds, its suprema are proved."""

import pytest
import torch
from scipy.optimize import linprog

from bounds.nets import random_points
from bounds.test_local import column_problem
from evenhand.bounds import partition
from evenhand.bounds.layers import pre_activations
from evenhand.bounds.partition import split, supremum, whole


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


def test_columns_are_halved_while_many_relus_are_unsure_and_signs_split_after_that(monkeypatch):
    problem = column_problem((4, 6, 6, 1), seed=3)
    pieces = whole(problem)
    assert (pieces.choice >= problem.d).any()
    monkeypatch.setattr(partition, "FEW_RELUS", 0)
    monkeypatch.setattr(partition, "FEW_UNSURE", 100)
    assert (whole(problem).choice == pieces.choice).all()
    monkeypatch.setattr(partition, "FEW_UNSURE", 0)
    pieces = whole(problem)
    assert ((pieces.choice >= 0) & (pieces.choice < problem.d)).all()
    halves = split(problem.layers, pieces)
    for i, column in enumerate(pieces.choice.tolist()):
        low, high = pieces.low[i, column], pieces.high[i, column]
        mine = halves[halves.parent == i]
        assert sorted(mine.low[:, column].tolist()) == [low, (low + high) / 2]
        assert sorted(mine.high[:, column].tolist()) == [(low + high) / 2, high]
        assert (mine.sign == 0).all()


def test_a_piece_on_which_the_network_is_linear_is_not_cut():
    problem = column_problem((4, 6, 1))
    point = random_points(problem, 1, 0)
    none = torch.zeros(1, 6, dtype=torch.int8)
    small = partition.bounded(problem.layers, point - 1e-9, point + 1e-9, none, torch.arange(1))
    assert small.choice.tolist() == [-1]


def test_the_largest_loss_is_cut_by_sign_or_by_column():
    """A ReLU that loses most is split by its sign unless the best column loses clearly more; nothing lost, no cut."""
    relu = torch.tensor([[0.1, 0.5, 0.2], [0.1, 0.5, 0.2], [0.0, 0.0, 0.0]], dtype=torch.float64)
    column = torch.tensor([[0.2, 0.6], [0.9, 0.3], [0.0, 0.0]], dtype=torch.float64)
    assert partition._where_to_cut(relu, column, signs=True).tolist() == [2 + 1, 0, -1]
    assert partition._where_to_cut(torch.cat([relu] * 4, 1), column, signs=False).tolist() == [1, 0, -1]


def test_signs_serve_in_one_hidden_layer_and_in_small_networks(monkeypatch):
    wide, deep = column_problem((4, 30, 1)).layers, column_problem((4, 13, 12, 1)).layers
    assert partition.by_signs(wide)
    assert not partition.by_signs(deep)
    assert partition.by_signs(column_problem((4, 12, 12, 1)).layers)


def test_halfspaces_are_dear():
    pieces = whole(column_problem((4, 6, 1)))
    assert (pieces.cost == 1).all()
    problem = column_problem((4, 6, 1))
    halves = split(problem.layers, pieces)
    assert (pieces.choice >= problem.d).all()
    assert (halves.cost == 1 + partition.HALFSPACE).all()
