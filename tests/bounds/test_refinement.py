"""Pieces as people see them: what is said of a piece holds for all that is tried on it, and each row is on its own."""

import itertools

import pytest
import torch

from bounds.nets import random_layers, random_points
from bounds.test_local import LAM, column_problem, tried
from bounds.test_partition import cut_twice
from evenhand.bounds import partition, refinement
from evenhand.bounds.partition import Pieces, bounded, split, whole
from evenhand.bounds.problem import Problem
from evenhand.bounds.refinement import Refinement, Views
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric


def views_of(problem, x, enough):
    nothing = torch.zeros(len(x), dtype=torch.float64)
    return Views(x, problem.f(x)[:, 0], problem.sigma.diagonal(), LAM, nothing, nothing + enough)


@pytest.mark.parametrize("enough", [0.0, 10.0])  # what is enough is not worked on, and still counts
def test_values_and_their_refinement_are_above_all_that_is_tried(enough):
    problem = column_problem((3, 4, 4, 1))
    x, other = random_points(problem, 5, 1), random_points(problem, 20_000, 2)
    gain = torch.stack([problem.gain(row.expand_as(other), other, LAM) for row in x]).amax(1)
    views = views_of(problem, x, enough)
    assert (views.values(cut_twice(problem)).amax(1) >= gain - 1e-9).all()
    assert (Refinement(problem.layers, whole(problem)).upper(views, 100, 4)[0] >= gain - 1e-9).all()


def test_each_piece_is_above_all_that_is_tried_on_it():
    problem = column_problem((3, 4, 4, 1))
    pieces, x, other = cut_twice(problem), random_points(problem, 3, 1), random_points(problem, 5_000, 2)
    values = views_of(problem, x, 0.0).values(pieces)
    for i in range(len(pieces)):
        inside = ((other >= pieces.low[i]) & (other <= pieces.high[i])).all(1)
        inside &= (other @ pieces.side[i].T + pieces.offset[i] >= 0).all(1)
        there = other[inside]
        for row, value in zip(x, values[:, i], strict=True):
            assert len(there) == 0 or problem.gain(row.expand_as(there), there, LAM).max() <= value + 1e-9


def test_more_work_is_never_worse_and_ends_close_to_what_is_reached():
    problem = column_problem((3, 4, 4, 1))
    x, other = random_points(problem, 4, 1), random_points(problem, 100_000, 2)
    gain = torch.stack([problem.gain(row.expand_as(other), other, LAM) for row in x]).amax(1).clamp(min=0)
    views, whole_dom = views_of(problem, x, 1.01 * gain), whole(problem)
    found = [Refinement(problem.layers, whole_dom).upper(views, work, 4)[0] for work in (0, 30, 3000)]
    assert (found[0] >= found[1]).all()
    assert (found[1] >= found[2]).all()
    assert (found[1] < found[0]).any()
    assert (found[2] <= 1.1 * gain + 1e-9).all()


def test_a_person_gets_the_same_bound_whoever_was_looked_at_before(monkeypatch):
    monkeypatch.setattr(refinement, "MOST_KEPT", 50)  # and when what was made for others is thrown away
    problem = column_problem((3, 4, 4, 1))
    x = random_points(problem, 6, 1)
    shared = Refinement(problem.layers, whole(problem))
    together = shared.upper(views_of(problem, x, 0.0), 200, 4)[0]
    for i in range(6):
        one = views_of(problem, x[i : i + 1], 0.0)
        torch.testing.assert_close(shared.upper(one, 200, 4)[0], together[i : i + 1])
        torch.testing.assert_close(
            Refinement(problem.layers, whole(problem)).upper(one, 200, 4)[0], together[i : i + 1]
        )


def all_pairs(views, pieces, rounds=0):
    """``Views.pairs`` of everybody with every piece: (n, m)."""
    n, m = len(views.x), len(pieces)
    found = views.pairs(pieces, torch.arange(n).repeat_interleave(m), torch.arange(m).repeat(n), rounds)[0]
    return found.reshape(n, m)


def linear_pieces(problem):
    """Cut until the network is linear on each piece."""
    pieces = whole(problem)
    while (pieces.choice >= 0).any():
        open_ = pieces.choice >= 0
        pieces = Pieces.join([pieces[~open_], split(problem.layers, pieces[open_])])
    return pieces


