"""ADMM against an exact quadratic programme, and the guard on S."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from bounds.nets import random_layers, random_points, random_problem
from evenhand.bounds.factors import definite
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Multipliers, curvature, linear_part, make_rows, start_multipliers
from evenhand.bounds.solver import NotPositiveDefinite, Solver, verified_smallest_eigenvalue
from evenhand.bounds.tuning import tune
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric


def test_the_bound_reaches_the_optimum_of_its_quadratic_programme():
    problem = random_problem((3, 4, 2), seed=3)
    m = start_multipliers(problem)
    solver = Solver(problem, m)
    rows = make_rows(problem, random_points(problem, 1, 0), problem.grid(1, [2]))[torch.tensor([1])]
    u, _ = solver.improve(rows, iterations=3000)
    c0, b = linear_part(problem, m, rows)
    s, b = curvature(problem, m).numpy(), b[0].numpy()

    def outside(v):
        image = solver.facts.apply(torch.as_tensor(v)[None])
        r = rows.r[:, problem.free]
        zeta = (r @ problem.basis - rows.cells.centre)[0]
        moved = image[0, : solver.facts.parts[0].stop] + r[0]
        along = image[0, solver.facts.parts[1]] + zeta
        psi, excess = image[0, solver.facts.parts[2]], image[0, solver.facts.parts[3]]
        return torch.cat(
            [
                moved - problem.free_box.low,
                problem.free_box.high - moved,
                along + rows.cells.half[0],
                rows.cells.half[0] - along,
                psi + rows.z[0][0].relu(),
                excess - rows.z[0][0].clamp(max=0),
            ]
        ).numpy()

    solved = minimize(
        lambda v: v @ s @ v - b @ v,
        np.zeros(len(b)),
        jac=lambda v: 2 * s @ v - b,
        constraints={"type": "ineq", "fun": outside},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert solved.success
    assert solver.value(rows, u).item() == pytest.approx(float(c0) - solved.fun, rel=1e-6, abs=1e-8)


def test_where_free_moves_leave_the_box_the_bound_holds_and_x_other_is_possible():
    """The steps carry about nearest points along; what they end with is as good as with exact ones, and in Dom."""
    problem = freed_problem()
    x = random_points(problem, 6, 0)
    solver = Solver(problem, tune(problem, random_points(problem, 6, 1), eps=1.0, steps=80).multipliers)
    rows = make_rows(problem, x, problem.grid(len(x), [2] * problem.k))
    u, x_other = solver.improve(rows, iterations=200)
    assert problem.box.contains(x_other).all()
    assert (x_other - rows.r).abs().amax() > 0.05  # and not where it began
    start = solver.value(rows, solver.facts.start(solver.m, rows))
    value = solver.value(rows, u)
    assert (value < start).double().mean() > 0.9
    g = torch.Generator().manual_seed(1)
    for _ in range(20):  # nobody of Dom within the cell does better
        anybody = problem.box.project(rows.r + 2 * torch.randn(rows.r.shape, generator=g, dtype=torch.float64))
        off = anybody[:, problem.free] @ problem.basis - rows.cells.centre
        here = (off.abs() <= rows.cells.half).all(1)
        assert (problem.gain(rows.x, anybody, float(solver.m.lam)) <= value + 1e-9)[here].all()
    projected = exactly_projected(solver, rows, 200)
    torch.testing.assert_close(value, solver.value(rows, projected), rtol=0.02, atol=1e-6)


def freed_problem():
    """Two columns that a free direction carries beyond their ends."""
    free = torch.tensor([[0.8], [0.5], [0.0], [0.3]], dtype=torch.float64)
    x = torch.rand(30, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    box = Box(torch.zeros(4), torch.ones(4)).freed(free, x)
    return Problem(random_layers((4, 6, 2), 3, 1.5), FairMetric(free), box)


def exactly_projected(solver, rows, iterations):
    """ADMM as it is written in books."""
    facts, rho = solver.facts, solver.rho
    _, b = linear_part(solver.problem, solver.m, rows)
    u = facts.start(solver.m, rows)
    z = facts.project(u / rho, rows)
    for _ in range(iterations):
        v = solver.steps.solve(b + facts.transpose(rho * z - u))
        w = 1.6 * facts.apply(v) - 0.6 * z
        z = facts.project(w + u / rho, rows)
        u = u + rho * (w - z)
    return facts.admissible(u)


def test_s_must_be_positive_definite_by_a_margin():
    problem = random_problem((4, 5, 2), seed=0)
    m = start_multipliers(problem)
    for factor in (1e-4, 1e-2, 0.1):  # far too small a lam: S is indefinite
        bad = m.map(lambda t, factor=factor: t)
        bad.lam = m.lam * 0
        bad.eta = [e * factor for e in m.eta]
        with pytest.raises(NotPositiveDefinite, match="by a margin"):
            Solver(problem, bad)
    ones = torch.ones(2, dtype=torch.float64)
    assert verified_smallest_eigenvalue(torch.eye(2, dtype=torch.float64), ones) == pytest.approx(1)
    nearly = torch.diag(torch.tensor([1.0, 1e-12], dtype=torch.float64))
    with pytest.raises(NotPositiveDefinite):
        verified_smallest_eigenvalue(nearly, ones)


def test_the_margin_is_one_in_natural_units():
    unit = torch.tensor([1.0, 1e-7], dtype=torch.float64)
    s = unit[:, None] * torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64) * unit
    assert verified_smallest_eigenvalue(s, unit.square()) == pytest.approx(0.1)
    singular = unit[:, None] * torch.ones(2, 2, dtype=torch.float64) * unit
    with pytest.raises(NotPositiveDefinite):
        verified_smallest_eigenvalue(singular, unit.square())


def test_a_nearly_singular_s_does_not_loosen_the_bound():
    problem = random_problem((4, 5, 2), seed=1)
    m = start_multipliers(problem)
    low, high = 0.0, 1.0  # of lam, gam and th: down to where S is hardly positive definite
    for _ in range(60):
        middle = (low + high) / 2
        less = Multipliers(m.lam * middle, m.eta, m.gam * middle, m.th * middle)
        low, high = (low, middle) if definite(problem, less, 3e-10) else (middle, high)
    m = Multipliers(m.lam * high, m.eta, m.gam * high, m.th * high)
    solver, plain = Solver(problem, m), Solver(problem, m, verify=False)
    assert solver.smallest < 1e-9
    rows = make_rows(problem, random_points(problem, 5, 0), problem.grid(5, [2]))
    u, _ = solver.improve(rows, iterations=200)
    assert torch.allclose(solver.value(rows, u), plain.value(rows, u), rtol=1e-9)


def test_an_inexact_inverse_only_loosens_the_bound():
    problem = random_problem((4, 5, 2), seed=1)
    solver = Solver(problem, start_multipliers(problem))
    rows = make_rows(problem, random_points(problem, 5, 0), problem.grid(5, [2]))
    u, _ = solver.improve(rows)
    exact = solver.value(rows, u)
    solver.s.inverse = solver.s.inverse * 1.1
    assert (solver.value(rows, u) >= exact - 1e-12).all()
