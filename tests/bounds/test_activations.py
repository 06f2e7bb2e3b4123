"""Activations lie between their lines, at every point of every interval."""

import pytest
import torch

from evenhand.bounds import activations
from evenhand.bounds.activations import IDENTITY, RELU, Kind, activate, lines, relaxation

KINDS = [kind for kind in vars(activations).values() if isinstance(kind, Kind)]


def intervals(count, seed):
    g = torch.Generator().manual_seed(seed)
    centre = 30 * torch.randn(count, generator=g, dtype=torch.float64) * torch.rand(count, generator=g).double() ** 3
    half = 10 ** (8 * torch.rand(count, generator=g, dtype=torch.float64) - 6)
    return centre - half, centre + half


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_lines_hold_at_every_point(kind):
    low, high = intervals(600, 0)
    found = lines(low, high, ((kind, len(low)),))
    share = torch.linspace(0, 1, 2001, dtype=torch.float64)[:, None]
    z = torch.cat(
        [low + (high - low) * share, torch.linspace(-8, 8, 801, dtype=torch.float64)[:, None].clamp(low, high)]
    )
    value, slack = kind.f(z), 1e-12 * (1 + z.abs())
    assert bool((value <= found.slope * z + found.offset + slack).all())
    assert bool((value >= found.under * z + found.floor - slack).all())


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in (RELU, IDENTITY)], ids=lambda kind: kind.name)
def test_lines_close_with_the_square_of_the_interval(kind):
    middle = torch.linspace(-3, 3, 7, dtype=torch.float64)
    gaps = []
    for half in (0.4, 0.04):
        found = lines(middle - half, middle + half, ((kind, 7),))
        gaps.append(((found.slope - found.under) * middle + found.offset - found.floor).max())
    assert gaps[0] <= 1.2 * kind.bend * 0.8**2 / 8 + 1e-7
    assert gaps[1] <= 0.02 * gaps[0] + 1e-7


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in (RELU, IDENTITY)], ids=lambda kind: kind.name)
def test_it_bends_no_more_than_it_says(kind):
    z = torch.linspace(-60, 60, 240_001, dtype=torch.float64)
    step = 5e-4
    second = (kind.f(z + step) - 2 * kind.f(z) + kind.f(z - step)) / step**2
    assert float(second.abs().max()) <= kind.bend + 1e-3 + (0.02 if kind.error > 1e-10 else 0)


def test_each_run_of_units_has_its_own_activation():
    z = torch.randn(5, 7, dtype=torch.float64)
    after = ((activations.TANH, 3), (RELU, 2), (IDENTITY, 2))
    torch.testing.assert_close(activate(z, after), torch.cat([z[:, :3].tanh(), z[:, 3:5].relu(), z[:, 5:]], 1))
    torch.testing.assert_close(activate(z, None), z.relu())
    found = lines(z - 1, z + 1, after)
    assert bool((found.slope[:, 5:] == 1).all() and (found.offset[:, 5:] == 0).all())
    slope, offset, under = relaxation(z[:, 3:5] - 1, z[:, 3:5] + 1)
    torch.testing.assert_close(found.slope[:, 3:5], slope)
    torch.testing.assert_close(found.offset[:, 3:5], offset)
    torch.testing.assert_close(found.under[:, 3:5], under)
