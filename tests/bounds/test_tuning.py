"""Tuning: better than its start, S stays positive definite, and the gradient is the right one."""

import pytest
import torch

from bounds.nets import random_points, random_problem
from evenhand.bounds.branch import bracket
from evenhand.bounds.factors import factor_of_s
from evenhand.bounds.pace import ending
from evenhand.bounds.quadratic_dual import curvature, make_rows, start_multipliers
from evenhand.bounds.solver import Solver, penalty
from evenhand.bounds.tuning import descend, differentiable_value, tune, uniform_bound, unpinned


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
    torch.testing.assert_close(
        differentiable_value(problem, m, factor_of_s(problem, m), rows, u), solver.value(rows, u), rtol=1e-8, atol=1e-8
    )
    assert penalty(problem, m).shape == (solver.facts.size,)


def test_same_data_same_multipliers():
    problem = random_problem((4, 6, 2), seed=2)
    x = random_points(problem, 10, 0)
    first, second = tune(problem, x, 0.05, steps=20), tune(problem, x, 0.05, steps=20)
    for a, b in zip(first.multipliers.tensors(), second.multipliers.tensors()):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize(("sizes", "seed"), [((6, 30, 20, 1), 1), ((8, 40, 1), 1), ((5, 16, 16, 16, 2), 0)])
def test_the_best_bound_of_everybody_does_not_depend_on_where_the_descent_begins(sizes, seed):
    """It is a convex problem: a linear objective over all multipliers with S > 0."""
    problem = unpinned(random_problem(sizes, seed=seed))
    start = start_multipliers(problem)
    near = uniform_bound(problem, 0.05).value
    far = uniform_bound(problem, 0.05, start=start.map(lambda t: 30 * t)).value
    assert near == pytest.approx(far, rel=0.05)


@pytest.mark.parametrize(("sizes", "seed"), [((5, 12, 1), 7), ((6, 20, 1), 5)])
def test_the_objective_of_tuning_is_what_branch_and_bound_proves(sizes, seed):
    """Cells that were far below the others once may be the worst at the end: the objective counts them."""
    problem, eps = random_problem(sizes, seed=seed), 0.05
    x = random_points(problem, 8, seed + 50)
    tuned = tune(problem, x, eps)
    proven = bracket(Solver(problem, tuned.multipliers), x)
    lam = float(tuned.multipliers.lam)
    assert lam * eps + float(proven.lower.mean()) <= tuned.value
    assert tuned.value <= 1.2 * (lam * eps + float(proven.upper.mean()))


def test_a_descent_that_gains_nothing_ends_before_its_steps_do():
    problem = random_problem((4, 6, 2), seed=2)
    seen = []
    tune(problem, random_points(problem, 10, 0), 0.05, steps=5000, progress=seen.append)
    assert 3 < len(seen) < 100  # a line every 20 steps


def test_a_descent_that_is_ended_keeps_the_best_so_far():
    problem = random_problem((4, 6, 2), seed=2)
    told = []

    def tell(text):
        told.append(text)
        if len(told) == 3:
            raise KeyboardInterrupt

    short, whole = (tune(problem, random_points(problem, 10, 0), 0.05, 5000, progress=say) for say in (tell, None))
    assert whole.value < short.value < tune(problem, random_points(problem, 10, 0), 0.05, 1).value
    everybody = unpinned(problem)
    ended = uniform_bound(everybody, 0.05, progress=ending(lambda: True))
    assert uniform_bound(everybody, 0.05).value < ended.value < float("inf")


def test_a_descent_that_is_stuck_goes_back_to_the_best_multipliers():
    problem = random_problem((4, 6, 2), seed=2)
    width = (problem.zeta_high - problem.zeta_low).square()
    seen = []

    def objective(m, root, step):
        value = m.lam * 0.05 + (m.gam * width).sum() + m.th.sum()
        seen.append((float(m.lam.detach()), float(value.detach())))
        return value

    descend(problem, objective, start_multipliers(problem), 300, 0.5)
    values = [value for _, value in seen]
    assert values.count(min(values)) > 2  # at every pace it begins there
    assert len({lam for lam, value in seen if value == min(values)}) == 1


def test_what_the_objective_left_out_counts_at_the_end():
    """Small lam are dear, which the objective only says from then on when it is made anew there."""
    problem = random_problem((4, 6, 2), seed=2)
    width = (problem.zeta_high - problem.zeta_low).square()
    start = start_multipliers(problem)
    dear = 0.5 * float(start.lam)
    seen = {"dear": False}

    def true(m):
        return m.lam * 0.05 + (m.gam * width).sum() + m.th.sum() + 1e3 * (1 - m.lam / dear).clamp(min=0)

    def objective(m, root, step):
        return true(m) if seen["dear"] else true(m) - 1e3 * (1 - m.lam / dear).clamp(min=0)

    def again(m):
        seen["dear"] = float(m.lam) < dear

    tuned = descend(problem, objective, start, 250, 0.5, again=again)
    assert float(tuned.multipliers.lam) > 0.9 * dear
    assert tuned.value == pytest.approx(float(true(tuned.multipliers)))
