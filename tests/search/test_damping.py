"""Damped steps against a dense solver."""

import pytest
import torch

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.search.damping import Damped
from evenhand.search.geometry import Geometry


def made(given_sigma, seed=0):
    g = torch.Generator().manual_seed(seed)
    directions = torch.randn(6, 2, generator=g, dtype=torch.float64)
    metric = FairMetric(directions)
    if given_sigma:
        scale = torch.diag(torch.logspace(-1, 1, 6, dtype=torch.float64))
        metric = FairMetric(sigma=scale @ metric.sigma @ scale)
    return Geometry(metric, Box(-1.0, 2.0, d=6)), torch.randn(4, 6, generator=g, dtype=torch.float64)


@pytest.mark.parametrize("given_sigma", [False, True])
@pytest.mark.parametrize("columns", [[0, 1, 2, 3, 4, 5], [1, 2, 5]])
def test_the_step_solves_the_damped_equations(given_sigma, columns):
    geometry, slope = made(given_sigma)
    span = torch.full((6,), 3.0, dtype=torch.float64)
    damped = Damped(geometry, torch.tensor(columns), span)
    lam, damping = torch.full((4, 1), 0.7, dtype=torch.float64), torch.logspace(-3, 3, 4, dtype=torch.float64)[:, None]
    step = damped(slope, lam, damping)
    sigma = geometry.sigma[columns][:, columns]
    for i in range(4):
        exact = torch.linalg.solve(
            1.4 * sigma + damping[i] / 9 * torch.eye(len(columns), dtype=torch.float64), slope[i, columns]
        )
        torch.testing.assert_close(step[i, columns], exact, rtol=1e-6, atol=1e-9)
    others = [j for j in range(6) if j not in columns]
    assert (step[:, others] == 0).all()


def test_paid_is_the_pseudo_inverse_and_free_moves_cost_nothing():
    geometry, slope = made(given_sigma=False)
    damped = Damped(geometry, torch.arange(6), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(damped.paid(slope), slope @ torch.linalg.pinv(geometry.sigma))
    free = damped.free()
    assert free.shape == (6, 2)
    assert torch.linalg.matrix_rank(free) == 2
    assert (geometry.price(free.T) == 0).all()
    # with three of the columns alone, nothing is free: the directions need the others
    assert Damped(geometry, torch.tensor([0, 1, 2]), torch.ones(6, dtype=torch.float64)).free().shape == (6, 0)


def test_free_moves_of_a_given_sigma_whatever_the_units():
    geometry, _ = made(given_sigma=True)
    free = Damped(geometry, torch.arange(6), torch.logspace(3, -3, 6, dtype=torch.float64)).free()
    assert free.shape == (6, 2)
    size = (free.abs() * geometry.sigma.diagonal().sqrt()[:, None]).sum(0).square()
    assert (geometry.d_x(free.T) < 1e-24 * size).all()
