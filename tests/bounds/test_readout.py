"""Probabilities from logits: the inequalities, on random logits."""

import pytest
import torch

from bounds.nets import random_layers
from evenhand.bounds.layers import CannotCertify, Layer, forward
from evenhand.bounds.readout import readout, squared_readout, voting_readout
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


def test_all_layers_but_the_last_stay_as_they_are():
    layers = random_layers((4, 5, 6, 3), 0)
    read = readout(mean_squared_logits, layers)
    x, other = torch.randn(2, 50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    squared = (forward(read.layers, x) - forward(read.layers, other)).square().sum(1)
    expected = mean_squared_logits(centred(forward(layers, x)), centred(forward(layers, other)))
    torch.testing.assert_close(squared, expected)


@pytest.mark.parametrize("classifier", [True, False])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("distance", [mean_squared_logits, squared_error, total_variation, absolute_probability])
def test_a_model_that_bounds_its_own_squared_change_is_read_soundly_and_tightly(distance, k, classifier):
    """d_Y(h, h') <= up(scale * |f - f'|^2) for every pair of outputs, and equal, or nearly so, for some."""
    probability = distance in (total_variation, absolute_probability)
    if (probability and not classifier) or (distance is absolute_probability and k > 1):
        with pytest.raises(CannotCertify, match=r"audit\(\) takes any"):
            squared_readout(distance, k, classifier)
        return
    read, scale = squared_readout(distance, k, classifier)
    g = torch.Generator().manual_seed(0)
    f = torch.randn(20_000, k, generator=g, dtype=torch.float64)
    if k > 2 and probability:
        f[:, 2:] -= 20.0  # nearly two classes: where probabilities change fastest
    f[:100] -= f[:100].mean(1, keepdim=True)
    f[:100, :2] = 0.0
    other = f.clone()
    step = 10.0 ** (-3 * torch.rand(20_000, 1, generator=g, dtype=torch.float64))
    other += step * torch.randn(20_000, k, generator=g, dtype=torch.float64)
    other[:100] = f[:100]
    other[:100, 0] += 1e-3
    if k > 1:
        other[:100, 1] -= 1e-3
    h, h_other = ((torch.cat([-t / 2, t / 2], 1) if classifier and k == 1 else t) for t in (f, other))
    d_y = distance(h, h_other)
    bound = torch.from_numpy(read.up_each(scale * (f - other).square().sum(1).numpy()))
    assert (d_y <= bound * (1 + 1e-9) + 1e-15).all()
    if probability:
        assert (d_y / bound).max() > 0.99
    else:
        torch.testing.assert_close(d_y, bound)


def test_votes_are_read_as_they_are():
    for distance, k in [(total_variation, 2), (total_variation, 5), (absolute_probability, 2)]:
        read = voting_readout(distance, k)
        assert read.up(0.3) == 0.3
        assert read.up(7.0) == 1.0
        assert read.up_each([0.2, 3.0]).tolist() == [0.2, 1.0]
    for distance, k in [(absolute_probability, 3), (absolute_probability, 1), (mean_squared_logits, 2)]:
        with pytest.raises(CannotCertify, match="models that vote"):
            voting_readout(distance, k)
