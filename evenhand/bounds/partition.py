"""A partition of Dom that all people share: far from a person the network is bounded piece by piece, once for all.

A piece is a box, cut further by the signs of some ReLUs (halfspaces); on it the network lies between two linear
functions. For a person the supremum of d_Y - lam * d_X over a piece is a concave problem whose dual bounds it. The
pieces are cut where tuning people need it: halves of a column, or the two signs of a ReLU, whichever loses more.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from evenhand.bounds.activations import relaxation
from evenhand.bounds.chords import Sights, worst
from evenhand.bounds.layers import Layer
from evenhand.bounds.problem import Problem

AT_ONCE = 16  # people
CLOSER = 10  # rounds of a closer look at a person's worst pieces
PAIRS = 2048  # (person, piece) pairs looked at together
COLUMN_WEIGHT = 0.7  # halving a column loses this much of what splitting ReLUs of the same total would


@dataclass
class Pieces:
    """Pieces of Dom, one a row: low <= x' <= high, side x' + offset >= 0, and below <= f <= above there (K = 1)."""

    low: Tensor  # (m, d)
    high: Tensor
    sign: Tensor  # (m, H) of each ReLU: 1, -1, or 0 where it is not split
    above: Tensor  # (m, d)
    ceiling: Tensor  # (m,)
    below: Tensor
    floor: Tensor
    side: Tensor  # (m, q, d)
    offset: Tensor  # (m, q)
    parent: Tensor  # (m,) which piece of those that were split
    relu_loss: Tensor  # (m, H) what the relaxation of each ReLU may lose, in shares of the ranges that it widens
    column_loss: Tensor  # (m, d) the same, by the columns that make the ReLUs unsure

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, rows: Tensor) -> Pieces:
        return Pieces(*(getattr(self, field.name)[rows] for field in fields(self)))

    @staticmethod
    def join(parts: list[Pieces]) -> Pieces:
        q = max(part.side.shape[1] for part in parts)
        for part in parts:
            lacking = q - part.side.shape[1]
            if lacking:
                part.side = torch.nn.functional.pad(part.side, (0, 0, 0, lacking))
                part.offset = torch.nn.functional.pad(part.offset, (0, lacking))
        return Pieces(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Pieces)))


def whole(problem: Problem) -> Pieces:
    """Dom as one piece for each combination of pinned columns."""
    count = len(problem.pin_values)
    low, high = problem.box.low.repeat(count, 1), problem.box.high.repeat(count, 1)
    low[:, problem.pinned] = high[:, problem.pinned] = problem.pin_values
    return bounded(
        problem.layers, low, high, torch.zeros(count, sum(problem.widths), dtype=torch.float64), torch.arange(count)
    )


def bounded(layers: list[Layer], low: Tensor, high: Tensor, sign: Tensor, parent: Tensor) -> Pieces:
    """The pieces with their linear bounds; those that hold nobody are left out."""
    widest = max(layer.bias.shape[0] for layer in layers)
    chunk = max(1, 1_000_000 // (widest * max(widest, low.shape[1])))
    parts = [
        _bounded(layers, low[i : i + chunk], high[i : i + chunk], sign[i : i + chunk], parent[i : i + chunk])
        for i in range(0, len(low), chunk)
    ]
    return Pieces.join(parts)


def _bounded(layers: list[Layer], low: Tensor, high: Tensor, sign: Tensor, parent: Tensor) -> Pieces:
    n, d = low.shape
    side, offset = torch.zeros(n, 0, d, dtype=torch.float64), torch.zeros(n, 0, dtype=torch.float64)
    bounds: list[tuple[Tensor, Tensor]] = []
    reach: list[Tensor] = []  # |coefficients| of what enters each ReLU
    possible = torch.ones(n, dtype=torch.bool)
    first = 0
    lost = torch.zeros(n, sign.shape[1], dtype=torch.float64)
    for last, layer in enumerate(layers):
        width = layer.bias.shape[0]
        eye = torch.eye(width, dtype=torch.float64)[None]
        above, ceiling, loss_above = _backward(layers, last, eye, bounds)
        below, floor, loss_below = _backward(layers, last, -eye, bounds)
        above, below = above.expand(n, -1, -1), below.expand(n, -1, -1)
        ceiling, floor = ceiling.expand(n, -1), floor.expand(n, -1)
        top = supremum(above, ceiling, low, high, side, offset)
        bottom = torch.minimum(-supremum(below, floor, low, high, side, offset), top)
        final = last == len(layers) - 1
        here = sign[:, first : first + width] if not final else torch.ones(n, width, dtype=torch.float64)
        unit = torch.where(here != 0, 1 / (top - bottom).clamp(min=1e-300), 0.0)
        for i, (one, two) in enumerate(zip(loss_above, loss_below, strict=True)):
            start = sum(layer.bias.shape[0] for layer in layers[:i])
            lost[:, start : start + one.shape[2]] += ((one + two) * unit[..., None]).sum(1)
        if final:
            break
        first += width
        possible &= ~(((here > 0) & (top < 0)) | ((here < 0) & (bottom > 0))).any(1)
        bottom = torch.where(here > 0, bottom.clamp(min=0), bottom)
        top = torch.where(here < 0, top.clamp(max=0), top)
        bounds.append((bottom, torch.maximum(bottom, top)))
        reach.append(torch.maximum(above.abs(), below.abs()))
        # z >= 0 and z <= above . x + ceiling give above . x + ceiling >= 0; the other sign likewise
        halfspace = torch.where((here > 0)[..., None], above, below)
        more = torch.where(here > 0, ceiling, floor)
        side, offset = _active(side, offset, halfspace, more, here != 0)
    lost = torch.where(torch.isfinite(lost), lost, 0.0) * (sign == 0)
    shares = torch.cat(reach, 1) * (high - low)[:, None] if reach else torch.zeros(n, 0, d, dtype=torch.float64)
    shares = shares / shares.sum(-1, keepdim=True).clamp(min=1e-300)
    pieces = Pieces(
        low,
        high,
        sign,
        above[:, 0],
        ceiling[:, 0],
        -below[:, 0],
        -floor[:, 0],
        side,
        offset,
        parent,
        lost,
        (lost[..., None] * shares).sum(1),
    )
    return pieces[possible]


def _backward(
    layers: list[Layer], last: int, c: Tensor, bounds: list[tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """a, c0 with c . z_last <= a . x + c0, and what each ReLU's relaxation may lose in it, (N, m, H) by layer."""
    a, constant = c, torch.zeros(1, dtype=torch.float64)
    losses: list[Tensor] = []
    for i in range(last, 0, -1):
        constant = constant + a @ layers[i].bias
        a = a @ layers[i].weight
        low, high = bounds[i - 1]
        slope, offset, under = relaxation(low, high)
        up = a.clamp(min=0)
        losses.insert(0, a.abs() * offset[:, None])
        constant = constant + (up @ offset[..., None])[..., 0]
        a = up * slope[:, None] + (a - up) * under[:, None]
    return a @ layers[0].weight, constant + a @ layers[0].bias, losses


