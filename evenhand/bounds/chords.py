"""sup of t^2 - lam * d_X over pieces of Dom as people see them, at most.

t = a . delta + c is what the output may change by. t^2 lies below its chord on each interval of a cut of [0, top]; what
is left is concave, and the dual of the piece's halfspaces bounds it: every multiplier b >= 0 and every cut is sound.
The cut is made finer around the worst interval, and a closer look cuts the worst intervals further and further. Work is
spent on intervals whose bound is not yet below what is enough, and nobody's bound depends on who else is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

CHORDS = 6
FIRST = 20  # steps on the multipliers before the cut is made finer
AROUND_STEPS = 40
FAR_ABOVE = 6.0  # times what is enough: a finer cut would hardly ever do, and the piece will be cut further
AROUND = torch.tensor(
    [-1.5, -1, -0.6, -0.35, -0.2, -0.1, -0.03, 0.03, 0.1, 0.2, 0.35, 0.6, 1, 1.5], dtype=torch.float64
)
CUT, INTO, CUT_STEPS = 3, 3, 100  # a closer look: so many intervals a round, into so many parts, steps on each
BURST = 20  # steps between two looks at which intervals are still worth any
HOPELESS = 0.01  # less than this share of what lacks in a burst: no more are made
NUMBERS = 400_000  # of the halfspaces looked at together: few enough for the processor's cache


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


def worst(sights: Sights, rounds: int = 0) -> tuple[Tensor, Tensor]:
    """sup of t^2 - lam * d_X, at most, (N,), and a move that may come near it, (N, d): 0 without a closer look.

    rounds: of a closer look, where that is not below what is enough.
    """
    sights = sights.normal()
    edges = sights.top[:, None] * torch.arange(CHORDS + 1, dtype=torch.float64) / CHORDS
    b, length = torch.zeros_like(sights.offset), _step_length(sights)
    best, centre, b = _over_intervals(sights, edges, b, length, FIRST)
    far = (sights.enough > 0) & (best > FAR_ABOVE * sights.enough)
    rows = ((best > sights.enough) & ~far).nonzero()[:, 0]
    if len(rows):
        here = sights[rows]
        around = centre[rows, None] + here.top[:, None] / CHORDS * AROUND
        edges = torch.cat([edges[rows], around.clamp(min=0)], 1).minimum(here.top[:, None]).sort(1).values
        best[rows] = torch.minimum(best[rows], _over_intervals(here, edges, b[rows], length[rows], AROUND_STEPS)[0])
    rows, moves = (best > sights.enough).nonzero()[:, 0], torch.zeros_like(sights.a)
    if rounds and len(rows):
        found, moves[rows] = _cut_further(sights[rows], length[rows], b[rows], rounds)
        best[rows] = torch.minimum(best[rows], found)
    return best, moves


class _Intervals(NamedTuple):
    """Intervals [first, second] of t for each pair, the multipliers and the bound of each."""

    first: Tensor  # (N, E)
    second: Tensor
    b: Tensor  # (N, E, q)
    value: Tensor  # (N, E)

    def at(self, rows: Tensor) -> _Intervals:
        return _Intervals(*(each[rows] for each in self))

    def cut(self) -> tuple[_Intervals, _Intervals]:
        """The intervals without the worst ones, and these in parts."""
        order = torch.argsort(self.value, dim=1, descending=True, stable=True)
        few, others = self._taken(order[:, :CUT]), self._taken(order[:, CUT:])
        share = torch.arange(INTO + 1, dtype=torch.float64) / INTO
        edges = few.first[..., None] + (few.second - few.first)[..., None] * share
        n, count = few.value.shape
        b = few.b[:, :, None].expand(-1, -1, INTO, -1).reshape(n, count * INTO, -1)
        value = few.value[..., None].expand(-1, -1, INTO).reshape(n, -1)
        return others, _Intervals(edges[..., :-1].reshape(n, -1), edges[..., 1:].reshape(n, -1), b, value)

    def move(self, sights: Sights) -> Tensor:
        """What the multipliers of the worst interval lead to: (N, d)."""
        index = self.value.argmax(1, keepdim=True)
        first, second, b, _ = self._taken(index)
        g = (first + second) * sights.a + (b @ sights.side)[:, 0]
        return _best_move(g, sights.low, sights.high, sights.curve)

    def _taken(self, index: Tensor) -> _Intervals:
        b = self.b.gather(1, index[..., None].expand(-1, -1, self.b.shape[2]))
        return _Intervals(self.first.gather(1, index), self.second.gather(1, index), b, self.value.gather(1, index))


def _cut_further(sights: Sights, length: Tensor, b: Tensor, rounds: int) -> tuple[Tensor, Tensor]:
    """The worst intervals in parts, again and again, each with multipliers of its own; and where the worst is."""
    # up to here t^2 - lam * d_X is below what is enough
    begin = (sights.enough.clamp(min=0) + _apart(sights)).sqrt().minimum(sights.top)
    share = torch.linspace(0, 1, CHORDS + 1, dtype=torch.float64)
    edges = begin[:, None] + (sights.top - begin)[:, None] * share
    unknown = torch.full((len(begin), CHORDS), torch.inf, dtype=torch.float64)
    found = _Intervals(edges[:, :-1], edges[:, 1:], b[:, None].expand(-1, CHORDS, -1), unknown)
    found = _lowered(sights, length, found)
    best, rows = found.value.amax(1), torch.arange(len(begin))
    moves = found.move(sights)
    for _ in range(rounds):
        open_ = (best[rows] > sights.enough[rows]).nonzero()[:, 0]
        rows, found = rows[open_], found.at(open_)
        if len(rows) == 0:
            break
        kept, parts = found.cut()
        parts = _lowered(sights[rows], length[rows], parts)
        found = _Intervals(*(torch.cat(pair, 1) for pair in zip(kept, parts, strict=True)))
        best[rows], moves[rows] = found.value.amax(1), found.move(sights[rows])
    return torch.maximum(best, (begin.square() - _apart(sights)).minimum(sights.enough.clamp(min=0))), moves


def _lowered(sights: Sights, length: Tensor, found: _Intervals) -> _Intervals:
    """The intervals with better multipliers, where the bound is above what is enough."""
    first, second, b, value = found
    value, b = value.clone(), b.clone()
    pair, interval = (value > sights.enough[:, None]).nonzero(as_tuple=True)
    at_once = max(1, NUMBERS // max(1, sights.side.shape[1] * sights.side.shape[2]))
    for i in range(0, len(pair), at_once):
        rows, columns = pair[i : i + at_once], interval[i : i + at_once]
        between = (first[rows, columns], second[rows, columns])
        lower, better = _descended(sights[rows], between, b[rows, columns], length[rows], CUT_STEPS)
        value[rows, columns] = torch.minimum(value[rows, columns], lower)
        b[rows, columns] = better
    return _Intervals(first, second, b, value)


def _step_length(sights: Sights) -> Tensor:
    """The dual's curvature along the multipliers is at most the inverse of this: (N, 1)."""
    paid = sights.weight > 0
    scaled = sights.side[..., paid] / (2 * sights.curve[paid]).sqrt()
    if scaled.shape[1] == 0:
        return torch.ones(len(scaled), 1, dtype=torch.float64)
    gram = scaled @ scaled.transpose(1, 2)
    size = gram.diagonal(dim1=1, dim2=2).sum(1, keepdim=True)
    size = torch.where(size > 0, size, torch.ones_like(size))  # where nothing that is charged for is seen any will do
    fourth = torch.linalg.matrix_power(gram / size[..., None], 4)  # |G| <= |G^4|_F^(1/4): nearer than sums of rows
    curvature = fourth.square().sum((1, 2))[:, None] ** (1 / 8)
    return 1 / (size * torch.where(curvature > 0, curvature, torch.ones_like(curvature)))


