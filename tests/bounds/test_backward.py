"""One step backwards: above what it bounds, and one product for shared functionals gives what single rows give."""

import torch

from bounds.nets import random_layers
from evenhand.bounds import backward as module
from evenhand.bounds.activations import GELU, activate, lines
from evenhand.bounds.backward import FEW, backward, mostly_on
from evenhand.bounds.layers import forward
from evenhand.bounds.partition import bounded, over_box


def case(after, m=FEW + 2, n=7, h=5, d=3):
    g = torch.Generator().manual_seed(0)

    def draw(*size):
        return torch.randn(*size, generator=g, dtype=torch.float64)

    weight, bias, a, y = draw(h, d), draw(h), draw(1, m, h), draw(n, 40, d)
    z = y @ weight.T + bias
    return a, lines(z.amin(1), z.amax(1), after), weight, bias, y, activate(z, after)


def test_above_the_activations_of_all_points():
    for after in (None, ((GELU, 5),)):
        a, unit, weight, bias, y, p = case(after)
        slopes, constant = backward(a, unit, weight, bias)
        assert (p @ a[0].T <= y @ slopes.transpose(1, 2) + constant[:, None] + 1e-12).all()


def test_shared_functionals_give_what_single_ones_give():
    for after in (None, ((GELU, 5),)):
        a, unit, weight, bias, _, _ = case(after)
        n = len(unit.slope)
        for at in (bias, bias + torch.arange(n, dtype=torch.float64)[:, None]):
            together = backward(a, unit, weight, at)
            alone = backward(a.expand(n, -1, -1).clone(), unit, weight, at)
            for one, two in zip(together, alone, strict=True):
                torch.testing.assert_close(one, two)


def widths(layers, half):
    """Of the range in which a network's output is known to stay on boxes around some points, and what it reaches."""
    g = torch.Generator().manual_seed(1)
    middle = torch.randn(30, 6, generator=g, dtype=torch.float64)
    low, high = middle - half, middle + half
    signs = torch.zeros(30, sum(layer.bias.shape[0] for layer in layers[:-1]), dtype=torch.int8)
    pieces = bounded(layers, low, high, signs, torch.arange(30))
    top = pieces.ceiling + over_box(pieces.above, low, high)
    bottom = pieces.floor - over_box(-pieces.below, low, high)
    inside = low[:, None] + (high - low)[:, None] * torch.rand(30, 500, 6, generator=g, dtype=torch.float64)
    reached = forward(layers, inside)[..., 0]
    assert (reached.amax(1) <= top + 1e-12).all()
    assert (reached.amin(1) >= bottom - 1e-12).all()
    return float((top - bottom).mean())


def test_deep_networks_stay_in_narrower_ranges_over_large_boxes(monkeypatch):
    for sizes in [(6, 10, 10, 10, 10, 1), (6, 30, 30, 1)]:
        layers = random_layers(sizes, 3)
        assert mostly_on(layers) == module.DEEP
        narrow = widths(layers, 3.0)
        monkeypatch.setattr(module, "DEEP", 1.0)
        assert narrow < 0.9 * widths(layers, 3.0)
        monkeypatch.undo()
    assert mostly_on(random_layers((6, 10, 1), 0)) == 1.0
