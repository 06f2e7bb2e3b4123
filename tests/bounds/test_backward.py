"""One step backwards: above what it bounds, and one product for shared functionals gives what single rows give."""

import torch

from evenhand.bounds.activations import GELU, activate, lines
from evenhand.bounds.backward import FEW, backward


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
