"""Ways uphill against closed forms, a linear programme and brute force; none ends below its start."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import nn

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.output_distances import squared_error
from evenhand.search.attack import Attack
from evenhand.search.climbs import along_free, climb, compensated, jump, jumps, worth
from evenhand.search.geometry import Geometry


def rise(h, h_other):
    """A gain that is linear in the outputs, to know the best move exactly."""
    return (h_other - h).sum(-1)


def linear(w):
    return lambda x: x @ w[:, None]


def attack(model, metric, box, distance=squared_error, differentiable=True):
    return Attack(model, Geometry(metric, box), distance, differentiable)


def random_sigma(d, seed=0):
    g = torch.Generator().manual_seed(seed)
    root = torch.randn(d, d, generator=g, dtype=torch.float64) @ torch.diag(torch.logspace(-1, 1, d).double())
    return root.T @ root


@pytest.mark.parametrize("differentiable", [True, False])
def test_the_best_move_of_a_linear_gain_is_found(differentiable):
    """sup of w.delta - lam delta^T Sigma delta is w^T Sigma^-1 w / (4 lam), far inside the box."""
    sigma, w = random_sigma(5), torch.arange(1.0, 6.0, dtype=torch.float64)
    searched = attack(linear(w), FairMetric(sigma=sigma), Box(-1e4, 1e4, d=5), rise, differentiable)
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = climb(searched, x, searched.h(x), x, 2.0, 40)
    value = worth(rise(searched.h(x), searched.h(found)), searched.d_x(found - x), 2.0)
    exact = (w @ torch.linalg.solve(sigma, w)) / 8
    torch.testing.assert_close(value, exact.expand(3), rtol=1e-4, atol=0)


@pytest.mark.parametrize("hull", [False, True])
def test_never_below_the_start_and_inside(hull):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 2)).double()
    box = Box([-1.0] * 3 + [0.0] * 4, [1.0] * 7, blocks=[(3, 4, 5)], binary=[6])
    searched = attack(net, FairMetric(torch.randn(7, 2, dtype=torch.float64)), box)
    x, start = (box.round(torch.rand(30, 7).double() * 2 - 1) for _ in range(2))
    h_x = searched.h(x)
    found = climb(searched, x, h_x, start, 0.3, 15, hull=hull)
    before, after = (worth(squared_error(h_x, searched.h(p)), searched.d_x(p - x), 0.3) for p in (start, found))
    assert (after >= before).all()
    assert (after > before + 1e-3).any()
    torch.testing.assert_close(box.project(found), found)
    if not hull:
        assert box.contains(found).all()
        torch.testing.assert_close(found[:, 3:], start[:, 3:], rtol=0, atol=0)
    alone = climb(searched, x[4:5], h_x[4:5], start[4:5], 0.3, 15, hull=hull)
    torch.testing.assert_close(alone, found[4:5], rtol=1e-6, atol=1e-8)


def test_along_free_moves_reaches_the_linear_programmes_optimum():
    """Of a linear gain: max w.(x + B c) with low <= x + B c <= high."""
    g = torch.Generator().manual_seed(3)
    metric = FairMetric(torch.randn(5, 2, generator=g, dtype=torch.float64))
    w = torch.randn(5, generator=g, dtype=torch.float64)
    searched = attack(linear(w), metric, Box(-1.0, 1.0, d=5), rise)
    x = 1.8 * torch.rand(12, 5, generator=g, dtype=torch.float64) - 0.9
    found = along_free(searched, searched.h(x), x, 12)
    assert (searched.d_x(found - x) == 0).all()
    assert searched.geometry.box.contains(found, tolerance=1e-12).all()
    basis = metric.directions.numpy()
    for i in range(12):
        limits = np.concatenate([1 - x[i].numpy(), 1 + x[i].numpy()])
        best = linprog(-(w.numpy() @ basis), A_ub=np.vstack([basis, -basis]), b_ub=limits, bounds=(None, None))
        assert float((found[i] - x[i]) @ w) == pytest.approx(-best.fun, rel=1e-6)


def test_a_jump_is_the_best_of_all_single_changes():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1)).double()
    box = Box(0.0, 1.0, blocks=[(1, 2, 3)], binary=[4, 5], d=6)
    searched = attack(net, FairMetric.euclidean(6, torch.float64), box)
    x = box.round(torch.rand(10, 6).double())
    found = jump(searched, x, searched.h(x), x, 0.01)
    for i in range(10):
        options = []
        for block, a, b in itertools.product(range(3), (0.0, 1.0), (0.0, 1.0)):
            other = x[i].clone()
            other[1:4] = torch.eye(3, dtype=torch.float64)[block]
            other[4], other[5] = a, b
            changed = int((other[1:4] != x[i, 1:4]).any()) + int(other[4] != x[i, 4]) + int(other[5] != x[i, 5])
            if changed <= 1:
                options.append(other)
        points = torch.stack(options)
        value = worth(
            squared_error(searched.h(x[i : i + 1]).expand(len(points), 1), searched.h(points)),
            searched.d_x(points - x[i]),
            0.01,
        )
        reached = worth(
            squared_error(searched.h(x[i : i + 1]), searched.h(found[i : i + 1])),
            searched.d_x(found[i : i + 1] - x[i]),
            0.01,
        )
        assert reached.item() == pytest.approx(value.max().item(), abs=1e-12)


def test_a_compensated_jump_costs_the_schur_complement():
    sigma = random_sigma(4, seed=2)
    box = Box([-1e5] * 3 + [0.0], [1e5] * 3 + [1.0], binary=[3])
    searched = attack(linear(torch.ones(4).double()), FairMetric(sigma=sigma), box)
    x = torch.zeros(1, 4, dtype=torch.float64)
    other = torch.tensor([[[0.0, 0.0, 0.0, 1.0]]], dtype=torch.float64)
    schur = sigma[3, 3] - sigma[3, :3] @ torch.linalg.solve(sigma[:3, :3], sigma[:3, 3])
    price = searched.d_x(compensated(searched, x, other) - x[:, None])
    assert price.item() == pytest.approx(schur.item(), rel=1e-5)
    assert jumps(searched, x, x).shape == (1, 4, 4)  # two values of one column, alone and compensated


def test_at_an_infinite_price_only_free_moves_are_worth_something():
    value = worth(torch.tensor([3.0, 2.0]), torch.tensor([1e-30, 0.0]), torch.inf)
    assert value.tolist() == [-torch.inf, 2.0]


def test_where_nothing_rises_nothing_moves():
    """A flat model: no slope, no damping to divide by, the hull's projection included."""
    box = Box([-1.0, 0.0, 0.0, 0.0], [1.0] * 4, blocks=[(1, 2, 3)])
    metric = FairMetric(torch.eye(4, dtype=torch.float64)[:, :1])
    flat = attack(lambda x: 0 * x[:, :1], metric, box)
    x = box.round(torch.rand(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    for hull in (False, True):
        torch.testing.assert_close(climb(flat, x, flat.h(x), x, 1.0, 5, hull=hull), x, rtol=0, atol=0)
