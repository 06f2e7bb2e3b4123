"""The quadratic bound: identities it rests on, and soundness of any multipliers with S > 0."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds.nets import other_points, random_layers, random_points, random_problem
from evenhand.bounds.layers import pre_activations
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Facts, curvature, linear_part, make_rows, start_multipliers
from evenhand.bounds.solver import Solver
from evenhand.domain import Box
from evenhand.fair_metrics import FairMetric

SIZES = [(5, 2), (5, 12, 2), (4, 6, 5, 3), (4, 5, 4, 3, 2)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("discrete", [True, False])
def test_the_quadratic_form_is_the_lagrangian(sizes, discrete):
    """c0 + b.v - v^T S v equals d_Y - lam d_X plus the penalties, computed from their definitions at real x'."""
    problem = random_problem(sizes, seed=1, discrete=discrete)
    m = start_multipliers(problem)
    x = random_points(problem, 3, 0)
    cells = problem.grid(3, [2] * problem.k)
    rows = make_rows(problem, x, cells)
    x_other = random_points(problem, len(cells), 5)
    x_other[:, problem.pinned] = cells.pins
    y, _ = pre_activations(problem.layers, x_other)
    v = torch.cat([(x_other - rows.r)[:, problem.free], *(a.relu() - b.relu() for a, b in zip(y, rows.z))], 1)
    c0, b = linear_part(problem, m, rows)
    form = c0 + (b * v).sum(1) - ((v @ curvature(problem, m)) * v).sum(1)
    free = x_other[:, problem.free]
    zeta = free @ problem.basis - cells.centre
    expected = problem.gain(x[cells.person], x_other, float(m.lam))  # the ReLU terms p (y - p) vanish at real x'
    expected = expected + ((cells.half.square() - zeta.square()) * m.gam).sum(1)
    expected = expected + (m.th * (free - problem.free_box.low) * (problem.free_box.high - free)).sum(1)
    torch.testing.assert_close(form, expected)
    facts = Facts(problem)
    inside = (zeta.abs() <= cells.half).all(1)
    image = facts.apply(v)
    torch.testing.assert_close(facts.project(image, rows)[inside], image[inside])  # real x' satisfy every fact


@pytest.mark.parametrize("sizes", SIZES)
def test_transpose_and_support_of_the_facts(sizes):
    problem = random_problem(sizes, seed=2)
    facts = Facts(problem)
    rows = make_rows(problem, random_points(problem, 4, 0), problem.grid(4, [3] * problem.k))
    g = torch.Generator().manual_seed(0)
    n = len(rows)
    v = torch.randn(n, facts.v_parts[-1].stop, generator=g, dtype=torch.float64)
    u = torch.randn(n, facts.size, generator=g, dtype=torch.float64)
    torch.testing.assert_close((facts.apply(v) * u).sum(1), (v * facts.transpose(u)).sum(1))
    u = facts.admissible(u)
    far = facts.project(torch.randn(n, facts.size, generator=g, dtype=torch.float64), rows)
    assert ((u * far).sum(1) <= facts.support(u, rows) + 1e-9).all()
    towards = facts.project(1e6 * u, rows)  # the support is reached in the direction of u, where C is bounded
    start = facts.parts[1].stop
    bounded = u.clone()
    bounded[:, start:] = 0
    torch.testing.assert_close((bounded * towards).sum(1), facts.support(bounded, rows))


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1000), st.sampled_from(SIZES), st.booleans())
def test_any_multipliers_are_sound(seed, sizes, discrete):
    problem = random_problem(sizes, k=1 + seed % 2, seed=seed, discrete=discrete, given_sigma=seed % 3 == 0)
    g = torch.Generator().manual_seed(seed)
    m = start_multipliers(problem).map(lambda t: t * (1 + 0.2 * torch.rand(t.shape, generator=g, dtype=torch.float64)))
    solver = Solver(problem, m)
    x = random_points(problem, 3, seed)
    rows = make_rows(problem, x, problem.grid(3, [2] * problem.k))
    u = solver.facts.start(m, rows)
    noise = torch.randn(u.shape, generator=g, dtype=torch.float64)
    for multipliers in (u, solver.facts.admissible(u + 0.3 * noise), solver.improve(rows, u, 5)[0]):
        value = solver.value(rows, multipliers)
        upper = torch.zeros(3, dtype=torch.float64).scatter_reduce(0, rows.cells.person, value, "amax")
        gain = problem.gain(x[:, None], other_points(problem, x, 100, seed), float(m.lam))
        assert (gain.amax(1) <= upper + 1e-9).all()


@pytest.mark.parametrize("prices", [(1.0, 1e-1), (1.0, 1e-3), (1.0, 1e-7), (1e4, 1e-2), (1e-4, 1e-9)])
@pytest.mark.parametrize("sizes", [(5, 2), (5, 12, 2), (5, 6, 5, 3)])
def test_the_first_multipliers_give_a_bound_whatever_moves_cost(prices, sizes):
    g = torch.Generator().manual_seed(0)
    q = torch.linalg.qr(torch.randn(5, 5, generator=g, dtype=torch.float64)).Q
    each = torch.logspace(*(math.log10(p) for p in prices), 5, dtype=torch.float64)
    for free in (0, 1):
        each[:free] = 0.0
        sigma = q @ torch.diag(each) @ q.T
        metric = FairMetric(sigma=(sigma + sigma.T) / 2)
        problem = Problem(random_layers(sizes, 0), metric, Box(-torch.ones(5), torch.ones(5)))
        m = start_multipliers(problem)
        assert Solver(problem, m).smallest > 0
