"""sup of t^2 - lam * d_X over pieces of Dom as people see them, at most.

t = a . delta + c is what the output may change by. t^2 lies below its chord on each interval of a cut of [0, top]; what
is left is concave, and the dual of the piece's halfspaces bounds it: every multiplier b >= 0 and every cut is sound.
The cut is made finer around the worst interval. Work is spent on intervals whose bound is not yet below what is enough,
and nobody's bound depends on who else is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import torch
from torch import Tensor

CHORDS = 6
FIRST = 20  # steps on the multipliers before the cut is made finer
STAGES = ((1.0, 40), (0.1, 60), (0.1, 300))  # how far around the worst interval, and how many steps
AROUND = torch.tensor(
    [-1.5, -1, -0.6, -0.35, -0.2, -0.1, -0.03, 0.03, 0.1, 0.2, 0.35, 0.6, 1, 1.5], dtype=torch.float64
)
BURST = 20  # steps between two looks at which intervals are still worth any
HOPELESS = 0.01  # less than this share of what lacks in a burst: no more are made
NUMBERS = 200_000  # of the halfspaces looked at together, so that they stay in the processor's cache


@dataclass(frozen=True)
class Sights:
    """What a person sees of a piece, one a row: low <= delta <= high, side delta + offset >= 0, 0 <= t <= top."""

    a: Tensor  # (N, d)
    c: Tensor  # (N,)
    top: Tensor
    low: Tensor  # (N, d)
    high: Tensor
    side: Tensor  # (N, q, d)
    offset: Tensor  # (N, q)
    inner: Tensor  # (N,) nearer than this, sqrt(d_X) < inner, another bound holds
    enough: Tensor  # (N,) a value below it needs no work
    weight: Tensor  # (d,) Sigma's diagonal
    lam: float

    def __getitem__(self, rows: Tensor) -> Sights:
        each = [getattr(self, field.name) for field in fields(self)]
        return Sights(*(value[rows] for value in each[:-2]), *each[-2:])

    @cached_property
    def curve(self) -> Tensor:
        return self.lam * self.weight

    def normal(self) -> Sights:
        """The same with halfspaces of which each has curvature 1, without those that are none."""
        used = (self.side != 0).any(-1).any(0) if len(self.side) else torch.zeros(self.side.shape[1], dtype=torch.bool)
        side, offset = self.side[:, used], self.offset[:, used]
        paid = self.weight > 0
        size = (side[..., paid].square() / (2 * self.curve[paid])).sum(-1).sqrt()
        scale = torch.where(size > 0, 1 / size.clamp(min=1e-300), torch.ones_like(size))
        each = {field.name: getattr(self, field.name) for field in fields(self)}
        return Sights(**{**each, "side": side * scale[..., None], "offset": offset * scale})


def worst(sights: Sights, stages: int = len(STAGES)) -> Tensor:
    """sup of t^2 - lam * d_X, at most: (N,)."""
    sights = sights.normal()
    edges = sights.top[:, None] * torch.arange(CHORDS + 1, dtype=torch.float64) / CHORDS
    b, length = torch.zeros_like(sights.offset), _step_length(sights)
    best, centre, b = _over_intervals(sights, edges, b, length, FIRST)
    rows = torch.arange(len(best))
    for zoom, steps in STAGES[:stages]:
        open_ = best[rows] > sights.enough[rows]
        rows, edges, centre, b = rows[open_], edges[open_], centre[open_], b[open_]
        if len(rows) == 0:
            break
        here = sights[rows]
        around = centre[:, None] + zoom / CHORDS * here.top[:, None] * AROUND
        edges = torch.cat([edges, around.clamp(min=0)], 1).minimum(here.top[:, None]).sort(1).values
        found, centre, b = _over_intervals(here, edges, b, length[rows], steps)
        best[rows] = torch.minimum(best[rows], found)
    return best


def _step_length(sights: Sights) -> Tensor:
    """The dual's curvature along the multipliers is at most the inverse of this: (N, 1)."""
    paid = sights.weight > 0
    scaled = sights.side[..., paid] / (2 * sights.curve[paid]).sqrt()
    if scaled.shape[1] == 0:
        return torch.ones(len(scaled), 1, dtype=torch.float64)
    return 1 / (scaled @ scaled.transpose(1, 2)).abs().sum(-1).amax(1, keepdim=True).clamp(min=1e-300)


