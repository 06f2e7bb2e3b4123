"""The head in closed form gives what its layers give one after the other, with their gradients."""

import pytest
import torch
from torch import nn

from evenhand.search.head import NORMS, Head, beside_product, foldable

N, D, H = 9, 5, 6


def setting(norm):
    torch.manual_seed(0)
    norm, linear = norm(D).double().eval(), nn.Linear(D, H).double()
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    if isinstance(norm, nn.BatchNorm1d):
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    return norm, linear, torch.randn(N, D, dtype=torch.float64)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("norm", NORMS)
def test_value_and_gradients_are_those_of_the_layers(norm, beside):
    norm, linear, x = setting(norm)
    weights, shared = torch.randn(N, H, dtype=torch.float64), [*norm.parameters(), *linear.parameters()]
    x.requires_grad_(True)
    head = Head(linear, norm, beside).now()
    found, known = head.finished(head.walked(x), x), linear(norm(x))
    torch.testing.assert_close(found, known, rtol=1e-12, atol=1e-12)
    for a, b in zip(*(torch.autograd.grad((z * weights).sum(), [x, *shared]) for z in (found, known))):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("norm", NORMS)
def test_what_is_walked_moves_by_the_weight(norm):
    norm, linear, x = setting(norm)
    head, move = Head(linear, norm).now(), torch.randn(N, D, dtype=torch.float64)
    torch.testing.assert_close(head.walked(x + move), head.walked(x) + move @ head.weight.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_rows_far_from_zero_keep_their_digits_in_float32(norm):
    """Centred before the product, not after it: a thousand standard deviations away nothing is lost to speak of."""
    norm, linear, x = setting(norm)
    x = (x + 1000).float()
    if isinstance(norm, nn.BatchNorm1d):
        norm.running_mean += 1000
    exact = linear(norm(x.double()))
    head = Head(linear.float(), norm.float()).now()
    torch.testing.assert_close(head.finished(head.walked(x), x).double(), exact, rtol=1e-4, atol=2e-4)


def test_a_row_without_variance():
    norm, linear, _ = setting(nn.LayerNorm)
    x, head = torch.full((2, D), 3.0, dtype=torch.float64), Head(linear, norm).now()
    torch.testing.assert_close(head.finished(head.walked(x), x), linear(norm(x)))


def test_which_norms_can_be_folded():
    linear = nn.Linear(D, H)
    assert foldable(nn.LayerNorm(D), linear)
    assert foldable(nn.LayerNorm([D]), linear)
    assert not foldable(nn.LayerNorm([2, D]), linear)
    assert not foldable(nn.LayerNorm(D + 1), linear)
    assert foldable(nn.BatchNorm1d(D).eval(), linear)
    assert not foldable(nn.BatchNorm1d(D), linear)
    assert not foldable(nn.BatchNorm1d(D, track_running_stats=False).eval(), linear)
    assert not foldable(nn.BatchNorm1d(D + 1).eval(), linear)
    assert not foldable(nn.GroupNorm(1, D), linear)
    assert not foldable(type("Own", (nn.LayerNorm,), {})(D), linear)


def test_the_numbers_of_a_head():
    norm, linear, _ = setting(nn.BatchNorm1d)
    assert len(Head(linear).tensors()) == 2
    assert len(Head(linear, norm).tensors()) == 6  # without the count of batches
    assert all(t.is_floating_point() for t in Head(linear, norm).tensors())


def test_beside_product_puts_individuals_next_to_each_other():
    _, linear, x = setting(nn.LayerNorm)
    z = beside_product(x, linear.weight, linear.bias)
    torch.testing.assert_close(z, linear(x))
    assert z.stride() == (1, N)
    torch.testing.assert_close(beside_product(x, linear.weight, None), x @ linear.weight.T)
