"""Searches: stay in Dom, look at one row at a time, never end below their start."""

import pytest
import torch
from bounds.nets import random_points, random_problem

from evenhand.output_distances import squared_error
from evenhand.search.thorough import Attack, candidates, plan


@pytest.mark.parametrize("differentiable", [True, False])
def test_candidates(differentiable):
    problem = random_problem((5, 8, 2), k=1, seed=0)
    attack = Attack(problem.f, problem, squared_error, differentiable, neighbours=random_points(problem, 20, 9))
    x = random_points(problem, 12, 0)
    lams = plan(attack, random_points(problem, 10, 1), 0.05)
    found = candidates(attack, x, 0.05, lams)
    assert problem.box.contains(found.reshape(-1, 5)).all()
    alone = candidates(attack, x[3:4], 0.05, lams)
    torch.testing.assert_close(found[3:4], alone, rtol=1e-7, atol=1e-9)
    starts = attack.first_candidates(x, 0.05)
    d_y, d_x = attack.distances(x, starts)
    better_y, better_x = attack.distances(x, attack.improve(x, starts, (d_y, d_x), 2.0))
    assert ((better_y - 2 * better_x).amax(1) >= (d_y - 2 * d_x).amax(1) - 1e-9).all()
