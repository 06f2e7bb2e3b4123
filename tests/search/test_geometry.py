"""Prices: exact, free only where nothing but rounding is left, in any units."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.audit import audit
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.search.geometry import Geometry, null_basis


def oblique(d=5, k=2, seed=0):
    g = torch.Generator().manual_seed(seed)
    return FairMetric(torch.randn(d, k, generator=g, dtype=torch.float64))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), power=st.integers(-12, 12), given_sigma=st.booleans())
def test_moves_along_directions_are_free_in_any_units_and_no_others(seed, power, given_sigma):
    unit = 10.0**power
    metric = oblique(seed=seed)
    geometry = Geometry(FairMetric(sigma=metric.sigma) if given_sigma else metric, Box(-unit, unit, d=5))
    g = torch.Generator().manual_seed(seed)
    x = unit * (2 * torch.rand(20, 5, generator=g, dtype=torch.float64) - 1)
    along = x + unit * torch.randn(20, 2, generator=g, dtype=torch.float64) @ metric.directions.T
    assert (geometry.price(along - x) == 0).all()  # as they are written down, rounded
    across = 1e-9 * unit * torch.randn(20, 5, generator=g, dtype=torch.float64)
    exact = (across @ metric.sigma * across).sum(1)
    torch.testing.assert_close(geometry.price(across), exact, rtol=1e-5, atol=0.0)


def test_a_tiny_column_beside_a_huge_one_is_not_free():
    """Rounding of columns that did not move is no excuse."""
    metric = FairMetric(torch.tensor([[1.0], [1.0], [0.0]], dtype=torch.float64))
    geometry = Geometry(metric, Box([-1e9, -1e9, -1e-6], [1e9, 1e9, 1e-6]))
    move = torch.tensor([[0.0, 0.0, 1e-7], [5.0, 5.0, 0.0], [5.0, -5.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(geometry.price(move), torch.tensor([1e-14, 0.0, 50.0], dtype=torch.float64))


@pytest.mark.parametrize("power", [0, 7])
def test_the_null_space_does_not_depend_on_units(power):
    metric, unit = oblique(), torch.logspace(-power, power, 5, dtype=torch.float64)
    basis = null_basis(metric.sigma / unit[:, None] / unit)
    assert basis.shape == (5, 2)
    back = torch.linalg.qr(basis / unit[:, None] / (basis / unit[:, None]).norm(dim=0)).Q
    torch.testing.assert_close(back @ back.T, metric.directions @ metric.directions.T, atol=1e-6, rtol=0)


def test_people_of_nothing_but_free_binary_columns():
    """One column at least is left to move in, so that there is somewhere to search."""
    metric, box = FairMetric(torch.eye(2, dtype=torch.float64)), Box([0.0, 0.0], [1.0, 1.0], binary=[0, 1])
    geometry = Geometry(metric, box)
    assert len(geometry.free) == 1
    assert geometry.k == 1
    assert len(geometry.pin_values) == 2
    model = torch.nn.Linear(2, 2)
    x = torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]], dtype=torch.float64)
    everybody = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    h = model.double()(everybody).detach()
    h = h - h.mean(1, keepdim=True)
    exact = torch.cdist(h, h).square().amax(1)[[1, 3, 0]].mean() / 2  # of two logits
    assert audit(model, x, metric, eps=0.1, bounds=box).r_low == pytest.approx(float(exact))


@pytest.mark.parametrize(
    "metric", [FairMetric.euclidean(3), FairMetric(sigma=torch.diag(torch.tensor([0.2, 1.0, 4.0])))]
)
def test_where_nothing_is_free_no_move_is(metric):
    """However small: not even one of the size of rounding."""
    geometry = Geometry(metric, Box(-1.0, 1.0, d=3))
    move = 1e-17 * torch.eye(3, dtype=torch.float64)
    assert (geometry.price(move) > 0).all()
    assert (geometry.price(0 * move) == 0).all()
