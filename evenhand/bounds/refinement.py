"""The pieces of Dom as people see them, cut further for each person on their own.

For a person the supremum of d_Y - lam * d_X over a piece is a concave problem whose dual bounds it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from evenhand.bounds.chords import Sights, worst
from evenhand.bounds.layers import Layer
from evenhand.bounds.partition import Pieces, over_box, split
from evenhand.bounds.path import along_path

AT_ONCE, BLOCK = 16, 2048  # people, and pieces
CLOSER = 10  # rounds of a closer look at a person's worst pieces
PAIRS = 1024  # (person, piece) pairs looked at together: few enough for the processor's cache
MOST_KEPT = 100_000  # pieces made for people who have been looked at


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
        found = torch.empty(len(self.x), len(pieces), dtype=torch.float64)
        roof = pieces.ceiling + over_box(pieces.above, pieces.low, pieces.high)
        base = pieces.floor - over_box(-pieces.below, pieces.low, pieces.high)
        low, high = pieces.low.T.contiguous(), pieces.high.T.contiguous()
        paid = self.weight.nonzero()[:, 0].tolist()
        for i in range(0, len(self.x), AT_ONCE):
            x, f_x = self.x[i : i + AT_ONCE], self.f_x[i : i + AT_ONCE, None]
            least = self.inner[i : i + AT_ONCE, None].square()
            for k in range(0, len(pieces), BLOCK):  # so that the numbers stay in the processor's cache
                block = slice(k, k + BLOCK)
                cost = torch.zeros(len(x), len(roof[block]), dtype=torch.float64)
                for j in paid:
                    at = x[:, j : j + 1]
                    away = torch.maximum(low[j, block] - at, at - high[j, block]).clamp_(min=0)
                    cost.addcmul_(away, away, value=float(self.weight[j]))
                change = torch.maximum(roof[block] - f_x, f_x - base[block]).clamp_(min=0)
                found[i : i + AT_ONCE, block] = change.square_() - self.lam * torch.maximum(cost, least)
            quick = found[i : i + AT_ONCE]
            person, piece = (quick > self.enough[i : i + AT_ONCE, None]).nonzero(as_tuple=True)
            quick[person, piece] = torch.minimum(self.pairs(pieces, i + person, piece)[0], quick[person, piece])
        return found

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
            for rows in torch.split(open_, PAIRS):
                box = (low[rows], high[rows])
                quick[rows], moves[rows] = self._along(a[rows], at_x[rows], box, cost[rows])
                rows = rows[quick[rows] > enough[rows]]
                side = pieces.side[piece[rows]]
                if not bool(side.any()):
                    continue
                offset = pieces.offset[piece[rows]] + (side @ x[rows][..., None])[..., 0]
                apart = cost[rows].sqrt()
                seen = (a[rows], at_x[rows], top[rows], low[rows], high[rows], side, offset, apart, enough[rows])
                found, nearer = worst(Sights(*seen, self.weight, self.lam), rounds)
                quick[rows] = torch.minimum(quick[rows], found)
                moves[rows] = nearer if rounds else moves[rows]
            move = torch.where((quick > value)[:, None], moves, move)
            value = torch.maximum(value, quick)
        return value, move

    def _along(self, a: Tensor, c: Tensor, box: tuple[Tensor, Tensor], cost: Tensor) -> tuple[Tensor, Tensor]:
        """The supremum over boxes, whatever halfspaces cut off, and the move that reaches it."""
        curve = self.lam * self.weight
        found, s = along_path(a, c, *box, curve, self.lam * cost)
        return found, (s[:, None] * a * (0.5 / curve.clamp(min=1e-300))).clamp(*box)


class Refinement:
    """The pieces, cut further for each person on their own. What a cut gives does not depend on who asked for it, so
    the cuts are kept for the next person; how much is done for a person is fixed."""

    def __init__(self, layers: list[Layer], pieces: Pieces) -> None:
        self.layers, self.start = layers, pieces
        self._forget()

    def _forget(self) -> None:
        self.made = _Grown(self.start)
        self.children: dict[int, list[int]] = {}

    def upper(self, views: Views, work: int, at_once: int) -> tuple[Tensor, Tensor, Tensor]:
        """max over the pieces of ``Views.values``, (n,), a point of the worst piece that may come near it, (n, d), and
        how many pieces were made for each person.

        Round by round each person's worst pieces are cut, and those on which the network is linear are looked at
        closer, until that is enough or so many pieces (``work``) have been made for the person.
        """
        if len(self.made) > len(self.start) + MOST_KEPT:
            self._forget()
        n = len(views.x)
        left = torch.full((n,), work)
        values = views.values(self.start)
        person, piece = (values > views.enough[:, None]).nonzero(as_tuple=True)
        value, move = values[person, piece], torch.zeros(len(piece), views.x.shape[1], dtype=torch.float64)
        seen = torch.zeros_like(piece, dtype=torch.bool)
        done = values.masked_fill(values > views.enough[:, None], 0.0).amax(1).clamp(min=0)  # what needs no work
        while True:
            worst_ones = _rank(person, value, n) < at_once
            chosen = worst_ones & (self.made.pieces.choice[piece] >= 0) & (left[person] > 0)
            closer = worst_ones & ~chosen & ~seen
            if not bool(closer.any() or chosen.any()):
                break
            found, move[closer] = views.pairs(self.made.pieces, person[closer], piece[closer], CLOSER)
            value[closer] = torch.minimum(value[closer], found)
            seen |= closer
            of, new, parent = self._cut(person, piece, chosen)
            left = left.scatter_add(0, of, -torch.ones_like(of))
            found, moves = views.pairs(self.made.pieces, of, new)
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
        return done.scatter_reduce(0, person, value, "amax"), point, work - left

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
        new = split(self.layers, self.made.pieces[torch.tensor(fresh)])
        start = len(self.made)
        self.made.add(new)
        for q in fresh:
            self.children[q] = []
        for i, parent in enumerate(new.parent.tolist()):
            self.children[fresh[parent]].append(start + i)


class _Grown:
    """Pieces to which others are added, with room to spare so that they are seldom copied."""

    def __init__(self, pieces: Pieces) -> None:
        self.room, self.count = pieces, len(pieces)

    def __len__(self) -> int:
        return self.count

    @property
    def pieces(self) -> Pieces:
        return self.room[: self.count]

    def add(self, new: Pieces) -> None:
        fits = new.side.shape[1] <= self.room.side.shape[1] and self.count + len(new) <= len(self.room)
        if not fits:
            spare = self.pieces[torch.zeros(self.count // 2 + 2 * len(new), dtype=torch.long)]
            self.room = Pieces.join([self.pieces, new, spare])
        else:
            lacking = self.room.side.shape[1] - new.side.shape[1]
            new = Pieces.join([new, self.room[:0]]) if lacking else new
            for field in fields(Pieces):
                getattr(self.room, field.name)[self.count : self.count + len(new)] = getattr(new, field.name)
        self.count += len(new)


def _rank(person: Tensor, value: Tensor, n: int) -> Tensor:
    """Of each entry among its person's, the largest value first."""
    order = torch.argsort(value, descending=True, stable=True)
    order = order[torch.argsort(person[order], stable=True)]
    first = torch.searchsorted(person[order].contiguous(), torch.arange(n))
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order)) - first[person[order]]
    return rank
