import pytest
import torch

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
