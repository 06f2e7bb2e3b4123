import copy

import pytest
import torch
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm

from evenhand.fair_metrics import FairMetric
from evenhand.regularizer import FairRegularizer
from evenhand.search.precision import Autocast, at_least_float32


def test_at_least_float32():
    for dtype, expected in [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float64, torch.float64),
    ]:
        assert at_least_float32(torch.zeros(1, dtype=dtype)).dtype == expected


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_on_and_off_inside_the_callers_autocast(dtype):
    a = torch.randn(4, 4)
    with torch.autocast("cpu", dtype=dtype):
        cast = Autocast(a.device)
        with cast.off():
            assert (a @ a).dtype == torch.float32
            with cast.on():
                assert (a @ a).dtype == dtype
        assert (a @ a).dtype == dtype


def test_nothing_happens_without_autocast():
    cast, a = Autocast(torch.device("cpu")), torch.randn(2, 2)
    with cast.off(), cast.on():
        assert (a @ a).dtype == torch.float32
    assert Autocast(torch.device("meta")).dtype is None


def test_a_pass_without_gradients_leaves_no_cast_weight_behind():
    """torch keeps cast weights for a whole autocast region: one made under no_grad would cost a later pass its slope"""
    layer, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.no_grad(), Autocast(x.device).on():
            layer(x)
        layer(x).sum().backward()
    assert layer.weight.grad is not None
    assert float(layer.weight.grad.abs().sum()) > 0


@pytest.mark.parametrize("looked_at_first", [True, False])
def test_a_pass_without_gradients_leaves_no_computed_weight_behind(looked_at_first):
    """torch keeps what parametrizations compute for a whole ``cached()`` region, also what no_grad computed."""
    torch.manual_seed(0)
    layers = (weight_norm(torch.nn.Linear(3, 8)), torch.nn.Tanh(), weight_norm(torch.nn.Linear(8, 2)))
    model, x = torch.nn.Sequential(*layers), torch.rand(6, 3)
    other = copy.deepcopy(model)  # at a model that is seen for the first time it is looked without gradients, too
    fair = FairRegularizer(FairMetric([[1.0], [0.0], [0.0]]), eps=0.1, generator=torch.Generator()).eval()
    state = fair.generator.get_state()
    expected = torch.autograd.grad(fair(other, x), list(other.parameters()))
    fair.generator.set_state(state)
    with parametrize.cached():
        if not looked_at_first:
            model(x)
        found = torch.autograd.grad(fair(model, x), list(model.parameters()))
        assert parametrize._cache_enabled == 1
    torch.testing.assert_close(found, expected)