def _over_intervals(
    sights: Sights, edges: Tensor, b: Tensor, length: Tensor, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The largest bound of the intervals between the edges, the middle of that interval, its multipliers."""
    first, second = edges[:, :-1], edges[:, 1:]
    pull, constant = (b[:, None] @ sights.side)[:, 0], (b * sights.offset).sum(1)
    g = (first + second)[..., None] * sights.a[:, None] + pull[:, None]
    level = (first + second) * sights.c[:, None] - first * second + constant[:, None]
    low, high = sights.low[:, None], sights.high[:, None]
    value = torch.minimum(_moved(g, low, high, sights.curve)[1] + level, second.square() - _apart(sights)[:, None])
    value = torch.minimum(value, _shared(sights, g, low, high) + level - 0.5 * _apart(sights)[:, None])
    pair, interval = (value > sights.enough[:, None]).nonzero(as_tuple=True)
    found = b[pair]
    if sights.side.shape[1]:
        at_once = max(1, NUMBERS // (sights.side.shape[1] * sights.side.shape[2]))
        for i in range(0, len(pair), at_once):
            rows, columns = pair[i : i + at_once], interval[i : i + at_once]
            between, start = (first[rows, columns], second[rows, columns]), found[i : i + at_once]
            lower, found[i : i + at_once] = _descended(sights[rows], between, start, length[rows], steps)
            value[rows, columns] = torch.minimum(value[rows, columns], lower)
    largest = value.max(1)
    b = b.clone()
    where = largest.indices[pair] == interval
    b[pair[where]] = found[where]
    at = largest.indices[:, None]
    return largest.values, (first.gather(1, at) + second.gather(1, at))[:, 0] / 2, b


def _descended(
    sights: Sights, between: tuple[Tensor, Tensor], b: Tensor, length: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """One interval a row: the bound after accelerated projected gradient steps on the multipliers, and these."""
    first, second = between
    best, last = second.square() - _apart(sights), b.clone()
    rows, y, momentum = torch.arange(len(b)), b, torch.ones(len(b), 1, dtype=torch.float64)
    g0 = (first + second)[:, None] * sights.a
    level = (first + second) * sights.c - first * second
    while steps > 0 and len(rows):
        before, here = best[rows], sights[rows]
        value = torch.full_like(before, torch.inf)
        for _ in range(min(BURST, steps)):
            g = g0 + (y[:, None] @ here.side)[:, 0]
            move, sup = _moved(g, here.low, here.high, here.curve)
            value = torch.minimum(value, sup + level + (y * here.offset).sum(1))
            new = (y - length * ((here.side @ move[..., None])[..., 0] + here.offset)).clamp(min=0)
            against = ((y - new) * (new - b)).sum(1, keepdim=True) > 0  # momentum that points uphill starts anew
            momentum = torch.where(against, 1.0, momentum)
            later = (1 + (1 + 4 * momentum.square()).sqrt()) / 2
            y = (new + (momentum - 1) / later * (new - b)).clamp(min=0)
            b, momentum = new, later
        steps -= BURST
        g, constant = g0 + (b[:, None] @ here.side)[:, 0], level + (b * here.offset).sum(1)
        shared = _shared(here, g, here.low, here.high) - 0.5 * _apart(here)
        value = torch.minimum(value, torch.minimum(_moved(g, here.low, here.high, here.curve)[1], shared) + constant)
        best[rows], last[rows] = torch.minimum(before, value), b
        lacking = best[rows] - here.enough
        kept = (lacking > 0) & (before - best[rows] > HOPELESS * lacking)
        rows, y, b, momentum, length = rows[kept], y[kept], b[kept], momentum[kept], length[kept]
        g0, level = g0[kept], level[kept]
    return best, last


def _moved(g: Tensor, low: Tensor, high: Tensor, curve: Tensor) -> tuple[Tensor, Tensor]:
    """The move in the box that is best for g . delta - curve . delta^2, and that value."""
    free = torch.where(g > 0, high, low)
    move = torch.where(curve > 0, torch.minimum(torch.maximum(g / (2 * curve), low), high), free)
    return move, (g * move - curve * move.square()).sum(-1)


def _apart(sights: Sights) -> Tensor:
    """lam * d_X is at least this beyond the inner radius."""
    return sights.lam * sights.inner.square()


def _shared(sights: Sights, g: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Half of the price by distance; the other half is at least what the inner radius costs."""
    return _moved(g, low, high, 0.5 * sights.curve)[1]
