"""The whole search: in Dom, one row at a time, near what is known, the same in any units."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from bounds.nets import random_points, random_problem
from torch import nn

from evenhand.domain import Box
from evenhand.dual.pool import Pool
from evenhand.fair_metrics.metric import FairMetric
from evenhand.output_distances import mean_squared_logits, squared_error
from evenhand.search.geometry import Geometry
from evenhand.search.starts import _noise
from evenhand.search.thorough import LESS, Attack, candidates, leaner, plan


def value(attack, x, eps, lams=None):
    found = candidates(attack, x, eps, lams if lams is not None else plan(attack, x, eps))
    pool = Pool()
    pool.add(*(part.numpy() for part in attack.distances(x, found)))
    return pool.minimise(eps).value


@pytest.mark.parametrize("differentiable", [True, False])
@pytest.mark.parametrize("eps", [0.05, 0.0])
def test_candidates_are_possible_and_depend_on_one_row(differentiable, eps):
    problem = random_problem((5, 8, 2), k=1, seed=0)
    attack = Attack(problem.f, problem, squared_error, differentiable).tuned(random_points(problem, 20, 9))
    x = random_points(problem, 12, 0)
    lams = plan(attack, random_points(problem, 10, 1), eps)
    found = candidates(attack, x, eps, lams)
    assert problem.box.contains(found.reshape(-1, 5)).all()
    alone = attack.distances(x[3:4], candidates(attack, x[3:4], eps, lams))
    for together, by_itself in zip(attack.distances(x[3:4], found[3:4]), alone):
        torch.testing.assert_close(together, by_itself, rtol=1e-5, atol=1e-8)


def small_net(sigma_seed=0):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 3)).double()
    root = torch.randn(6, 6, dtype=torch.float64) @ torch.diag(torch.logspace(-1, 1, 6).double())
    return net, FairMetric(sigma=root.T @ root), Box(-2.0, 2.0, d=6), torch.randn(24, 6).double().clamp(-2, 2)


def test_more_effort_finds_little_more_and_a_black_box_hides_little():
    net, metric, box, x = small_net()
    attack = Attack(net, Geometry(metric, box), mean_squared_logits, True).tuned(x)
    usual, black_box = value(attack, x, 0.05), value(replace(attack, differentiable=False), x, 0.05)
    harder = value(replace(attack, effort=4.0), x, 0.05)
    assert usual >= 0.97 * harder
    assert black_box >= 0.95 * harder


@pytest.mark.parametrize("units", ["columns", "tiny", "huge", "outputs"])
def test_other_units_give_the_same_value(units):
    net, metric, box, x = small_net()
    usual = value(Attack(net, Geometry(metric, box), mean_squared_logits, True).tuned(x), x, 0.05)
    outputs = 1e9 if units == "outputs" else 1.0
    unit = {"tiny": torch.full((6,), 1e-7), "huge": torch.full((6,), 1e7), "outputs": torch.ones(6)}.get(
        units, torch.logspace(-7, 7, 6)
    )
    unit = unit.double()

    def model(rows):
        return outputs * net(rows / unit)

    other = FairMetric(sigma=metric.sigma / unit[:, None] / unit)
    attack = Attack(model, Geometry(other, Box(-2 * unit, 2 * unit)), mean_squared_logits, True).tuned(x * unit)
    assert value(attack, x * unit, 0.05) == pytest.approx(outputs**2 * usual, rel=0.01)


@pytest.mark.parametrize("unit", [1e-7, 1e7])
def test_a_euclidean_metric_in_other_units(unit):
    """h = w x: R = w^2 eps whatever the units, if eps is counted in them."""
    attack = Attack(
        lambda rows: 3.0 * rows[:, :1] / unit,
        Geometry(FairMetric.euclidean(2, torch.float64), Box(-9 * unit, 9 * unit, d=2)),
        squared_error,
        True,
    )
    x = unit * torch.tensor(np.random.default_rng(0).uniform(-1, 1, (20, 2)))
    found = value(attack.tuned(x), x, 0.04 * unit**2)
    assert 0.99 * 9 * 0.04 <= found <= 9 * 0.04 * (1 + 1e-9)


def test_the_lam_that_matters_comes_last():
    """Of h = a x_0 + c x_1, x_0 free in [-1, 1]: lam = (s + c sqrt(eps)) c / sqrt(eps), s the root of the mean of
    (a (1 + |x_0|))^2."""
    w = torch.tensor([[0.7], [0.5]], dtype=torch.float64)
    metric = FairMetric(torch.tensor([[1.0], [0.0]], dtype=torch.float64))
    attack = Attack(lambda x: x @ w, Geometry(metric, Box([-1.0, -9.0], [1.0, 9.0])), squared_error, True)
    x = torch.tensor(np.random.default_rng(0).uniform(-1, 1, (50, 2)))
    s = (0.7 * (1 + x[:, 0].abs())).square().mean().sqrt()
    for eps in (1e-4, 0.01, 1.0):
        assert plan(attack, x, eps)[-1] == pytest.approx(float((s + 0.5 * eps**0.5) * 0.5 / eps**0.5), rel=0.1)
    assert plan(attack, x, 0.0) == [torch.inf]


def test_many_people_are_searched_with_the_least_effort_that_finds_almost_as_much():
    problem = random_problem((6, 12, 2), k=1, seed=3)
    x = random_points(problem, 40, 5)
    attack = Attack(problem.f, problem, squared_error, True, effort=8.0).tuned(x)
    lams = plan(attack, x, 0.05)
    lean = leaner(attack, x, 0.05, lams)
    goal = 0.99 * value(attack, x, 0.05, lams)
    assert lean.effort < attack.effort
    assert value(lean, x, 0.05, lams) >= goal
    for effort in (e for e in LESS if e < lean.effort):
        assert value(replace(attack, effort=effort), x, 0.05, lams) < goal


def test_where_less_effort_finds_less_none_is_spared():
    """A spike that only noise of a later draw hits: with the usual sixteen draws it is found, with two it is not."""
    metric, box = FairMetric.euclidean(2, torch.float64), Box(-1.0, 1.0, d=2)
    x = torch.zeros(4, 2, dtype=torch.float64)
    blind = Attack(lambda rows: 0 * rows[:, :1], Geometry(metric, box), squared_error, False)
    late = _noise(blind, x, 0.05)[0, 12]

    def hit(rows):
        return ((rows - late).abs() < 1e-9).all(1, keepdim=True).double()

    spike = replace(blind, outputs=hit, stepwise=True)
    lams = plan(spike, x, 0.05)
    assert value(spike, x, 0.05, lams) > 0
    assert leaner(spike, x, 0.05, lams).effort == spike.effort
