"""Tuning: better than its start, S stays positive definite, and the gradient is the right one."""

import torch

from bounds.nets import random_points, random_problem
from evenhand.bounds.branch import bracket
from evenhand.bounds.quadratic_dual import curvature, make_rows, start_multipliers
from evenhand.bounds.solver import Solver, penalty
from evenhand.bounds.tuning import differentiable_value, tune


def test_tuning_tightens_and_keeps_s_positive_definite():
    problem = random_problem((5, 10, 2), seed=0)
    x, fresh = random_points(problem, 20, 0), random_points(problem, 20, 1)
    eps = 0.05
    start = start_multipliers(problem)
    before = float(start.lam) * eps + bracket(Solver(problem, start), fresh).upper.mean().item()
    tuned = tune(problem, x, eps, steps=80)
    after = float(tuned.multipliers.lam) * eps + bracket(Solver(problem, tuned.multipliers), fresh).upper.mean().item()
    assert after < 0.95 * before
    assert torch.linalg.eigvalsh(curvature(problem, tuned.multipliers))[0] > 0


def test_the_differentiable_value_is_the_value():
    problem = random_problem((5, 10, 6, 2), seed=1)
    m = start_multipliers(problem)
    solver = Solver(problem, m)
    rows = make_rows(problem, random_points(problem, 4, 0), problem.grid(4, [2]))
    u, _ = solver.improve(rows)
    root = torch.linalg.cholesky(curvature(problem, m))
    torch.testing.assert_close(
        differentiable_value(problem, m, root, rows, u), solver.value(rows, u), rtol=1e-8, atol=1e-8
    )
    assert penalty(problem, m).shape == (solver.facts.size,)


def test_same_data_same_multipliers():
    problem = random_problem((4, 6, 2), seed=2)
    x = random_points(problem, 10, 0)
    first, second = tune(problem, x, 0.05, steps=20), tune(problem, x, 0.05, steps=20)
    for a, b in zip(first.multipliers.tensors(), second.multipliers.tensors()):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
