"""ADMM against an exact quadratic programme, and the guard on S."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from bounds.nets import random_points, random_problem
from evenhand.bounds.factors import definite
from evenhand.bounds.quadratic_dual import Multipliers, curvature, linear_part, make_rows, start_multipliers
from evenhand.bounds.solver import NotPositiveDefinite, Solver, verified_smallest_eigenvalue


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
