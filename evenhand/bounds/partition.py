"""A partition of Dom that all people share: far from a person the network is bounded piece by piece, once for all.

A piece is a box, cut further by the signs of some ReLUs (halfspaces); on it the network lies between two linear
functions."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from evenhand.bounds.activations import Lines, lines
from evenhand.bounds.backward import above_and_below, mostly_on
from evenhand.bounds.layers import Layer
from evenhand.bounds.problem import Problem

FEW_RELUS, FEW_UNSURE = 24, 8  # a network with few of them, or a piece on which few are unsure, is cut by their signs
HALFSPACE = 8  # times as long as a piece without any
NUMBERS = 1_000_000  # of functionals that are looked at together
COLUMN_WEIGHT = 0.7  # halving a column loses this much of what splitting ReLUs of the same total would


@dataclass
class Pieces:
    """Pieces of Dom, one a row: low <= x' <= high, side x' + offset >= 0, and below <= f <= above there (K = 1)."""

    low: Tensor  # (m, d)
    high: Tensor
    sign: Tensor  # (m, H) int8, of each ReLU: 1, -1, or 0 where it is not split
    above: Tensor  # (m, d)
    ceiling: Tensor  # (m,)
    below: Tensor
    floor: Tensor
    side: Tensor  # (m, q, d)
    offset: Tensor  # (m, q)
    parent: Tensor  # (m,) which piece of those that were split
    choice: Tensor  # (m,) where to cut it: a column, or d + a ReLU; -1 where the network is linear

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, rows: Tensor | slice) -> Pieces:
        return Pieces(*(getattr(self, field.name)[rows] for field in fields(self)))

    @property
    def cost(self) -> Tensor:
        """About how long it takes to look at each, halfspaces being dear: (m,)."""
        return 1 + HALFSPACE * (self.sign != 0).sum(1)

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
        problem.layers, low, high, torch.zeros(count, sum(problem.widths), dtype=torch.int8), torch.arange(count)
    )


def bounded(layers: list[Layer], low: Tensor, high: Tensor, sign: Tensor, parent: Tensor) -> Pieces:
    """The pieces with their linear bounds; those that hold nobody are left out."""
    widest = max(layer.bias.shape[0] for layer in layers)
    chunk = max(1, NUMBERS // (widest * max(widest, low.shape[1])))
    some = (sign != 0).any(1)  # signs take long, so those that have none are not kept waiting
    groups = [group for rows in (~some, some) for group in torch.split(rows.nonzero()[:, 0], chunk) if len(group)]
    groups = groups or [torch.arange(0)]
    parts = [_bounded(layers, low[rows], high[rows], sign[rows], parent[rows]) for rows in groups]
    return Pieces.join(parts)


def _bounded(layers: list[Layer], low: Tensor, high: Tensor, sign: Tensor, parent: Tensor) -> Pieces:
    n, d = low.shape
    side, offset = torch.zeros(n, 0, d, dtype=torch.float64), torch.zeros(n, 0, dtype=torch.float64)
    units: list[Lines] = []
    reach: list[Tensor] = []  # |coefficients| of what enters each ReLU
    possible = torch.ones(n, dtype=torch.bool)
    first = 0
    lost = torch.zeros(n, sign.shape[1], dtype=torch.float64)
    for last, layer in enumerate(layers):
        width = layer.bias.shape[0]
        final = last == len(layers) - 1
        here = sign[:, first : first + width] if not final else torch.ones(n, width, dtype=torch.int8)
        losses: list[Tensor] = []
        weighed = bool(here.any())  # what is lost on the way to a ReLU that is not split widens nothing that is kept
        a, c = above_and_below(layers, last, units, lost=losses if weighed else None)
        a, c = a.expand(n, -1, -1), c.expand(n, -1)
        reached = supremum(a, c, low, high, side, offset)
        top = reached[:, :width]
        bottom = torch.minimum(-reached[:, width:], top)
        unit = torch.where(here != 0, 1 / (top - bottom).clamp(min=1e-300), 0.0).repeat(1, 2)
        start = 0
        for loss in losses:
            end = start + loss.shape[2]
            lost[:, start:end] += (unit[:, None] @ loss)[:, 0]
            start = end
        above, below = a[:, :width], a[:, width:]
        ceiling, floor = c[:, :width], c[:, width:]
        if final:
            break
        first += width
        possible &= ~(((here > 0) & (top < 0)) | ((here < 0) & (bottom > 0))).any(1)
        bottom = torch.where(here > 0, bottom.clamp(min=0), bottom)
        top = torch.where(here < 0, top.clamp(max=0), top)
        units.append(lines(bottom, torch.maximum(bottom, top), None, mostly_on(layers)))
        reach.append(torch.maximum(above.abs(), below.abs()))
        if weighed:  # z >= 0 and z <= above . x + ceiling give above . x + ceiling >= 0; the other sign likewise
            halfspace = torch.where((here > 0)[..., None], above, below)
            more = torch.where(here > 0, ceiling, floor)
            side, offset = _active(side, offset, halfspace, more, here != 0)
    lost = torch.where(torch.isfinite(lost), lost, 0.0) * (sign == 0)
    shares = torch.cat(reach, 1) * (high - low)[:, None] if reach else torch.zeros(n, 0, d, dtype=torch.float64)
    shares = shares / shares.sum(-1, keepdim=True).clamp(min=1e-300)
    column_loss = (lost[..., None] * shares).sum(1)
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
        _where_to_cut(lost, column_loss, by_signs(layers)),
    )
    return pieces[possible]


def by_signs(layers: list[Layer]) -> bool:
    """Whether signs of ReLUs are worth a cut from the start: in one layer they are halfspaces of Dom, in a small
    network they are few."""
    return len(layers) <= 2 or sum(layer.bias.shape[0] for layer in layers[:-1]) <= FEW_RELUS


def _where_to_cut(relu_loss: Tensor, column_loss: Tensor, signs: bool) -> Tensor:
    """``Pieces.choice`` from what the relaxation of each ReLU may lose, in shares of the ranges that it widens, (m, H),
    and the same by the columns that make the ReLUs unsure, (m, d)."""
    relu, column = relu_loss.max(1), column_loss.max(1)
    by_sign = relu.values > COLUMN_WEIGHT * column.values
    if not signs:
        by_sign &= (relu_loss > 0).sum(1) <= FEW_UNSURE
    choice = torch.where(by_sign, column_loss.shape[1] + relu.indices, column.indices)
    return torch.where(relu.values > 0, choice, -1)


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
    best = c + over_box(a, low[:, None], high[:, None])
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
    return torch.minimum(
        best, c + over_box(a + b @ side, low[:, None], high[:, None]) + (b @ offset[..., None])[..., 0]
    )


def over_box(a: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """sup of a . x over low <= x <= high, by row."""
    return torch.where(a > 0, a * high, a * low).sum(-1)


def split(layers: list[Layer], pieces: Pieces) -> Pieces:
    """Each piece as two: the two signs of a ReLU, or the halves of a column."""
    d = pieces.low.shape[1]
    lower, upper, minus, plus = pieces.low.clone(), pieces.high.clone(), pieces.sign.clone(), pieces.sign.clone()
    rows = (pieces.choice < d).nonzero()[:, 0]
    column = pieces.choice[rows]
    lower[rows, column] = upper[rows, column] = ((pieces.low + pieces.high) / 2)[rows, column]
    rows = (pieces.choice >= d).nonzero()[:, 0]
    minus[rows, pieces.choice[rows] - d], plus[rows, pieces.choice[rows] - d] = -1, 1
    low, high = torch.cat([pieces.low, lower]), torch.cat([upper, pieces.high])
    return bounded(layers, low, high, torch.cat([minus, plus]), torch.arange(len(pieces)).repeat(2))
