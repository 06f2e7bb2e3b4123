"""The factors of S and of ADMM's steps against the whole matrices."""

import pytest
import torch

from bounds.nets import random_layers, random_points, random_problem, with_activations
from evenhand.bounds import factors
from evenhand.bounds.activations import GELU, TANH
from evenhand.bounds.branch import bracket
from evenhand.bounds.factors import (
    Eliminated,
    Few,
    LinAlgError,
    Whole,
    definite,
    diagonal_and_few,
    eliminates,
    factor_of_s,
    factor_of_steps,
)
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Facts, Multipliers, curvature, start_multipliers
from evenhand.bounds.solver import Solver, penalty
from evenhand.bounds.tuning import tune
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric


def uneven(problem, seed=0):
    """Multipliers of which no two are equal, S > 0 still."""
    g = torch.Generator().manual_seed(seed)
    return start_multipliers(problem).map(lambda t: t * (1 + 0.5 * torch.rand(t.shape, generator=g)).double())


@pytest.fixture
def eliminating(monkeypatch):
    monkeypatch.setattr(factors, "LARGE", 0)


def b_for(problem, n=6):
    size = len(problem.free) + sum(problem.widths)
    return torch.randn(n, size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("k", "seed"), [(0, 1), (1, 2), (2, 3)])
def test_eliminating_the_neurons_is_exact(eliminating, k, seed):
    problem = random_problem((4, 9, 3), k=k, seed=seed)
    m, b = uneven(problem), b_for(problem)
    assert eliminates(problem)
    found, s = factor_of_s(problem, m), curvature(problem, m)
    assert isinstance(found, Eliminated)
    torch.testing.assert_close(found.solve(b), torch.linalg.solve(s, b.T).T)
    torch.testing.assert_close(found.times(b), b @ s)
    torch.testing.assert_close(found.quadratic(b), (b * torch.linalg.solve(s, b.T).T).sum(1))
    torch.testing.assert_close(found.singularity(), s.diagonal().log().sum() - torch.logdet(s))


def test_eliminating_smooth_neurons_is_exact(eliminating):
    problem = random_problem((4, 9, 3), k=1, seed=2)
    problem = problem.with_layers(with_activations(problem.layers, GELU, TANH))
    m, b = uneven(problem), b_for(problem)
    torch.testing.assert_close(factor_of_s(problem, m).times(b), b @ curvature(problem, m))


def test_the_steps_are_those_of_the_whole_matrix(eliminating):
    problem = random_problem((4, 9, 3), k=2, seed=3)
    m, b, facts = uneven(problem), b_for(problem), Facts(problem)
    rho = penalty(problem, m)
    g = facts.apply(torch.eye(b.shape[1], dtype=torch.float64)).T
    whole = 2 * curvature(problem, m) + g.T @ (rho[:, None] * g)
    found = factor_of_steps(problem, m, facts, rho)
    torch.testing.assert_close(found.times(b), b @ whole)
    torch.testing.assert_close(found.solve(b), torch.linalg.solve(whole, b.T).T, rtol=1e-4, atol=1e-4)


def test_slopes_are_those_of_the_whole_matrix(eliminating, monkeypatch):
    problem = random_problem((4, 9, 2), k=1, seed=4)
    b, slopes = b_for(problem), []
    for large in (0, 10**6):
        monkeypatch.setattr(factors, "LARGE", large)
        m = uneven(problem).map(lambda t: t.clone().requires_grad_(True))
        s = factor_of_s(problem, m)
        (s.quadratic(b).sum() + s.singularity()).backward()
        slopes.append(torch.cat([t.grad.flatten() for t in m.tensors()]))
    torch.testing.assert_close(slopes[0], slopes[1])


def test_what_is_not_positive_definite_is_told(eliminating):
    problem = random_problem((4, 9, 3), k=1, seed=5)
    m = uneven(problem)
    assert definite(problem, m)
    assert not definite(problem, m, 1.5)
    for bad in (
        Multipliers(m.lam * 1e-6, m.eta, m.gam * 1e-6, m.th * 1e-6),  # the columns' part
        Multipliers(m.lam, [e * 1e-3 for e in m.eta], m.gam, m.th),  # the neurons'
    ):
        assert float(torch.linalg.eigvalsh(curvature(problem, bad))[0]) < 0
        assert not definite(problem, bad)
        with pytest.raises(LinAlgError):
            factor_of_s(problem, bad)


def test_the_margin_is_a_share_of_the_diagonal(eliminating):
    problem = random_problem((4, 9, 3), k=1, seed=5)
    m = uneven(problem)
    s = curvature(problem, m)
    scale = s.diagonal().rsqrt()
    least = float(torch.linalg.eigvalsh(s * scale * scale[:, None])[0])
    assert definite(problem, m, 0.5 * least)
    assert not definite(problem, m, 1.05 * least)


def test_only_wide_single_layers_are_eliminated():
    narrow, deep = random_problem((4, 9, 3), seed=1), random_problem((4, 300, 300, 2), seed=1)
    assert not eliminates(narrow)
    assert not eliminates(deep)
    assert isinstance(factor_of_s(narrow, start_multipliers(narrow)), Whole)
    metric = FairMetric(torch.eye(6, dtype=torch.float64)[:, :1])
    assert eliminates(Problem(random_layers((6, 500, 2), 1), metric, Box(-torch.ones(6), torch.ones(6))))


def test_bounds_do_not_depend_on_how_s_is_factorised(monkeypatch):
    problem = random_problem((5, 12, 2), k=1, seed=6)
    x, found = random_points(problem, 6, 0), []
    for large in (0, 10**6):
        monkeypatch.setattr(factors, "LARGE", large)
        tuned = tune(problem, x, 0.05, steps=30)
        found.append(bracket(Solver(problem, tuned.multipliers), x).upper)
    torch.testing.assert_close(found[0], found[1], rtol=1e-2, atol=1e-6)


def test_the_step_of_many_columns_is_diagonal_and_few(monkeypatch):
    """Many columns, few neurons: the same steps from a matrix of low rank."""
    metric = FairMetric(torch.eye(60, dtype=torch.float64)[:, :2])
    problem = Problem(random_layers((60, 4, 2), 5), metric, Box(-torch.ones(60), torch.ones(60)))
    m, b = start_multipliers(problem), b_for(problem)
    dense = Solver(problem, m).steps
    monkeypatch.setattr("evenhand.bounds.solver.LARGE", 0)
    light = Solver(problem, m).steps
    assert isinstance(light, Few)
    assert light.left.shape[1] <= 2 * 4 + 2 + 2
    assert light.multiplications < dense.multiplications
    torch.testing.assert_close(light.solve(b), dense.solve(b), rtol=1e-4, atol=1e-4 * float(dense.inverse.max()))
    full = torch.eye(9, dtype=torch.float64) * 3 + 0.1 * torch.randn(9, 9, generator=torch.Generator().manual_seed(0))
    assert diagonal_and_few(full + full.T, torch.ones(9, dtype=torch.float64)) is None  # nothing is saved
