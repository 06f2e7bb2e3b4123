"""Branch and bound over cells: grid truth on small problems, nobody's bound depends on anybody else."""

import pytest
import torch

from bounds.nets import random_layers, random_points, random_problem
from evenhand.bounds.branch import DEEPER, SLIGHT, _within_budget, bracket
from evenhand.bounds.layers import Layer
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import start_multipliers
from evenhand.bounds.solver import Solver
from evenhand.bounds.tuning import tune
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.search.geometry import Cells


def grid_truth(problem, x, lam, points=201):
    axes = [torch.linspace(-1, 1, points, dtype=torch.float64)] * 2
    other = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    return torch.stack([problem.gain(row[None], other, lam).max() for row in x])


@pytest.mark.parametrize("seed", range(4))
def test_two_dimensional_toy_is_bracketed_around_the_grid_truth(seed):
    metric = FairMetric(torch.tensor([[1.0], [0.3]], dtype=torch.float64))
    problem = Problem(random_layers((2, 8, 2), seed, 1.5), metric, Box(-torch.ones(2), torch.ones(2)))
    x = random_points(problem, 12, seed)
    tuned = tune(problem, random_points(problem, 15, seed + 50), eps=0.05, steps=80)
    solver = Solver(problem, tuned.multipliers)
    lam = float(tuned.multipliers.lam)
    found = bracket(solver, x)
    truth = grid_truth(problem, x, lam)
    assert (found.upper >= truth - 1e-9).all()
    assert (found.lower <= found.upper).all()
    assert (found.lower >= truth - 0.05 * truth - 1e-3).all()  # the search inside finds what the grid finds
    assert problem.box.contains(found.witness).all()
    torch.testing.assert_close(problem.gain(x, found.witness, lam).clamp(min=0), found.lower)
    r_high, r_low = lam * 0.05 + found.upper.mean(), lam * 0.05 + truth.mean()
    assert r_high <= 1.6 * r_low


def test_a_linear_model_on_the_fibre_has_a_closed_form():
    """f = a x_0 + c x_1, x_0 sensitive in [-1, 1], |x_1| <= 9: r_lam = s^2 lam / (lam - c^2), s = |a| (1 + |x_0|)."""
    a, c, lam = 0.7, 0.5, 2.0
    layer = Layer(torch.tensor([[a, c]], dtype=torch.float64), torch.zeros(1, dtype=torch.float64))
    metric = FairMetric(torch.tensor([[1.0], [0.0]], dtype=torch.float64))
    problem = Problem([layer], metric, Box([-1.0, -9.0], [1.0, 9.0]))
    m = start_multipliers(problem)
    m.lam, m.gam = torch.tensor(lam, dtype=torch.float64), torch.tensor([1.0], dtype=torch.float64)
    m.th = torch.full((2,), 1e-6, dtype=torch.float64)
    x = torch.tensor([[0.0, 0.0], [0.5, 1.0], [-1.0, -2.0]], dtype=torch.float64)
    found = bracket(Solver(problem, m), x, rounds=14, tolerance=1e-4)
    s = abs(a) * (1 + x[:, 0].abs())
    exact = s.square() * lam / (lam - c**2)
    assert (found.upper >= exact - 1e-12).all()
    torch.testing.assert_close(found.upper, exact, rtol=1e-3, atol=0)
    torch.testing.assert_close(found.lower, exact, rtol=1e-3, atol=0)


def test_what_is_slight_beside_the_price_is_not_worked_on(monkeypatch):
    """With lam*eps paid anyway a bound may end so far above what is reached, and never lower than without."""
    problem = random_problem((4, 10, 2), k=1, seed=6)
    solver = Solver(problem, tune(problem, random_points(problem, 12, 1), eps=0.05, steps=40).multipliers)
    x, cells, improve = random_points(problem, 10, 0), [], Solver.improve

    def counted(self, rows, *given):
        cells.append(len(rows))
        return improve(self, rows, *given)

    monkeypatch.setattr(Solver, "improve", counted)
    exact = bracket(solver, x, tolerance=1e-3)
    work = sum(cells)
    paid = 20 * float(exact.upper.mean()) / SLIGHT  # twenty times the mean bound is slight
    cells.clear()
    assert torch.equal(bracket(solver, x, tolerance=1e-3, paid=1e-9 * paid).upper, exact.upper)
    assert sum(cells) == work
    cells.clear()
    coarse = bracket(solver, x, tolerance=1e-3, paid=paid / 1000)
    assert 0 < sum(cells) < work
    assert (coarse.upper >= exact.lower).all()
    assert (coarse.upper <= 1.001 * exact.upper + SLIGHT * paid / 1000).all()
    cells.clear()
    assert (bracket(solver, x, paid=paid).upper >= exact.lower).all()
    assert not cells


