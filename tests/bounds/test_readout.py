"""Probabilities from logits: the inequalities, on random logits."""

import pytest
import torch

from evenhand.bounds.layers import CannotCertify, Layer, forward
from evenhand.bounds.readout import readout
from evenhand.output_distances import (
    absolute_probability,
    centred,
    mean_squared_logits,
    squared_error,
    total_variation,
)


@pytest.mark.parametrize(
    ("distance", "k"),
    [
        (mean_squared_logits, 3),
        (squared_error, 1),
        (absolute_probability, 2),
        (total_variation, 2),
        (total_variation, 5),
    ],
)
def test_the_readout_bounds_the_distance(distance, k):
    g = torch.Generator().manual_seed(0)
    layers = [
        Layer(torch.randn(k, 4, generator=g, dtype=torch.float64), torch.randn(k, generator=g, dtype=torch.float64))
    ]
    read = readout(distance, layers)
    x, other = torch.randn(2, 5000, 4, generator=g, dtype=torch.float64) * 0.7
    d_y = distance(centred(forward(layers, x)), centred(forward(layers, other)))  # as it is judged
    squared = (forward(read.layers, x) - forward(read.layers, other)).square().sum(1)
    bound = torch.from_numpy(read.up_each(squared.numpy()))
    assert (d_y <= bound + 1e-12).all()
    assert d_y.mean().item() <= read.up(squared.mean().item()) + 1e-12  # also for means
    if k <= 3 and distance is not total_variation:
        assert (d_y / bound.clamp(min=1e-12)).max() > 0.95  # and it is not far off


def test_other_distances_are_refused():
    layers = [Layer(torch.eye(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))]
    with pytest.raises(CannotCertify, match="audit"):
        readout(lambda h, h_other: (h - h_other).abs().sum(-1), layers)
    with pytest.raises(ValueError, match="total_variation"):
        readout(absolute_probability, layers)
