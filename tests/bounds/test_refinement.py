"""Pieces as people see them: what is said of a piece holds for all that is tried on it, and each row is on its own."""

import pytest
import torch

from bounds.nets import random_points
from bounds.test_local import LAM, column_problem
from bounds.test_partition import cut_twice
from evenhand.bounds import refinement
from evenhand.bounds.partition import whole
from evenhand.bounds.refinement import Refinement, Views


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
