"""Parts along oblique free moves: sound for every functional and cell, and as good as the linear programme."""

import pytest
import torch
from scipy.optimize import linprog

from bounds.nets import random_layers, random_metric, random_points, random_problem
from evenhand.bounds import fibre as module
from evenhand.bounds.fibre import Fibre, FibrePart, Functionals, fibre_of
from evenhand.bounds.linear import gain, linear_bounds
from evenhand.bounds.local import Local
from evenhand.bounds.problem import Problem
from evenhand.bounds.shells import shell_values
from evenhand.domain import Box


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(module, "LARGE", 0)


def problems():
    return [
        random_problem((6, 20, 2), k=2, seed=1),  # with a sensitive binary column
        random_problem((6, 20, 2), k=2, seed=2, discrete=False),
        random_problem((7, 12, 1), k=3, seed=3, discrete=False, given_sigma=True),
    ]


def others(problem, x, n=4000, seed=0):
    """Many people of Dom for each of x, a third of them along free moves, many at the ends of ranges."""
    g = torch.Generator().manual_seed(seed)
    low, high = problem.box
    points = low + (high - low) * (2 * torch.rand(n, problem.d, generator=g, dtype=torch.float64) - 0.5)
    points = points[None].repeat(len(x), 1, 1)
    u = 4 * torch.randn(len(x), n // 3, problem.k, generator=g, dtype=torch.float64)
    points[:, : n // 3, problem.free] = x[:, None][..., problem.free] + u @ problem.basis.T
    return problem.box.round(points.clamp(low, high))


@pytest.mark.parametrize("index", range(3))
def test_nothing_exceeds_the_bound(index):
    problem = problems()[index]
    x = random_points(problem, 12, 5)
    points = others(problem, x)
    for lam in (0.3, 3.0, 30.0):
        d_y = (problem.f(points) - problem.f(x)[:, None]).square().sum(-1)
        reached = (d_y - lam * problem.d_x(points - x[:, None])).amax(1)
        bound = shell_values(problem, x, [lam])[0].amax(1)
        assert (bound >= reached).all()
        assert float(reached.mean()) > 0


@pytest.mark.parametrize("index", range(3))
def test_every_functional_on_every_cell(index):
    problem = problems()[index]
    fibre = fibre_of(problem)
    x, g = random_points(problem, 3, 5), torch.Generator().manual_seed(1)
    points = others(problem, x)
    outer = 0.8
    for pins in problem.pin_values:
        inside = (points[..., problem.pinned] == pins).all(-1) & (problem.d_x(points - x[:, None]) <= outer**2)
        for cell in range(len(fibre)):
            zeta = points[..., problem.free] @ fibre.basis
            here = inside & ((zeta >= fibre.low[cell]) & (zeta <= fibre.high[cell])).all(-1)
            part = FibrePart(
                fibre,
                x,
                torch.arange(3),
                torch.full((3,), cell),
                pins.expand(3, -1),
                *(torch.tensor([r] * 3).double() for r in (0.0, outer)),
            )
            for a in (
                problem.layers[0].weight[None],
                -problem.layers[0].weight[None],
                torch.randn(3, 4, problem.d, generator=g, dtype=torch.float64),
                torch.randn(1, 4, problem.d, generator=g, dtype=torch.float64),
            ):
                for price in (0.0, 2.0):
                    delta = points - x[:, None]
                    reached = delta @ a.transpose(1, 2) - price * problem.d_x(delta)[..., None]
                    reached = reached.masked_fill(~here[..., None], -torch.inf).amax(1)
                    assert (part.upper(a, price) >= reached - 1e-9).all()


def test_the_cheapest_is_the_linear_programme():
    problem = random_problem((30, 40, 2), k=4, seed=4, discrete=False)
    fibre = Fibre(problem)
    x = random_points(problem, 1, 2)
    here = (x @ fibre.basis)[0]
    a = problem.layers[0].weight
    low, high = (side - x[0] for side in fibre.columns)
    near, far = fibre.low[0] - here, fibre.high[0] - here
    c = fibre.cheapest(a, low[None], high[None], near, far, 2000)
    found = Functionals(fibre, a, c).at_most(x, fibre.low[:1], fibre.high[:1])[0]
    for one, value in zip(a, found.tolist()):
        exact = linprog(
            -(one @ fibre.basis).numpy(),
            A_ub=torch.cat([fibre.basis, -fibre.basis]).numpy(),
            b_ub=torch.cat([high, -low]).numpy(),
            bounds=list(zip(near.tolist(), far.tolist())),
        )
        assert value >= -exact.fun - 1e-9
        assert value == pytest.approx(-exact.fun, rel=0.02, abs=0.01)


def test_it_is_tighter_than_a_ball_where_moves_pass_through_many_columns(monkeypatch):
    d = 60
    problem = Problem(random_layers((d, 80, 1), 3), random_metric(d, 3, 1), Box(-torch.ones(d), torch.ones(d)))
    x = random_points(problem, 6, 1)
    fine = Local(problem, None).upper(x, 50.0)[0].mean()
    monkeypatch.setattr(module, "LARGE", 10**6)
    assert fibre_of(problem) is None
    coarse = Local(Problem(problem.layers, random_metric(d, 3, 1), problem.box), None).upper(x, 50.0)[0].mean()
    assert fine < 0.5 * coarse


def test_the_cells_cover_every_free_move():
    problem = problems()[1]
    fibre = fibre_of(problem)
    points = others(problem, random_points(problem, 4, 0)).reshape(-1, problem.d)
    zeta = points[:, problem.free] @ fibre.basis
    covered = ((zeta[:, None] >= fibre.low - 1e-12) & (zeta[:, None] <= fibre.high + 1e-12)).all(-1).any(1)
    assert covered.all()
    torch.testing.assert_close(fibre.basis.T @ fibre.basis, torch.eye(problem.k, dtype=torch.float64))
    torch.testing.assert_close(fibre.basis @ fibre.basis.T, problem.basis @ problem.basis.T)


def test_a_part_that_holds_nobody_is_no_trouble():
    problem = problems()[1]
    fibre = fibre_of(problem)
    fibre.low, fibre.high = fibre.low + 50, fibre.high + 50  # nobody is there
    x = random_points(problem, 2, 0)
    radii = torch.tensor([0.0, 0.0]).double(), torch.tensor([0.1, 0.1]).double()
    part = FibrePart(fibre, x, torch.arange(2), torch.zeros(2, dtype=torch.long), torch.zeros(2, 0).double(), *radii)
    value = gain(part, linear_bounds(problem.layers, part, x), problem.f(x), 1.0)
    assert not value.isnan().any()


def test_only_wide_single_layers_with_oblique_moves(monkeypatch):
    assert fibre_of(random_problem((6, 10, 2), k=0, seed=1)) is None
    assert fibre_of(random_problem((6, 10, 5, 2), k=2, seed=1)) is None
    problem = problems()[0]
    assert fibre_of(problem) is fibre_of(problem)  # made once
    monkeypatch.setattr(module, "LARGE", 400)
    assert fibre_of(problem) is None
