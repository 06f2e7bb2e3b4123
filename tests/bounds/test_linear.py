"""Linear bounds: below and above the network on their part, the network itself where it is linear."""

import torch

from bounds.nets import random_layers
from evenhand.bounds.activations import relaxation
from evenhand.bounds.layers import forward
from evenhand.bounds.linear import gain, linear_bounds
from evenhand.bounds.parts import SeparablePart

LAM = 1.5


def box_part(half, n=4, d=3):
    wide = torch.full((n, d), half, dtype=torch.float64)
    return SeparablePart(torch.ones(d, dtype=torch.float64), -wide, wide, torch.zeros(n), torch.full((n,), torch.inf))


def moves(half, n=4, d=3, count=4000):
    g = torch.Generator().manual_seed(3)
    return half * (2 * torch.rand(n, count, d, generator=g, dtype=torch.float64) - 1)


def test_relu_lies_between_its_relaxations():
    ends = torch.tensor([[-2.0, -1.0], [-1.0, 3.0], [-3.0, 1.0], [0.5, 2.0]], dtype=torch.float64)
    low, high = ends.unbind(1)
    slope, offset, under = relaxation(low, high)
    z = low + (high - low) * torch.linspace(0, 1, 101, dtype=torch.float64)[:, None]
    assert (z.relu() <= slope * z + offset + 1e-12).all()
    assert (z.relu() >= under * z - 1e-12).all()
    assert (slope * high + offset == high.relu()).all()  # the chord touches at the ends


def test_between_below_and_above_and_exact_without_kinks():
    for sizes in [(3, 6, 1), (3, 5, 5, 2)]:
        layers = random_layers(sizes, 1)
        x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        delta = moves(0.5)
        bounds = linear_bounds(layers, box_part(0.5), x)
        f = forward(layers, x[:, None] + delta)
        above = delta @ bounds.above.transpose(1, 2) + bounds.ceiling[:, None]
        below = delta @ bounds.below.transpose(1, 2) + bounds.floor[:, None]
        assert (f <= above + 1e-9).all()
        assert (f >= below - 1e-9).all()
        near = linear_bounds(layers, box_part(1e-9), x)
        torch.testing.assert_close(near.ceiling, forward(layers, x), rtol=1e-6, atol=1e-7)
        torch.testing.assert_close(near.above, near.below, rtol=1e-6, atol=1e-6)


def test_gain_is_above_all_that_is_reached_and_close_for_a_linear_model():
    for outputs in (1, 2):
        for sizes in [(3, outputs), (3, 6, outputs)]:
            layers = random_layers(sizes, 2)
            x = torch.zeros(4, 3, dtype=torch.float64)
            delta, part = moves(0.5, count=40_000), box_part(0.5)
            f_x = forward(layers, x)
            d_y = (forward(layers, x[:, None] + delta) - f_x[:, None]).square().sum(-1)
            reached = (d_y - LAM * delta.square().sum(-1)).amax(1).clamp(min=0)
            upper = gain(part, linear_bounds(layers, part, x), f_x, LAM)
            assert (upper >= reached - 1e-9).all()
            if sizes == (3, 1):
                assert (upper <= reached + 0.03 * d_y.amax(1)).all()
