"""Long steps by tangents against an exact quadratic programme; none ends below its start or outside Dom."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from search.test_climbs import attack, linear, rise
from torch import nn

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.search import thorough
from evenhand.search.climbs import climb, worth
from evenhand.search.straight import farthest, straight

G = torch.Generator().manual_seed(5)
D, LAM = 12, 0.7
DIRECTIONS = torch.randn(D, 3, generator=G, dtype=torch.float64)
SLOPE = 5 * torch.randn(D, generator=G, dtype=torch.float64)
BOX = Box(-1.0, 1.0, d=D)


def test_the_worst_of_a_straight_model_is_that_of_the_quadratic_programme():
    searched = attack(linear(SLOPE), FairMetric(DIRECTIONS), BOX, rise)
    x = 2 * torch.rand(4, D, generator=G, dtype=torch.float64) - 1
    there = farthest(searched, x, x, SLOPE.expand(4, -1), LAM)
    assert BOX.contains(there).all()
    sigma = searched.geometry.sigma.numpy()
    for person, found in zip(x.numpy(), there.numpy()):

        def loss(y, person=person):
            return LAM * (y - person) @ sigma @ (y - person) - SLOPE.numpy() @ (y - person)

        def gradient(y, person=person):
            return 2 * LAM * sigma @ (y - person) - SLOPE.numpy()

        exact = minimize(loss, person, jac=gradient, bounds=[(-1, 1)] * D, method="L-BFGS-B", tol=1e-14)
        at_x = loss(person)
        assert loss(found) - exact.fun < 0.01 * (at_x - exact.fun)
    assert len(np.unique(there.numpy().round(6))) > 2  # not all of it at the ends of ranges


def model(hidden=60, d=D):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, 2)).double()


def gain(searched, x, point):
    return worth(searched.d_y(searched.h(x), point), searched.d_x(point - x), LAM)


@pytest.mark.parametrize("box", [BOX, Box(-1.0, 1.0, binary=[1, 4], d=D)])
def test_never_below_the_start_inside_and_other_columns_stay(box):
    searched = attack(model(), FairMetric(DIRECTIONS), box)
    x, start = (box.round(2 * torch.rand(20, D, generator=G, dtype=torch.float64) - 1) for _ in range(2))
    found = straight(searched, x, searched.h(x), start, LAM, 5)
    assert (gain(searched, x, found) >= gain(searched, x, start)).all()
    assert box.contains(found).all()
    torch.testing.assert_close(found[:, list(box.binary)], start[:, list(box.binary)], rtol=0, atol=0)


def test_a_few_long_steps_lead_further_than_many_short_ones():
    d = 150
    directions = torch.randn(d, 8, generator=G, dtype=torch.float64)
    searched = attack(model(200, d), FairMetric(directions), Box(-1.0, 1.0, d=d))
    x = 1.2 * torch.rand(10, d, generator=G, dtype=torch.float64) - 0.6
    start = x + 0.01 * torch.randn(10, d, generator=G, dtype=torch.float64)
    short = climb(searched, x, searched.h(x), start, LAM, 30)
    far = straight(searched, x, searched.h(x), start, LAM, 6)
    assert gain(searched, x, far).mean() > 1.2 * gain(searched, x, short).mean()


def test_the_audit_takes_them(monkeypatch):
    searched = attack(model(), FairMetric(DIRECTIONS), BOX)
    x = 2 * torch.rand(6, D, generator=G, dtype=torch.float64) - 1
    asked = []
    monkeypatch.setattr(
        thorough, "straight", lambda attack, x, h_x, start, lam, rounds: asked.append(start.shape) or start
    )
    thorough.candidates(searched, x, 0.1, [LAM])
    assert asked
