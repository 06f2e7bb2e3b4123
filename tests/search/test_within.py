"""Somebody similar is similar, possible, and found where it is known to be."""

import numpy as np
import pytest
import torch

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.output_distances import squared_error
from evenhand.search.geometry import Geometry
from evenhand.search.thorough import Attack
from evenhand.search.within import within


@pytest.mark.parametrize("eps", [0.0, 0.04])
def test_everybody_returned_is_within_the_budget_and_possible(eps):
    box = Box([0.0, -2.0, 0.0, 0.0], [1.0, 2.0, 1.0, 1.0], binary=[0], blocks=[(2, 3)])
    metric = FairMetric(torch.tensor([[1.0], [0.0], [0.0], [0.0]], dtype=torch.float64))
    weight = torch.tensor([[1.0], [2.0], [0.5], [0.0]], dtype=torch.float64)
    attack = Attack(lambda x: x @ weight, Geometry(metric, box), squared_error, differentiable=False)
    rng = np.random.default_rng(0)
    x = box.round(torch.from_numpy(rng.uniform(-2, 2, (30, 4))))
    found = box.round(torch.from_numpy(rng.uniform(-2, 2, (30, 7, 4))))
    similar = within(attack, x, found, eps)
    flat = similar.points.reshape(-1, 4)
    assert box.contains(flat).all()
    move = similar.points - x[:, None]
    assert (move[..., 1:].square().sum(-1) <= eps + 1e-12).all()  # the first column is free
    torch.testing.assert_close(similar.d_x, move[..., 1:].square().sum(-1), atol=1e-12, rtol=0)
    torch.testing.assert_close(similar.d_y, ((similar.points - x[:, None]) @ weight)[..., 0].square())
    torch.testing.assert_close(similar.h[:, 0], x @ weight)
    if eps > 0:  # both ways: the score can rise and fall
        change = similar.h[..., 0] - similar.h[:, :1, 0]
        inner = x[:, 1].abs() < 1.5
        assert (change.amax(1) > 0)[inner].all()
        assert (change.amin(1) < 0)[inner].all()