@pytest.mark.parametrize("k", [0, 1, 2])
def test_nobodys_bound_depends_on_the_other_rows(k):
    problem = random_problem((5, 8, 2), k=k, seed=4)
    solver = Solver(problem, start_multipliers(problem))
    x = random_points(problem, 9, 0)
    whole = bracket(solver, x, rounds=3)
    alone = bracket(solver, x, rounds=3, chunk=1)
    order = torch.tensor([4, 0, 8, 2, 1, 3, 5, 7, 6])
    mixed = bracket(solver, x[order], rounds=3, chunk=4)
    torch.testing.assert_close(whole.upper, alone.upper, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(whole.upper[order], mixed.upper, rtol=1e-9, atol=1e-12)


def test_more_rounds_never_loosen():
    problem = random_problem((5, 8, 2), seed=5)
    solver = Solver(problem, start_multipliers(problem))
    x = random_points(problem, 6, 0)
    values = [bracket(solver, x, rounds=r).upper.mean().item() for r in (0, 2, 5)]
    assert values[0] >= values[1] >= values[2] - 1e-12


def test_a_model_that_ignores_the_sensitive_column_and_everything_else_has_nothing_to_gain():
    problem = random_problem((5, 8, 2), seed=6)
    problem = Problem(
        [*problem.layers[:-1], Layer(problem.layers[-1].weight * 0, problem.layers[-1].bias)],
        FairMetric(torch.eye(5, dtype=torch.float64)[:, :1]),
        problem.box,
    )
    found = bracket(Solver(problem, start_multipliers(problem)), random_points(problem, 4, 0))
    assert found.upper.max().item() < 1e-5


def test_little_work_is_looser_and_as_sound(monkeypatch):
    """With a budget of a few cells the largest bounds are worked on first; nothing is lost but tightness."""
    metric = FairMetric(torch.tensor([[1.0], [0.3]], dtype=torch.float64))
    problem = Problem(random_layers((2, 8, 2), 1, 1.5), metric, Box(-torch.ones(2), torch.ones(2)))
    x = random_points(problem, 12, 1)
    solver = Solver(problem, tune(problem, random_points(problem, 15, 51), eps=0.05, steps=80).multipliers)
    truth = grid_truth(problem, x, float(solver.m.lam))
    much = bracket(solver, x)
    worked = []
    improve = solver.improve
    monkeypatch.setattr(solver, "improve", lambda rows, *rest: worked.append(len(rows)) or improve(rows, *rest))
    cells = []
    for most in (4, 16):
        monkeypatch.setattr("evenhand.bounds.branch.WORK", most * 20 * solver.multiplications)
        worked.clear()
        found = bracket(solver, x)
        assert (found.upper >= truth - 1e-9).all()
        assert (found.upper >= much.upper - 1e-9).all()
        assert sum(worked) <= most * len(x)
        cells.append(float(found.upper.mean()))
        alone = torch.cat([bracket(solver, one[None]).upper for one in x])
        torch.testing.assert_close(alone, found.upper, rtol=1e-9, atol=0)  # nobody uses up another's budget
    assert cells[0] > cells[1] > float(much.upper.mean())  # work buys tightness


def test_the_largest_bounds_of_each_person_come_first():
    value = torch.tensor([5.0, 1.0, 3.0, 2.0, 9.0, 4.0], dtype=torch.float64)
    person = torch.tensor([0, 1, 0, 1, 1, 0])
    still = torch.tensor([True, True, True, True, False, True])  # 9 is closed already
    nothing = torch.zeros(6, 1, dtype=torch.float64)
    kept = _within_budget(still, value, Cells(person, nothing, nothing, nothing), torch.tensor([2, 1]))
    assert kept.tolist() == [True, False, False, True, False, True]


def test_steps_in_fewer_digits_prove_as_much(monkeypatch):
    problem = random_problem(k=2, seed=3)
    x = random_points(problem, 10, 3)
    m = tune(problem, random_points(problem, 15, 53), eps=0.05, steps=60).multipliers
    exact = bracket(Solver(problem, m), x, cells=[2, 2], rounds=6 + DEEPER)
    monkeypatch.setattr("evenhand.bounds.solver.LARGE", 0)
    light = bracket(Solver(problem, m), x, rounds=6)
    assert Solver(problem, m).steps.digits == torch.float32
    torch.testing.assert_close(light.upper, exact.upper, rtol=1e-3, atol=0)
    assert (light.upper >= exact.lower).all()
