"""The supremum over a box against points of it, a fine grid of t, and chords; and columns that cost next to nothing."""

import itertools

import pytest
import torch

from evenhand.bounds.chords import Sights, worst
from evenhand.bounds.path import along_path

N, D = 60, 5


def problems(seed, spread=1.0):
    g = torch.Generator().manual_seed(seed)

    def draw(*size):
        return torch.randn(*size, generator=g, dtype=torch.float64)

    low = draw(N, D) - 0.5
    high = low + 2 * torch.rand(N, D, generator=g, dtype=torch.float64)
    curve = 10 ** (spread * (torch.rand(D, generator=g, dtype=torch.float64) - 0.5))
    curve[1] = 0.0
    a = draw(N, D)
    a[:, 2] = 0.0
    return a, draw(N), low, high, curve, torch.rand(N, generator=g, dtype=torch.float64)


def worth(a, c, curve, apart, delta):
    """t^2 - max(price, apart) of moves (N, M, D), -inf where t < 0."""
    t = (a[:, None] * delta).sum(-1) + c[:, None]
    value = t.square() - torch.maximum((curve * delta.square()).sum(-1), apart[:, None])
    return torch.where(t >= 0, value, -torch.inf)


@pytest.mark.parametrize("spread", [1.0, 6.0, 20.0])
def test_no_point_of_the_box_is_above(spread):
    for seed in range(3):
        a, c, low, high, curve, apart = problems(seed, spread)
        found, _ = along_path(a, c, low, high, curve, apart)
        g = torch.Generator().manual_seed(seed)
        inside = low[:, None] + (high - low)[:, None] * torch.rand(N, 3000, D, generator=g, dtype=torch.float64)
        corners = torch.tensor(list(itertools.product((0.0, 1.0), repeat=D)), dtype=torch.float64)
        corners = low[:, None] + (high - low)[:, None] * corners
        s = torch.logspace(-6, 6, 2000, dtype=torch.float64)[None, :, None]
        path = s * a[:, None] / (2 * curve.clamp(min=1e-300))
        path = torch.minimum(torch.maximum(path, low[:, None]), high[:, None])
        for points in (inside, corners, path):
            reached = worth(a, c, curve, apart, points).amax(1)
            assert (found >= reached - 1e-12 * (1 + reached.abs())).all()


def test_it_is_reached_where_it_says():
    for seed in range(5):
        a, c, low, high, curve, apart = problems(seed)
        found, s = along_path(a, c, low, high, curve, apart)
        move = (s[:, None] * a / (2 * curve.clamp(min=1e-300))).clamp(low, high)
        reached = worth(a, c, curve, apart, move[:, None])[:, 0]
        positive = found > 0
        assert positive.any()
        torch.testing.assert_close(found[positive], reached[positive], rtol=1e-9, atol=1e-11)


def test_chords_lie_above_it_and_close():
    a, c, low, high, curve, apart = problems(7)
    found, _ = along_path(a, c, low, high, curve, apart)
    top = (c + torch.where(a > 0, a * high, a * low).sum(1)).clamp(min=0)
    none = torch.zeros(N, 0, D, dtype=torch.float64), torch.zeros(N, 0, dtype=torch.float64)
    everything = torch.full((N,), -torch.inf, dtype=torch.float64)
    chords, _ = worst(Sights(a, c, top, low, high, *none, apart.sqrt(), everything, curve, 1.0))
    positive = found > 0
    assert (chords >= found - 1e-9)[positive].all()
    assert (chords <= 1.02 * found + 0.02)[positive].all()


def test_a_box_that_is_a_point():
    a, c, low, _, curve, _ = problems(1)
    found, _ = along_path(a, c, low, low, curve, torch.zeros(N, dtype=torch.float64))
    exact = worth(a, c, curve, torch.zeros(N, dtype=torch.float64), low[:, None])[:, 0]
    here = exact > -torch.inf
    torch.testing.assert_close(found[here], exact[here])


def test_many_columns_of_very_unequal_prices():
    """Against the rate as a sum over the columns that move, at points of the path."""
    g = torch.Generator().manual_seed(3)
    n, d = 40, 60
    low = -torch.rand(n, d, generator=g, dtype=torch.float64)
    high = low + 2 * torch.rand(n, d, generator=g, dtype=torch.float64)
    curve = 10 ** (12 * torch.rand(d, generator=g, dtype=torch.float64) - 6)
    a = torch.randn(n, d, generator=g, dtype=torch.float64) * curve.sqrt() / d**0.5
    c, apart = 1e3 * torch.rand(n, generator=g, dtype=torch.float64), torch.zeros(n, dtype=torch.float64)
    found, s = along_path(a, c, low, high, curve, apart)
    grid = torch.cat([torch.logspace(-8, 8, 4000, dtype=torch.float64).expand(n, -1), s[:, None]], 1)
    path = (grid[..., None] * a[:, None] / (2 * curve)).clamp(low[:, None], high[:, None])
    reached = worth(a, c, curve, apart, path).amax(1)
    assert (found >= reached - 1e-11 * (1 + reached.abs())).all()
    positive = found > 0
    assert positive.sum() > 5
    torch.testing.assert_close(found[positive], reached[positive], rtol=1e-6, atol=1e-9)
