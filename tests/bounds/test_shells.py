"""Shells of growing d_X around a person: they cover Dom, and nothing in a shell is above what is said of it."""

import torch

from bounds.nets import random_points, random_problem
from evenhand.bounds import shells
from evenhand.bounds.shells import SHELLS, radii, shell_values


def test_radii_grow_from_nothing_to_the_whole_of_dom():
    problem = random_problem((4, 5, 1), k=1, seed=0)
    edges = radii(problem)
    assert edges[0] == 0
    assert (edges.diff() > 0).all()
    assert edges[-1] >= problem.reach


def test_nothing_in_a_shell_is_above_its_value():
    for seed in range(2):
        problem = random_problem((3, 5, 2), k=1, seed=seed)
        x = random_points(problem, 3, seed)
        lams = [0.5, 3.0]
        values = shell_values(problem, x, lams)
        assert values.shape == (2, 3, SHELLS)
        other = random_points(problem, 20_000, 7)
        edges = radii(problem)
        for i in range(3):
            distance = problem.d_x(other - x[i]).sqrt()
            shell = torch.bucketize(distance, edges, right=True) - 1
            for j, lam in enumerate(lams):
                gain = problem.gain(x[i].expand_as(other), other, lam)
                assert (gain <= values[j, i, shell.clamp(max=SHELLS - 1)] + 1e-9).all()


def test_people_are_taken_in_groups_that_fit(monkeypatch):
    problem = random_problem((3, 5, 2), k=1, seed=0)
    x = random_points(problem, 4, 1)
    together = shell_values(problem, x, [0.5])
    monkeypatch.setattr(shells, "NUMBERS", 1)
    torch.testing.assert_close(shell_values(problem, x, [0.5]), together)
    assert len(shells.Shells(problem, x).parts) == 4


def test_no_shells_around_a_linear_model():
    """Which the dual bounds as closely, in a fifth of the time."""
    assert shells.affordable_shells(random_problem((4, 3, 2), k=1, seed=0))
    assert not shells.affordable_shells(random_problem((4, 2), k=1, seed=0))
