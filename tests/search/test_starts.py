"""Starts: possible people, of the prices they were made for."""

from dataclasses import replace

import torch
from torch import nn

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.output_distances import mean_squared_logits
from evenhand.search.attack import Attack
from evenhand.search.geometry import Geometry
from evenhand.search.starts import PRICES, _free, _nearest, _noise, _paid, _pins, starts


def made(box=None, k=1, d=6):
    g = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(d, 10), nn.ReLU(), nn.Linear(10, 2)).double()
    metric = FairMetric(torch.randn(d, k, generator=g, dtype=torch.float64))
    return Attack(model, Geometry(metric, box or Box(-50.0, 50.0, d=d)), mean_squared_logits, True)


def people(n, attack, size=1.0):
    g = torch.Generator().manual_seed(1)
    return attack.geometry.box.round(size * torch.randn(n, attack.geometry.d, generator=g, dtype=torch.float64))


def test_all_are_possible_people():
    box = Box([-1.0, -1.0, 0.0, 0.0, 0.0, 0.0], [1.0] * 6, blocks=[(2, 3, 4)], binary=[5])
    attack = made(box, k=2)
    x = people(8, attack)
    attack = attack.tuned(people(20, attack))
    families = starts(attack, x, attack.h(x), 0.01)
    assert len(families) >= 5
    for family in families:
        assert box.contains(family.reshape(-1, 6)).all()


def test_steps_along_the_slope_cost_what_they_should_and_none_of_that_price_does_more():
    attack = made()
    w = torch.arange(1.0, 7.0, dtype=torch.float64)
    attack = replace(attack, outputs=lambda rows: rows @ w[:, None])
    x = people(8, attack)
    points = _paid(attack, x, attack.output_slopes(x), 0.01)
    expected = 0.01 * torch.tensor(PRICES, dtype=torch.float64).repeat_interleave(2)
    d_y, d_x = attack.distances(x, points)
    torch.testing.assert_close(d_x, expected.expand(8, -1))
    sigma = attack.geometry.sigma  # max of (w.delta)^2 over delta^T Sigma delta = p without free moves: p w^T Sigma^+ w
    torch.testing.assert_close(d_y, (expected * (w @ torch.linalg.pinv(sigma) @ w)).expand(8, -1))


def test_free_starts_cost_nothing():
    attack = made(Box(-2.0, 2.0, d=6), k=2)
    x = people(8, attack, 0.5)
    points = _free(attack, x, attack.h(x), attack.output_slopes(x))
    assert points.shape[1] > 0
    assert (attack.d_x(points - x[:, None]) == 0).all()
    assert (attack.distances(x, points)[0].amax(1) > 0).all()


def test_pins_neighbours_and_noise():
    box = Box([0.0] * 6, [1.0] * 6, binary=[0, 1])
    attack = Attack(
        made().outputs, Geometry(FairMetric(torch.eye(6, dtype=torch.float64)[:, :2]), box), mean_squared_logits, True
    )
    x = people(5, attack)
    pins = _pins(attack, x)
    assert sorted({tuple(row[:2].tolist()) for row in pins[0]}) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    others = people(30, attack)
    near = _nearest(attack.tuned(others), x, count=1)[:, 0]
    exact = attack.geometry.d_x(others[None] - x[:, None]).argmin(1)
    torch.testing.assert_close(attack.d_x(near - x), attack.d_x(others[exact] - x))
    wide = made()
    noise = _noise(wide, people(3, wide), 0.01)
    torch.testing.assert_close(wide.d_x(noise - people(3, wide)[:, None])[:, :4], torch.full((3, 4), 0.08).double())
