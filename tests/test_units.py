"""The same people in other units, in another order, with other outputs: the same audit and the same bracket."""

import numpy as np
import pytest
import torch
from torch import nn

from evenhand import Box, FairMetric, audit, certify


def people(n=100, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 4))
    x[:, 0] = rng.integers(0, 2, n)
    return x


def net(seed=0, outputs=2):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, outputs)).double()


def in_units(model, units):
    """The same function of people whose columns are written in other units."""
    other = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, model[2].out_features)).double()
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        other[0].weight /= torch.as_tensor(units)
    return other


METRIC = torch.diag(torch.tensor([0.0, 1.0, 2.0, 0.5], dtype=torch.float64))  # the first column is free
FULL = METRIC + 0.2 * torch.ones(4, 4, dtype=torch.float64)  # nothing is free, and no axis is an axis of Sigma


def judged(model, x, sigma, units):
    """Audit and certificate of people written in these units."""
    scale = torch.as_tensor(units, dtype=torch.float64)
    metric = FairMetric(sigma=sigma / scale[:, None] / scale[None])
    box = Box(np.zeros(4), np.asarray(units, dtype=float), binary=[0])
    found = audit(in_units(model, units), x * units, metric, 0.01, box)
    return found, certify(in_units(model, units), x * units, metric, 0.01, box)


@pytest.mark.parametrize("sigma", [METRIC, FULL], ids=["free column", "full rank"])
def test_units_change_nothing(sigma):
    x, model = people(60), net()
    one, bracket = judged(model, x, sigma, [1.0, 1.0, 1.0, 1.0])
    for units in ([1e-7] * 4, [1.0, 1e5, 1e-3, 1e3]):
        found, other = judged(model, x, sigma, units)
        assert found.r_low == pytest.approx(one.r_low, rel=0.001)
        assert found.decisions.low == pytest.approx(one.decisions.low, abs=0.02)
        assert other.r_low == pytest.approx(bracket.r_low, rel=0.001)
        for name in ("r_high", "upper"):
            assert getattr(other, name) == pytest.approx(getattr(bracket, name), rel=0.01), (name, units)
        assert other.relative.high == pytest.approx(bracket.relative.high, rel=0.01)
    assert one.r_low <= bracket.r_high * 1.1  # other people of the same kind


def test_the_order_of_the_rows_changes_nothing_that_is_said():
    x, model, metric = people(), net(1), FairMetric(sigma=METRIC)
    box = Box(np.zeros(4), np.ones(4), binary=[0])
    tune, held_out = x[:40], x[40:]
    ordered = held_out[np.argsort(held_out[:, 1])]
    a, b = (
        certify(model, rows, metric, 0.01, box, tune, tune_rows=10, tune_steps=40, rounds=2)
        for rows in (held_out, ordered)
    )
    assert a.r_high == pytest.approx(b.r_high, rel=1e-9)
    assert a.upper == pytest.approx(b.upper, rel=0.05)  # a sequential bound, on people in a random order of their own


@pytest.mark.parametrize("factor", [1e-6, 20.0])
def test_scaled_outputs_change_no_headline(factor):
    x, model, metric = people(), net(2), FairMetric(sigma=METRIC)
    box = Box(np.zeros(4), np.ones(4), binary=[0])
    squeezed = net(2)
    with torch.no_grad():
        squeezed[2].weight *= factor
        squeezed[2].bias *= factor
    a, b = (certify(m, x, metric, 0.01, box, tune_rows=10, tune_steps=40, rounds=2) for m in (model, squeezed))
    assert b.r_high == pytest.approx(a.r_high * factor**2, rel=0.01)
    for name in ("relative", "decisions", "percentile"):
        for side in ("low", "high", "upper"):
            mine, theirs = getattr(getattr(a, name), side), getattr(getattr(b, name), side)
            assert theirs == pytest.approx(mine, rel=0.02, abs=1e-9), (name, side)