def _over_intervals(
    sights: Sights, edges: Tensor, b: Tensor, length: Tensor, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The largest bound of the intervals between the edges, the middle of that interval, its multipliers."""
    first, second = edges[:, :-1], edges[:, 1:]
    slope = first + second
    g, level = slope[..., None] * sights.a[:, None], slope * sights.c[:, None] - first * second
    if sights.side.shape[1]:
        g += b[:, None] @ sights.side
        level += (b * sights.offset).sum(1, keepdim=True)
    low, high = sights.low[:, None], sights.high[:, None]
    value = torch.minimum(_highest(g, low, high, sights.curve) + level, second.square() - _apart(sights)[:, None])
    open_ = (value > sights.enough[:, None]).nonzero(as_tuple=True)
    shared = _shared(sights, g[open_], sights.low[open_[0]], sights.high[open_[0]])
    value[open_] = torch.minimum(value[open_], shared + level[open_] - 0.5 * _apart(sights)[open_[0]])
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
    best, last, rows = second.square() - _apart(sights), b.clone(), torch.arange(len(b))
    light = _Light(sights, (first + second)[:, None] * sights.a, b, length)
    constant = (first + second) * sights.c - first * second
    while steps > 0 and len(rows):
        for _ in range(min(BURST, steps)):
            light.step()
        steps -= BURST
        before, here = best[rows], sights[rows]
        value = torch.full_like(before, torch.inf)
        for multipliers in (light.best, light.b):
            b = multipliers.T.double().nan_to_num(0.0, 0.0, 0.0)
            g = (first + second)[rows, None] * here.a + (b[:, :, None] * here.side).sum(1)
            shared = _shared(here, g, here.low, here.high) - 0.5 * _apart(here)
            alone = _highest(g, here.low, here.high, here.curve)
            value = torch.minimum(value, torch.minimum(alone, shared) + constant[rows] + (b * here.offset).sum(1))
        best[rows], last[rows] = torch.minimum(before, value), b
        lacking = best[rows] - here.enough
        kept = (lacking > 0) & (before - best[rows] > HOPELESS * lacking)
        rows = rows[kept]
        light.keep(kept)
    return best, last


class _Light:
    """The steps of ``_descended`` in float32, with one interval a column so that sums run over contiguous numbers:
    several times as fast as small matrix products. Any multipliers give a bound, so nothing rests on the digits."""

    def __init__(self, sights: Sights, g: Tensor, b: Tensor, length: Tensor) -> None:
        self.side = sights.side.permute(1, 2, 0).float().contiguous()  # (q, d, N)
        self.g, self.b, self.length, self.low, self.high, self.offset = (
            t.T.float().contiguous() for t in (g, b, length, sights.low, sights.high, sights.offset)
        )
        curve = sights.curve.float()[:, None]
        self.curve, self.steep = curve, 0.5 / curve.clamp(min=1e-30)  # what costs nothing goes to the end of its range
        self.y, self.momentum = self.b, torch.ones_like(self.length)
        self.best, self.least = self.b, torch.full_like(self.g[0], torch.inf)

    def step(self) -> None:
        g = self.g + (self.y[:, None] * self.side).sum(0)
        move = torch.minimum(torch.maximum(g * self.steep, self.low), self.high)
        value = (move * (g - self.curve * move)).sum(0) + (self.y * self.offset).sum(0)
        better = value < self.least
        self.least, self.best = torch.where(better, value, self.least), torch.where(better, self.y, self.best)
        new = (self.y - self.length * ((self.side * move).sum(1) + self.offset)).clamp_(min=0)
        change = new - self.b
        against = ((self.y - new) * change).sum(0, keepdim=True) > 0  # momentum that points uphill starts anew
        momentum = torch.where(against, 1.0, self.momentum)
        later = (1 + (1 + 4 * momentum.square()).sqrt()) / 2
        self.y = (new + (momentum - 1) / later * change).clamp_(min=0)
        self.b, self.momentum = new, later

    def keep(self, kept: Tensor) -> None:
        for name in ("side", "g", "b", "length", "low", "high", "offset", "y", "momentum", "best", "least"):
            setattr(self, name, getattr(self, name)[..., kept])


def _best_move(g: Tensor, low: Tensor, high: Tensor, curve: Tensor) -> Tensor:
    """The move in the box that is best for g . delta - curve . delta^2; where nothing is charged it goes to an end."""
    return (g * (0.5 / curve.clamp(min=1e-300))).clamp_(low, high)


def _highest(g: Tensor, low: Tensor, high: Tensor, curve: Tensor) -> Tensor:
    """max of g . delta - curve . delta^2 over the box."""
    move = _best_move(g, low, high, curve)
    worth = curve * move
    return torch.sub(g, worth, out=worth).mul_(move).sum(-1)


def _apart(sights: Sights) -> Tensor:
    """lam * d_X is at least this beyond the inner radius."""
    return sights.lam * sights.inner.square()


def _shared(sights: Sights, g: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Half of the price by distance; the other half is at least what the inner radius costs."""
    return _highest(g, low, high, 0.5 * sights.curve)
