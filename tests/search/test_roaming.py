"""Long ways through Dom: near the best point of a grid, possible people, one row at a time."""

import torch
from bounds.nets import random_points, random_problem

from evenhand.output_distances import squared_error
from evenhand.search.attack import Attack
from evenhand.search.roaming import roam

LAM = 0.3


def setting(seed):
    problem = random_problem((2, 8, 1), k=0, seed=seed, discrete=False)
    attack = Attack(problem.f, problem, squared_error, differentiable=True)
    x = random_points(problem, 8, seed)
    return problem, attack, x, roam(attack, x, attack.h(x), LAM)


def test_nearly_as_good_as_the_best_point_of_a_grid():
    for seed in range(3):
        problem, _, x, found = setting(seed)
        axis = torch.linspace(-1, 1, 201, dtype=torch.float64)
        grid = torch.cartesian_prod(axis, axis)
        best = problem.gain(x[:, None], grid.expand(len(x), -1, -1), LAM).amax(1).clamp(min=0)
        reached = problem.gain(x[:, None], found, LAM).amax(1).clamp(min=0)
        assert reached.mean() >= 0.95 * best.mean()


def test_possible_people_whoever_else_is_asked_for():
    problem, attack, x, found = setting(1)
    assert problem.box.contains(found.reshape(-1, 2)).all()
    torch.testing.assert_close(roam(attack, x[3:4], attack.h(x[3:4]), LAM), found[3:4])
