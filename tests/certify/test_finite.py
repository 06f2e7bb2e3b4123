"""Finite sets against a linear program: the transport of people to their versions that spends at most eps."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import nn

from evenhand import FairMetric, certify
from evenhand.certify.finite import _rounding
from evenhand.fair_metrics.metric import free_share
from evenhand.output_distances import squared_error, total_variation
from evenhand.variations import Variations


def exact(d_y, d_x, eps):
    """max of mean sum_j p_ij d_Y_ij with mean sum_j p_ij d_X_ij <= eps and every row of p a distribution."""
    n, m = d_y.shape
    rows = np.kron(np.eye(n), np.ones(m))
    small = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        -d_y.ravel() / d_y.max(), A_ub=[d_x.ravel()], b_ub=[n * eps], A_eq=rows, b_eq=np.ones(n), options=small
    )
    return -found.fun * d_y.max() / n


@pytest.mark.parametrize("eps", [0.0, 0.02, 0.3, 50.0])
def test_the_sample_is_exact(eps):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 4, 3))
    values[:, 1] = values[:, 0] + [1.0, 0.0, 0.0]  # a version that costs nothing
    metric = FairMetric(torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64))
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    tuning = Variations(rng.normal(size=(20, 4, 3)), np.arange(20))
    cert = certify(
        model, Variations(values, np.arange(40)), metric, eps, x_tune=tuning, output_distance=squared_error, d_y_max=1e3
    )
    with torch.no_grad():
        h = model(torch.from_numpy(values))[..., 0].numpy()
    d_y, move = np.square(h - h[:, :1]), values - values[:, :1]
    truth = exact(d_y, np.square(move[..., 1:]).sum(-1), eps)
    assert cert.r_low == pytest.approx(truth, rel=1e-6, abs=1e-12)
    assert cert.r_high == pytest.approx(truth, rel=1e-5, abs=1e-9)
    assert cert.lower <= truth <= cert.upper < 500


def test_without_a_metric_versions_are_the_same_person():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    values = rng.normal(size=(60, 3, 2))
    model = nn.Linear(2, 2).double()
    cert = certify(model, Variations(values, np.arange(60)), None, 0.0, output_distance=total_variation)
    with torch.no_grad():
        p = model(torch.from_numpy(values)).softmax(-1)[..., 1].numpy()
    worst = np.abs(p - p[:, :1]).max(1)[cert.rows]
    assert cert.r_low == pytest.approx(worst.mean())
    np.testing.assert_allclose(cert.each_high, worst, atol=1e-12)
    np.testing.assert_allclose(cert.each_low, worst, atol=1e-12)  # at distance 0 <= eps
    decided = p[cert.rows] > 0.5
    assert cert.decisions.low == pytest.approx((decided != decided[:, :1]).any(1).mean())


def test_the_largest_distance_has_to_be_known():
    people = Variations(np.zeros((60, 2, 2)), np.arange(60))
    with pytest.raises(ValueError, match="give d_y_max"):
        certify(nn.Linear(2, 2), people, None, 0.0)
    loud = Variations(np.random.default_rng(0).normal(size=(60, 2, 2)) * 100, np.arange(60))
    with pytest.raises(ValueError, match="above d_y_max = 1e-06"):
        certify(nn.Linear(2, 1), loud, None, 0.0, output_distance=squared_error, d_y_max=1e-6)


def test_a_distance_that_is_just_the_largest_is_allowed():
    values = np.tile([[[0.0, 1.0], [2.0, 1.0]]], (30, 1, 1)) + np.arange(30.0)[:, None, None] * [1.0, 2.0]
    people, tuning = Variations(values, np.arange(30)), Variations(values + 100, np.arange(30))
    model = nn.Linear(2, 1).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 0.0]]))
    given = {"x_tune": tuning, "output_distance": squared_error, "d_y_max": 4.0}
    metric = FairMetric(torch.tensor([[1.0], [0.0]], dtype=torch.float64))
    cert = certify(model, people, metric, 0.0, **given)
    assert cert.r_low == cert.r_high == 4.0  # everybody may move by 2 at no price
    assert cert.free_share == pytest.approx(free_share(metric, values[:, 0]))
    assert cert.free_share == pytest.approx(1 / 5)


def test_the_originals_are_version_zero():
    """How much of the difference between people is free is about them, not about their versions."""
    values = np.random.default_rng(2).normal(size=(40, 2, 2))
    values[:, 1] *= [9.0, 1.0]
    metric = FairMetric(torch.tensor([[1.0], [0.0]], dtype=torch.float64))
    given = {"x_tune": Variations(values[:10], np.arange(10)), "output_distance": total_variation}
    cert = certify(nn.Linear(2, 2).double(), Variations(values[10:], np.arange(30)), metric, 0.1, **given)
    assert cert.free_share == pytest.approx(free_share(metric, values[10:, 0]))


def test_numbers_are_as_exact_as_their_kind():
    for kind in (np.float16, np.float32, np.float64):
        assert _rounding(np.dtype(kind)) == np.finfo(kind).eps / 2
    for kind in (torch.float16, torch.float32, torch.float64):
        assert _rounding(kind) == torch.finfo(kind).eps / 2
