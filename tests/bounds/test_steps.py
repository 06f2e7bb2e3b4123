"""Activations as sums of units, against torch's own."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from evenhand.bounds.steps import FUNCTIONS, MODULES, function_of, is_known, name_of

Z = torch.linspace(-9, 9, 301, dtype=torch.float64)


def value(total, z):
    return total.constant + sum(unit.factor * unit.kind.f(unit.scale * z + unit.shift) for unit in total.units)


@pytest.mark.parametrize("kind", list(MODULES), ids=lambda kind: kind.__name__)
def test_modules(kind):
    module = kind().double().eval()
    torch.testing.assert_close(value(MODULES[kind](module), Z), module(Z).detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "module",
    [nn.ELU(0.7), nn.CELU(2.5), nn.Softplus(3.0), nn.GELU("tanh"), nn.Hardtanh(-2, 0.5), nn.LeakyReLU(0.3)],
    ids=str,
)
def test_modules_with_settings(module):
    torch.testing.assert_close(value(MODULES[type(module)](module), Z), module(Z), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"prelu"}))
def test_functions(name):
    own = getattr(F, name, None) or getattr(torch, name)
    given = {"min": -0.5, "max": 2.0} if name in ("clamp", "clip") else {}
    torch.testing.assert_close(value(FUNCTIONS[name][1](**given), Z), own(Z, **given), rtol=1e-9, atol=1e-8)


def test_clamping_on_one_side():
    for given in ({"min": -1.0}, {"max": 1.5}):
        torch.testing.assert_close(value(FUNCTIONS["clamp"][1](**given), Z), Z.clamp(**given))


def test_a_softplus_that_turns_straight_elsewhere_is_not_ours():
    assert MODULES[nn.Softplus](nn.Softplus(1.0, 5.0)) is None


def test_only_torchs_own_functions_are_known_by_name():
    def relu(x):
        return x

    assert all(is_known(target) for target in (torch.relu, F.gelu, "relu_"))
    assert not is_known(relu)
    assert name_of("relu_") == name_of(torch.relu) == "relu"
    assert function_of("add")(Z, 1.0)[0] == Z[0] + 1