def _active(side: Tensor, offset: Tensor, more: Tensor, more_offset: Tensor, use: Tensor) -> tuple[Tensor, Tensor]:
    """The halfspaces with those of ``more`` that are in use; rows with fewer are filled up with 0 >= 0."""
    count = int(use.sum(1).max()) if use.numel() else 0
    if count == 0:
        return side, offset
    order = torch.argsort(use.to(torch.int8), dim=1, descending=True, stable=True)[:, :count]
    kept = use.gather(1, order)
    chosen = more.gather(1, order[..., None].expand(-1, -1, more.shape[2])) * kept[..., None]
    return torch.cat([side, chosen], 1), torch.cat([offset, more_offset.gather(1, order) * kept], 1)


def supremum(
    a: Tensor, c: Tensor, low: Tensor, high: Tensor, side: Tensor, offset: Tensor, iterations: int = 12
) -> Tensor:
    """sup of a . x + c over the box and its halfspaces, at most: (N, m, d), (N, m) -> (N, m). Any multiplier b >= 0 of
    the halfspaces gives a bound, sup over the box of (a + b side) . x + c + b . offset; subgradient steps find good
    ones."""
    best = c + _over_box(a, low, high)
    if side.shape[1] == 0:
        return best
    span = (high - low)[:, None]
    size = 1 / (side.abs() * span).sum(-1).clamp(min=1e-300)
    side, offset = (
        torch.where(size[..., None] < 1e200, side * size[..., None], 0.0),
        torch.where(size < 1e200, offset * size, 0.0),
    )
    step = (a.abs() * span).sum(-1)[..., None]
    b = torch.zeros(*a.shape[:2], side.shape[1], dtype=torch.float64)
    for k in range(iterations):
        g = a + b @ side
        x = torch.where(g > 0, high[:, None], low[:, None])
        best = torch.minimum(best, c + (g * x).sum(-1) + (b @ offset[..., None])[..., 0])
        b = (b - 1.5 / (k + 2) * step * (x @ side.transpose(1, 2) + offset[:, None])).clamp(min=0)
    return torch.minimum(best, c + _over_box(a + b @ side, low, high) + (b @ offset[..., None])[..., 0])


