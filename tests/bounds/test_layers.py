"""Folded layers against the module itself."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from evenhand.bounds.layers import CannotCertify, affine_layers, forward, pre_activations


def trained_norm(width, generator):
    norm = nn.BatchNorm1d(width)
    with torch.no_grad():
        norm.running_mean.normal_(generator=generator)
        norm.running_var.uniform_(0.5, 2, generator=generator)
        norm.weight.normal_(generator=generator)
        norm.bias.normal_(generator=generator)
    return norm


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.sampled_from(["linear", "relu", "norm", "dropout", "identity", "nested"]), max_size=7),
    st.integers(0, 9),
)
def test_folding_keeps_the_function(kinds, seed):
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    make = {
        "linear": lambda: nn.Linear(4, 4, bias=seed % 2 == 0),
        "relu": nn.ReLU,
        "norm": lambda: trained_norm(4, generator),
        "dropout": lambda: nn.Dropout(0.5),
        "identity": nn.Identity,
        "nested": lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()),
    }
    model = nn.Sequential(nn.Flatten(), nn.Linear(3, 4), *(make[kind]() for kind in kinds)).double().eval()
    layers = affine_layers(model)
    x = torch.randn(20, 3, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(forward(layers, x), model(x))
    entering, output = pre_activations(layers, x)
    assert len(entering) == len(layers) - 1
    torch.testing.assert_close(output, model(x))


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2), nn.Linear(2, 2)), "LayerNorm"),
        (lambda x: x, "function"),
        (nn.Sequential(nn.Dropout()), "no Linear"),
        (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, track_running_stats=False)), "running statistics"),
    ],
)
def test_other_models_are_refused_with_the_reason(model, named):
    with pytest.raises(CannotCertify, match=named):
        affine_layers(model)