@pytest.mark.parametrize("inner", [0.0, 0.4, 5.0])
def test_without_work_a_piece_is_its_farthest_corner_less_the_price_of_its_nearest_point(inner):
    """In closed form: its ReLUs are always on, so f is linear and |f(x') - f(x)| largest in a corner; d_X is least in
    the nearest point, and inner^2 at least."""
    problem = column_problem((3, 2, 1))
    problem.layers[0] = problem.layers[0]._replace(bias=torch.full((2,), 9.0, dtype=torch.float64))
    low = torch.tensor([[0.0, -1.0, 0.3], [-1.0, 0.5, -1.0], [-1.0, -1.0, -1.0]], dtype=torch.float64)
    high = torch.tensor([[1.0, -0.6, 0.7], [1.0, 0.9, -0.2], [1.0, 1.0, 1.0]], dtype=torch.float64)
    pieces = bounded(problem.layers, low, high, torch.zeros(3, 2, dtype=torch.int8), torch.arange(3))
    x = random_points(problem, 4, 0)
    views = Views(x, problem.f(x)[:, 0], problem.sigma.diagonal(), LAM, torch.full((4,), inner), torch.full((4,), 1e9))
    for found in (all_pairs(views, pieces), views.values(pieces)):
        for i, k in itertools.product(range(4), range(3)):
            corners = torch.tensor(
                list(itertools.product(*zip(low[k].tolist(), high[k].tolist()))), dtype=torch.float64
            )
            change = (problem.f(corners) - problem.f(x[i : i + 1])).abs().max()
            nearest = problem.d_x((x[i].clamp(low[k], high[k]) - x[i])[None])
            expected = change.square() - LAM * max(float(nearest), float(torch.tensor(inner).square()))
            assert found[i, k].item() == pytest.approx(float(expected), abs=1e-9)


def test_nothing_is_cut_without_work_and_linear_pieces_are_looked_at_closer():
    problem = column_problem((4, 6, 1))
    pieces, x = linear_pieces(problem), random_points(problem, 5, 1)
    views = views_of(problem, x, 0.0)
    once, closer = (all_pairs(views, pieces, rounds).amax(1) for rounds in (0, refinement.CLOSER))
    assert (closer < once - 1e-4).any()
    refined = Refinement(problem.layers, pieces)
    torch.testing.assert_close(refined.upper(views, 0, len(pieces))[0], closer)
    assert (closer >= tried(problem, x, LAM) - 1e-9).all()
    assert (closer <= 1.01 * tried(problem, x, LAM) + 1e-9).all()
    coarse = Refinement(problem.layers, whole(problem))
    coarse.upper(views, 0, 4)
    assert len(coarse.made) == len(coarse.start)


def test_the_first_column_is_cut_like_any_other(monkeypatch):
    """Of one column, which is number 0, a network of two layers is cut until its bound is close to what is reached."""
    monkeypatch.setattr(partition, "FEW_RELUS", 0)
    monkeypatch.setattr(partition, "FEW_UNSURE", 0)
    layers = random_layers((1, 5, 5, 1), 3, scale=1.5)
    box = Box(torch.tensor([-1.0]), torch.tensor([1.0]))
    problem = Problem(layers, FairMetric(sigma=torch.eye(1, dtype=torch.float64)), box)
    x = random_points(problem, 4, 0)
    line = torch.linspace(-1, 1, 20_001, dtype=torch.float64)[:, None]
    exact = torch.stack([problem.gain(row.expand_as(line), line, LAM) for row in x]).amax(1)
    found = Refinement(layers, whole(problem)).upper(views_of(problem, x, 0.0), 2000, 4)[0]
    assert (found >= exact - 1e-9).all()
    assert (found <= exact + 0.01).all()


def test_cuts_are_kept_for_the_next_person(monkeypatch):
    problem = column_problem((3, 4, 4, 1))
    cut = []
    monkeypatch.setattr(refinement, "split", lambda layers, pieces: cut.append(len(pieces)) or split(layers, pieces))
    shared, views = Refinement(problem.layers, whole(problem)), views_of(problem, random_points(problem, 2, 1), 0.0)
    shared.upper(views, 100, 4)
    assert cut
    cut.clear()
    shared.upper(views, 100, 4)
    assert not cut
