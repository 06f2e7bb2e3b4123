"""The bound of a tree ensemble: branch and bound over boxes of thresholds, behind the interface of all bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.bounds.bound import Bracket
from evenhand.bounds.pace import Pace
from evenhand.domain import Box, FreeBox
from evenhand.dual.pool import Pool
from evenhand.ensembles.trees import TreeEnsemble
from evenhand.ensembles.worst_case import People, worst_case
from evenhand.search.geometry import Geometry

Array = NDArray[np.float64]
FARTHER = 0.4  # times lam: the price at which a way farther off is looked for
BOXES = 20  # of the branch and bound that suggests a start
KICKS = 8  # out of the best summit, where splits are hard
ROUNDS, PRICES = 6, (4.0, 2.8, 2.0, 1.6, 1.3, 1.15, 1.0, 0.7)  # of the choice of lam; the latter times what is found
EXTREMES = 3  # outputs of which the smallest and the largest are started from


def people(geometry: Geometry) -> People:
    """Dom and d_X as the arrays that the branch and bound takes."""
    box: Box = geometry.box
    discrete, block = np.zeros(box.d, bool), np.full(box.d, -1, np.int32)
    if isinstance(box, FreeBox):  # the ranges of its columns hold it, and more: the bound stays sound
        return People(box.low.numpy(), box.high.numpy(), discrete, block, geometry.sigma.numpy())
    discrete[list(box.binary)] = True
    for b, columns in enumerate(box.blocks):
        discrete[list(columns)], block[list(columns)] = True, b
    return People(box.low.numpy(), box.high.numpy(), discrete, block, geometry.sigma.numpy())


@dataclass(frozen=True)
class TreeBound:
    """A ``Bound`` of d_Y = scale * |h(x) - h(x')|^2 for an ensemble h; for two classes h is the log-odds."""

    ensemble: TreeEnsemble
    people: People
    lam: float
    largest: float
    everywhere: float
    scale: float
    exact: bool = True  # Dom is the box that is searched; otherwise it lies inside, and what is found may not be in it
    boxes: int = 2000
    floor: float = 0.0  # a bracket this narrow is closed: a share of the mean on tuning people

    @property
    def confident(self) -> tuple[float, float]:
        return self.lam, self.largest

    def at(self, lam: float) -> TreeBound:
        return replace(self, lam=lam)  # the range of the outputs holds at every lam

    def upper(self, x: Tensor, reached: Tensor | None = None) -> Bracket:
        rows = x.numpy()
        found = worst_case(
            self.ensemble, self.people, rows, lam=self.lam, scale=self.scale, boxes=self.boxes, floor=self.floor
        )
        if not self.exact:
            return Bracket(torch.zeros(len(x), dtype=torch.float64), torch.from_numpy(found.upper), x.clone())
        upper = np.maximum(np.minimum(found.upper, self.largest), found.lower)
        return Bracket(torch.from_numpy(found.lower), torch.from_numpy(upper), torch.from_numpy(found.witness))

    def near(self, x: Tensor, eps: float) -> Tensor:
        found = worst_case(self.ensemble, self.people, x.numpy(), radius=eps, scale=self.scale, boxes=self.boxes)
        return torch.from_numpy(found.upper)

    def score_range(self, x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        rows, k = x.numpy(), self.ensemble.outputs
        h = self.ensemble(rows)
        if k <= 2:
            weights = np.ones(1) if k == 1 else np.array([-1.0, 1.0])
            score = h @ weights
            return torch.from_numpy(score - self._most(rows, -weights, eps)), torch.from_numpy(
                score + self._most(rows, weights, eps)
            )
        own = h.argmax(1)
        low, high = np.full(len(rows), np.inf), np.full(len(rows), np.inf)
        for c in range(k):
            for other in range(k):
                mine = own == c
                if other != c and mine.any():
                    weights = np.zeros(k)
                    weights[c], weights[other] = 1.0, -1.0
                    score = h[mine] @ weights
                    low[mine] = np.minimum(low[mine], score - self._most(rows[mine], -weights, eps))
                    high[mine] = np.minimum(high[mine], score + self._most(rows[mine], weights, eps))
        return torch.from_numpy(low), torch.from_numpy(high)

    def _most(self, x: Array, weights: Array, eps: float) -> Array:
        return worst_case(self.ensemble, self.people, x, radius=eps, weights=weights, boxes=self.boxes).upper


def bound_trees(
    ensemble: TreeEnsemble,
    geometry: Geometry,
    x_tune: Tensor,
    eps: float,
    scale: float,
    boxes: int = 2000,
    seconds: float | None = None,
) -> TreeBound:
    """Chooses lam on tuning people: the minimiser of their own dual, found from the branch and bound's witnesses.

    seconds: about how long this and the first held-out people may take together; fewer boxes are then looked at.
    """
    arrays, each = people(geometry), 1 + 2 * max(1, ensemble.outputs - 1)
    pace = Pace.of(ensemble, arrays, x_tune.numpy(), boxes, seconds, searches=ROUNDS + len(PRICES), each=each)
    x_tune = x_tune[: pace.rows]
    rows = x_tune.numpy()
    d_y, d_x = np.zeros((len(rows), 1)), np.zeros((len(rows), 1))
    at_x, lam, floor = ensemble(rows), 1.0, 0.0
    for round_ in range(ROUNDS):
        few = min(pace.tuning, 200)
        found = worst_case(ensemble, arrays, rows, lam=lam, scale=scale, boxes=few, tolerance=0.05, floor=floor)
        move = found.witness - rows
        more_y = scale * ((ensemble(found.witness) - at_x) ** 2).sum(1)
        more_x = np.maximum(((move @ arrays.sigma) * move).sum(1), 0.0)
        d_y, d_x = np.column_stack([d_y, more_y]), np.column_stack([d_x, more_x])
        pool = Pool()
        pool.add(d_y, d_x)
        dual = pool.minimise(eps)
        best, floor = dual.lam, 0.01 * dual.value
        lam = max(best, 1e-12) * (1.0 if round_ % 2 else 1.3)
        if pace.over():
            break
    widest = 0.0
    for k in range(ensemble.outputs):
        weights = np.eye(ensemble.outputs)[k]
        ends = [
            worst_case(ensemble, arrays, rows[:1], weights=sign * weights, boxes=pace.tuning).upper[0]
            for sign in (1.0, -1.0)
        ]
        widest += scale * float(ends[0] + ends[1]) ** 2
    exact = not isinstance(geometry.box, FreeBox)
    trial = TreeBound(
        ensemble, arrays, best, widest, best * eps + widest, scale, exact=exact, boxes=pace.boxes, floor=floor
    )
    value, lam = np.inf, best
    for factor in PRICES:  # a large lam is soon closed; lam * eps + mean is convex
        at = replace(trial, lam=best * factor, boxes=min(pace.tuning, 1000))
        tried = at.lam * eps + float(at.upper(x_tune).upper.mean())
        if tried > value:
            break
        value, lam = tried, at.lam
        if pace.over():
            break
    return replace(trial, lam=lam, everywhere=lam * eps + widest, floor=0.01 * value)


def suggestions(
    ensemble: TreeEnsemble, geometry: Geometry, scale: float
) -> Callable[[Tensor, Tensor, float], Tensor] | None:
    """For the audit: where d_Y - lam * d_X is large, (n, d), starts (n, m, d), lam -> (n, m', d), with
    d_Y = scale * |h(x) - h(x')|^2: the summits above the person, above the starts, above what a lower price leads to,
    above what a short branch and bound finds and above the people with the most extreme scores; and, of hard splits,
    those that are reached from the best of them by kicks.

    None without numba, where it would take too long.
    """
    if find_spec("numba") is None:
        return None
    from evenhand.ensembles.ascent import Lines, ascend

    arrays, lines, box = people(geometry), Lines.of(ensemble), geometry.box
    hard, extremes = ensemble.jumps() is not None, list[Array]()

    def summit(rows: Array, start: Array, lam: float) -> Array:
        return ascend(ensemble, lines, arrays, rows, start, lam, scale)

    def worth(rows: Array, points: Array, lam: float) -> Array:
        move = points - rows
        squares = ((ensemble(points) - ensemble(rows)) ** 2).sum(1)
        return np.asarray(scale * squares - lam * ((move @ arrays.sigma) * move).sum(1))

    def suggest(x: Tensor, starts: Tensor, lam: float) -> Tensor:
        rows = x.numpy()
        if not extremes:
            for weights in [sign * row for row in np.eye(ensemble.outputs)[:EXTREMES] for sign in (1.0, -1.0)]:
                extremes.append(worst_case(ensemble, arrays, rows[:1], weights=weights, boxes=200).witness)
        begin = [rows, summit(rows, rows, FARTHER * lam), *starts.numpy().swapaxes(0, 1)]
        begin += [np.repeat(one, len(rows), 0) for one in extremes]
        if hard:
            begin.append(worst_case(ensemble, arrays, rows, lam=lam, scale=scale, boxes=BOXES, tolerance=0.02).witness)
        found = [summit(rows, start, lam) for start in begin]
        if hard:
            values = np.stack([worth(rows, points, lam) for points in found], 1)
            order, every = values.argmax(1), np.arange(len(rows))
            best, value = np.stack(found, 1)[every, order], values[every, order]
            for kick in _kicks(geometry, KICKS):
                tried = summit(rows, box.round(torch.from_numpy(best + kick)).numpy(), lam)
                reached = worth(rows, tried, lam)
                best, value = np.where((reached > value)[:, None], tried, best), np.maximum(value, reached)
            found.append(best)
        return box.round(torch.from_numpy(np.stack(found, 1)))

    return suggest


def _kicks(geometry: Geometry, count: int) -> Array:
    """Moves that are the same for everybody, (count, d): along what is free, and of a few columns at random."""
    rng, d = np.random.default_rng(0), geometry.d
    span = (geometry.box.high - geometry.box.low).numpy()
    values, vectors = np.linalg.eigh(geometry.sigma.numpy())
    free = vectors[:, values <= 1e-9 * values[-1]]
    few = (rng.random((count, d)) < max(0.15, 2 / d)) * rng.normal(size=(count, d)) * 0.3 * span
    along = rng.normal(size=(count, free.shape[1])) @ free.T * 0.3 * float(np.median(span))
    return np.asarray(np.where(np.arange(count)[:, None] % 2 == 0, few, along + 0.2 * few) if free.size else few)
