"""Domains: blocks of one-hot columns, and directions along which people move freely."""

import numpy as np
import pytest
import torch
from torch import nn

from certify.models import EPS, QUICK, A, C, linear_model, net, net_people, people
from evenhand.audit import audit
from evenhand.certify.certify import certify
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.output_distances import centred


def test_one_hot_blocks_hold_for_the_discrete_set():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    box = Box([-1.0, 0, 0, 0], [1.0, 1, 1, 1], blocks=[(1, 2, 3)])
    metric = FairMetric(torch.tensor([[1.0], [0.0], [0.0], [0.0]]))
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1, 1, (36, 1)), np.eye(3)[rng.integers(0, 3, 36)]], 1)
    cert = certify(model, x[:24], metric, EPS, box, x_tune=x[24:], distinct_people=True, **QUICK)
    axis = torch.linspace(-1, 1, 101)
    other = torch.cat([torch.cat([axis[:, None], torch.eye(3)[i].expand(101, 3)], 1) for i in range(3)])
    with torch.no_grad():
        rows = torch.tensor(x[:24], dtype=torch.float32)
        d_y = (centred(model(rows))[:, None] - centred(model(other))).square().mean(-1)
    d_x = metric.pairwise(torch.tensor(x[:24]), other)
    truth = min(lam * EPS + (d_y - lam * d_x).amax(1).mean().item() for lam in np.logspace(-2, 3, 200))
    assert 0.9 * truth <= cert.r_low <= cert.r_high
    assert truth <= cert.r_high + 1e-6
    with pytest.raises(ValueError, match="binary or one-hot"):
        certify(model, np.full((60, 4), 0.3), metric, EPS, box, x_tune=x[24:], **QUICK)


def test_linear_model_on_a_freed_domain_is_exact():
    """The coordinate along the free direction runs over its own range although the single columns end before:
    R = (sqrt(E s^2) + slope across * sqrt(eps))^2 with s the response to the farther end of that range."""
    along, across = torch.tensor([0.6, 0.8]).double(), torch.tensor([-0.8, 0.6]).double()
    metric = FairMetric(along[:, None])
    x = torch.tensor(people(200)) * 0.1
    domain = Box([-3.0, -3.0], [3.0, 3.0]).freed(metric.directions, torch.stack([-2 * along, 2 * along]))
    found = certify(linear_model(), x, metric, EPS, domain, x_tune=torch.tensor(people(40, 1)) * 0.1, **QUICK)
    weight = torch.tensor([A, C]).double()
    s = (weight @ along).abs() * (2 + (x @ along).abs())
    expected = float((s.square().mean().sqrt() + (weight @ across).abs() * EPS**0.5) ** 2)
    assert found.r_low <= expected * 1.0001
    assert expected <= found.r_high * 1.0001
    assert found.r_high <= 1.1 * found.r_low
    narrow = certify(linear_model(), x, metric, EPS, domain.box, x_tune=torch.tensor(people(40, 1)) * 0.1, **QUICK)
    assert narrow.r_low > 0


def test_no_point_of_a_freed_domain_is_above_the_bound_of_a_net():
    model, x = net().double(), torch.tensor(net_people(30))
    metric = FairMetric(torch.tensor([[1.0, 0.0], [0.0, 0.8], [0.0, -0.6]]).double())
    domain = Box(-torch.ones(3), torch.ones(3), binary=[0]).freed(metric.directions, 2 * x)
    assert domain.high[1] > 1.2  # wider than the box
    found = certify(model, x, metric, EPS, domain, x_tune=torch.tensor(net_people(30, 1)), **QUICK)
    searched = audit(model, x, metric, EPS, domain)
    assert searched.r_low <= found.r_high
    tried = domain.round(4 * torch.randn(4000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    with torch.no_grad():
        h, h_tried = (out - out.mean(-1, keepdim=True) for out in (model(x), model(tried)))  # as classes are judged
    d_y = (h[:, None] - h_tried[None]).square().mean(-1)
    d_x = metric.pairwise(x, tried)
    assert float((d_y - found.lam * d_x).amax(1).mean() + found.lam * EPS) <= found.r_high


def test_where_nothing_costs_anything_everybody_is_similar():
    """R(h) is then the mean over people of the largest d_Y to anybody in Dom, whatever eps is."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    x = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    found = certify(model, x[:40], FairMetric(sigma=torch.zeros(2, 2)), 0.01, (-1.0, 1.0), x[40:])
    line = torch.linspace(-1, 1, 201, dtype=torch.float64)
    with torch.no_grad():
        everywhere, own = model(torch.cartesian_prod(line, line)), model(torch.tensor(x[:40]))
    truth = float(torch.maximum((everywhere.max() - own) ** 2, (own - everywhere.min()) ** 2).mean())
    assert 0.98 * truth <= found.r_low <= 1.001 * truth
    assert 0.999 * truth <= found.r_high <= 1.1 * truth


def along(domain, x):
    """Everybody (n, d) at many places along the one free direction: (n, m, d)."""
    free = domain.free
    z = torch.linspace(float(domain.free_low), float(domain.free_high), 2001, dtype=torch.float64)
    return x[:, None] + (z[None, :, None] - (x @ free)[:, None]) * free[:, 0]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_free_in_a_freed_domain_is_found_at_eps_0(seed):
    """Moves along the free direction cost nothing, and every other move something: brute force along it is R(0)."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.uniform(size=(30, 3)))
    binary = [2] if seed % 2 else []
    x[:, binary] = x[:, binary].round()
    metric = FairMetric([[1.0], [1.0], [0.5]])
    domain = Box(0.0, 1.0, d=3, binary=binary).freed(metric.directions, x)
    model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 2)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
        there = along(domain, x)
        assert domain.contains(there.flatten(0, 1)).all()
        d_y = (centred(model(there)) - centred(model(x))[:, None]).square().mean(-1).amax(1)
    assert audit(model, x, metric, 0.0, domain).r_low >= 0.98 * d_y.mean()
    other = torch.from_numpy(rng.uniform(size=(20, 3)))
    other[:, binary] = other[:, binary].round()
    other = domain.round(other)
    found = certify(model, x, metric, 0.0, domain, x_tune=other, **QUICK)
    assert 0.98 * d_y.mean() <= found.r_low <= found.r_high
    assert d_y.mean() <= found.r_high
