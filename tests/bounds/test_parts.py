"""Parts of Dom: nothing in a part is above what is said of it, and without a shell it is exact."""

import pytest
import torch

from bounds.nets import random_layers, random_points, random_problem
from evenhand.bounds.parts import BallPart, SeparablePart, parts_around
from evenhand.bounds.problem import Problem
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric

PRICE = 0.8


def functionals(n, d):
    return torch.randn(n, 3, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_a_box_without_a_shell_is_exact():
    """Column by column max of a t - price w t^2 over [low, high], here by a fine grid."""
    weight = torch.tensor([1.0, 0.0, 2.0], dtype=torch.float64)
    low, high = torch.full((1, 3), -0.7, dtype=torch.float64), torch.full((1, 3), 1.1, dtype=torch.float64)
    part = SeparablePart(weight, low, high, torch.zeros(1), torch.full((1,), torch.inf))
    a = functionals(1, 3)
    t = torch.linspace(-0.7, 1.1, 200_001, dtype=torch.float64)
    expected = sum((a[..., j, None] * t - PRICE * weight[j] * t.square()).amax(-1) for j in range(3))
    torch.testing.assert_close(part.upper(a, PRICE), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("separable", [True, False])
@pytest.mark.parametrize("price", [0.0, PRICE])
def test_nothing_in_a_shell_is_above(separable, price):
    if separable:
        sigma = torch.diag(torch.tensor([0.0, 1.0, 0.0, 2.0], dtype=torch.float64))
        problem = Problem(
            random_layers((4, 3, 1), 0), FairMetric(sigma=sigma), Box(-torch.ones(4), torch.ones(4), binary=[0])
        )
    else:
        problem = random_problem((4, 3, 1), k=1, seed=0)
    x = random_points(problem, 3, 1)
    cells = problem.grid(3, [2] * problem.k)
    inner, outer = torch.full((len(cells),), 0.5), torch.full((len(cells),), 1.2)
    part = parts_around(problem, x, cells, inner.double(), outer.double())
    assert isinstance(part, SeparablePart if separable else BallPart)
    a = functionals(len(cells), 4)
    upper, seen = part.upper(a, price), 0
    for i in range(len(cells)):
        delta = random_points(problem, 20_000, i) - x[cells.person[i]]
        there = x[cells.person[i]] + delta
        d_x = problem.d_x(delta)
        zeta = there[:, problem.free] @ problem.basis
        inside = (d_x >= 0.25) & (d_x <= 1.44) & (there[:, problem.pinned] == cells.pins[i]).all(1)
        inside &= ((zeta - cells.centre[i]).abs() <= cells.half[i]).all(1)
        seen += int(inside.sum())
        reached = delta[inside] @ a[i].T - price * d_x[inside, None]
        if len(reached):
            assert (reached.amax(0) <= upper[i] + 1e-9).all()
    assert seen > 1000


def test_a_ball_that_no_box_cuts_is_exact():
    """sup of a . delta over sum_j w_j delta_j^2 <= outer^2 is outer * sqrt(sum_j a_j^2 / w_j), in any units."""
    weight = torch.tensor([0.04, 1.0, 9.0], dtype=torch.float64)
    box = Box(torch.full((3,), -100.0), torch.full((3,), 100.0))
    problem = Problem(random_layers((3, 2, 1), 0), FairMetric(sigma=torch.diag(weight)), box)
    x = torch.zeros(2, 3, dtype=torch.float64)
    cells = problem.grid(2, [])
    outer = torch.tensor([0.5, 3.0], dtype=torch.float64)
    part = parts_around(problem, x, cells, torch.zeros(2, dtype=torch.float64), outer)
    torch.testing.assert_close(part.high, outer[:, None] / weight.sqrt())  # what the ball leaves of each column
    a = functionals(2, 3)
    expected = outer[:, None] * (a.square() / weight).sum(-1).sqrt()
    torch.testing.assert_close(part.upper(a), expected)


def test_a_ball_cut_by_a_box_is_close_to_exact():
    """The least over all multipliers of the ball, which is the supremum, against the few that are tried."""
    g = torch.Generator().manual_seed(0)
    n, d = 200, 5
    weight = torch.ones(d, dtype=torch.float64)
    low = -torch.rand(n, d, generator=g, dtype=torch.float64)
    high = torch.rand(n, d, generator=g, dtype=torch.float64)
    outer = torch.full((n,), 0.6, dtype=torch.float64)
    part = SeparablePart(weight, low, high, torch.zeros(n, dtype=torch.float64), outer)
    a = torch.randn(n, 1, d, generator=g, dtype=torch.float64)
    mu = torch.logspace(-4, 1, 2000, dtype=torch.float64)
    moved = [(m, *part._moved(a, m.reshape(1, 1))) for m in mu]
    each = torch.stack([gained + m * (outer[:, None].square() - cost) for m, gained, cost in moved])
    exact = torch.minimum(each.amin(0), part._moved(a, torch.zeros(1, 1, dtype=torch.float64))[0])
    ratio = part.upper(a) / exact
    assert (ratio >= 1 - 1e-3).all()
    assert ratio.mean() < 1.01
    assert ratio.max() < 1.08