def _over_box(a: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return torch.where(a > 0, a * high[:, None], a * low[:, None]).sum(-1)


@dataclass(frozen=True)
class Views:
    """People as pieces see them: near each of them, within ``inner``, all is known to be below ``enough``."""

    x: Tensor  # (n, d)
    f_x: Tensor  # (n,)
    weight: Tensor  # (d,) Sigma's diagonal
    lam: float
    inner: Tensor  # (n,)
    enough: Tensor  # (n,)

    def values(self, pieces: Pieces) -> Tensor:
        """sup of d_Y - lam * d_X over each piece outside d_X < inner^2, at most: (n, m)."""
        n, m = len(self.x), len(pieces)
        found = [
            self.pairs(pieces, torch.arange(i, min(i + AT_ONCE, n)).repeat_interleave(m), torch.arange(m).repeat(k))[0]
            for i in range(0, n, AT_ONCE)
            for k in [min(AT_ONCE, n - i)]
        ]
        return torch.cat(found).reshape(n, m) if found else torch.zeros(0, m, dtype=torch.float64)

    def pairs(self, pieces: Pieces, person: Tensor, piece: Tensor, rounds: int = 0) -> tuple[Tensor, Tensor]:
        """The same for some (person, piece), with so many rounds of a closer look, and moves that may come near it.
        Work on a pair ends when its value is below what is enough."""
        x, inner, enough = self.x[person], self.inner[person], self.enough[person]
        low, high = pieces.low[piece] - x, pieces.high[piece] - x
        nearest = torch.minimum(torch.maximum(torch.zeros(1, dtype=torch.float64), low), high)
        cost = torch.maximum((nearest.square() * self.weight).sum(-1), inner.square())
        value, move = torch.full((len(person),), -torch.inf, dtype=torch.float64), torch.zeros_like(x)
        for slope, c, sense in ((pieces.above, pieces.ceiling, 1.0), (-pieces.below, -pieces.floor, -1.0)):
            a = slope[piece]
            at_x = c[piece] + (a * x).sum(1) - sense * self.f_x[person]
            top = (at_x + torch.where(a > 0, a * high, a * low).sum(-1)).clamp(min=0)
            quick, moves = top.square() - self.lam * cost, torch.zeros_like(x)
            open_ = (quick > enough).nonzero()[:, 0]
            for start in range(0, len(open_), PAIRS):
                rows = open_[start : start + PAIRS]
                side = pieces.side[piece[rows]]
                offset = pieces.offset[piece[rows]] + (side @ x[rows][..., None])[..., 0]
                apart = cost[rows].sqrt()
                seen = (a[rows], at_x[rows], top[rows], low[rows], high[rows], side, offset, apart, enough[rows])
                found, moves[rows] = worst(Sights(*seen, self.weight, self.lam), rounds)
                quick[rows] = torch.minimum(quick[rows], found)
            move = torch.where((quick > value)[:, None], moves, move)
            value = torch.maximum(value, quick)
        return value, move


class Refinement:
    """The pieces, cut further for each person on their own. What a cut gives does not depend on who asked for it, so
    the cuts are kept for the next person; how much is done for a person is fixed."""

    def __init__(self, layers: list[Layer], pieces: Pieces) -> None:
        self.layers, self.pieces = layers, pieces
        self.children: dict[int, list[int]] = {}

    def upper(self, views: Views, rounds: int, at_once: int) -> tuple[Tensor, Tensor]:
        """max over the pieces of ``Views.values``, (n,), and a point of the worst piece that may come near it, (n, d).

        A round cuts each person's worst pieces, and looks closer at those on which the network is linear.
        """
        n = len(views.x)
        values = views.values(self.pieces)
        person, piece = (values > views.enough[:, None]).nonzero(as_tuple=True)
        value, move = values[person, piece], torch.zeros(len(piece), views.x.shape[1], dtype=torch.float64)
        seen = torch.zeros_like(piece, dtype=torch.bool)
        done = values.masked_fill(values > views.enough[:, None], 0.0).amax(1).clamp(min=0)  # what needs no work
        for left in range(rounds, 0, -1):
            worst_ones = _rank(person, value, n) < at_once
            chosen = worst_ones & (self.pieces.relu_loss[piece].amax(1) > 0) & (left > 1)
            closer = worst_ones & ~chosen & ~seen
            if not bool(closer.any() or chosen.any()):
                break
            found, move[closer] = views.pairs(self.pieces, person[closer], piece[closer], CLOSER)
            value[closer] = torch.minimum(value[closer], found)
            seen |= closer
            of, new, parent = self._cut(person, piece, chosen)
            found, moves = views.pairs(self.pieces, of, new)
            found = torch.minimum(found, value[parent])
            person, piece = torch.cat([person[~chosen], of]), torch.cat([piece[~chosen], new])
            value, move = torch.cat([value[~chosen], found]), torch.cat([move[~chosen], moves])
            seen = torch.cat([seen[~chosen], torch.zeros_like(of, dtype=torch.bool)])
            still = value > views.enough[person]
            done = done.scatter_reduce(0, person[~still], value[~still], "amax")
            person, piece, value, seen, move = person[still], piece[still], value[still], seen[still], move[still]
        point = views.x.clone()
        top = _rank(person, value, n) == 0
        point[person[top]] += move[top]
        return done.scatter_reduce(0, person, value, "amax"), point

    def _cut(self, person: Tensor, piece: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The parts of the chosen (person, piece): whose they are, which pieces, and of which entry."""
        entries = chosen.nonzero()[:, 0]
        self._make(sorted(set(piece[entries].tolist())))
        born = [self.children[q] for q in piece[entries].tolist()]
        parent = entries.repeat_interleave(torch.tensor([len(b) for b in born], dtype=torch.long))
        return person[parent], torch.tensor([q for b in born for q in b], dtype=torch.long), parent

    def _make(self, ids: list[int]) -> None:
        fresh = [q for q in ids if q not in self.children]
        if not fresh:
            return
        new = split(self.layers, self.pieces[torch.tensor(fresh)])
        start = len(self.pieces)
        self.pieces = Pieces.join([self.pieces, new])
        for q in fresh:
            self.children[q] = []
        for i, parent in enumerate(new.parent.tolist()):
            self.children[fresh[parent]].append(start + i)


def _rank(person: Tensor, value: Tensor, n: int) -> Tensor:
    """Of each entry among its person's, the largest value first."""
    order = torch.argsort(value, descending=True, stable=True)
    order = order[torch.argsort(person[order], stable=True)]
    first = torch.searchsorted(person[order].contiguous(), torch.arange(n))
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order)) - first[person[order]]
    return rank


def split(layers: list[Layer], pieces: Pieces) -> Pieces:
    """Each piece as two: the two signs of a ReLU, or the halves of a column, whichever loses more in the relaxation."""
    rows = torch.arange(len(pieces))
    relu = pieces.relu_loss.max(1)
    column = pieces.column_loss.max(1)
    by_sign = relu.values > COLUMN_WEIGHT * column.values
    lower, upper, minus, plus = pieces.low.clone(), pieces.high.clone(), pieces.sign.clone(), pieces.sign.clone()
    middle = ((pieces.low + pieces.high) / 2)[rows, column.indices]
    lower[rows, column.indices] = torch.where(by_sign, lower[rows, column.indices], middle)
    upper[rows, column.indices] = torch.where(by_sign, upper[rows, column.indices], middle)
    minus[rows, relu.indices] = torch.where(by_sign, -1.0, minus[rows, relu.indices])
    plus[rows, relu.indices] = torch.where(by_sign, 1.0, plus[rows, relu.indices])
    low, high = torch.cat([pieces.low, lower]), torch.cat([upper, pieces.high])
    return bounded(layers, low, high, torch.cat([minus, plus]), rows.repeat(2))
