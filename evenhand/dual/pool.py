"""R on finite pools of candidates: the dual of the paper is then a linear programme in one variable, solved exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class PoolValue:
    """min over lam >= 0 of lam*eps + mean_i max_j (d_Y_ij - lam * d_X_ij), and a lam where it is reached."""

    value: float
    lam: float


class Pool:
    """Candidates (d_Y, d_X) of many individuals, added chunk by chunk; only the useful ones are kept.

    Each individual also has itself as a candidate, (0, 0). Of its others only those on the upper concave envelope of
    d_Y over d_X can be a maximiser for some lam, so memory stays bounded however many candidates are streamed.
    """

    def __init__(self) -> None:
        self._d_y: list[NDArray[np.float64]] = []
        self._d_x: list[NDArray[np.float64]] = []
        self._person: list[NDArray[np.intp]] = []
        self.n = 0

    def add(self, d_y: ArrayLike, d_x: ArrayLike) -> None:
        """New individuals with their candidates: two arrays (n, m)."""
        gain, cost = checked_distances(d_y, d_x)
        rows, top, price = envelope(gain, cost)
        self._person.append(rows + self.n)
        self._d_y.append(top)
        self._d_x.append(price)
        self.n += len(gain)

    def more(self, d_y: ArrayLike, d_x: ArrayLike) -> None:
        """Further candidates of all the individuals there are, in their order: two arrays (n, m)."""
        gain, cost = checked_distances(d_y, d_x)
        if len(gain) != self.n:
            raise ValueError(f"further candidates must be given for all {self.n} individuals; got {len(gain)}")
        rows, top, price = envelope(gain, cost)
        self._person.append(rows)
        self._d_y.append(top)
        self._d_x.append(price)

    def gains(self, lam: float) -> NDArray[np.float64]:
        """max_j (d_Y - lam * d_X) of each individual, at least 0: (n,)."""
        best = np.zeros(self.n)
        if self.n:
            np.maximum.at(best, _joined(self._person), _joined(self._d_y) - lam * _joined(self._d_x))
        return best

    def choice(self, lam: float) -> tuple[Matrix, Matrix]:
        """d_Y and d_X of each individual's maximiser at lam: two (n,)."""
        d_y, d_x = np.zeros(self.n), np.zeros(self.n)
        if self.n:
            last = self._maximisers(lam)
            person = _joined(self._person)[last]
            d_y[person], d_x[person] = _joined(self._d_y)[last], _joined(self._d_x)[last]
        return d_y, d_x

    def _maximisers(self, lam: float) -> NDArray[np.intp]:
        """Places of each individual's largest d_Y - lam * d_X where it is positive, the smallest d_X among equals."""
        person, d_y, d_x = _joined(self._person), _joined(self._d_y), _joined(self._d_x)
        gain = d_y - lam * d_x
        order = np.lexsort((-d_x, gain, person))
        last = order[np.flatnonzero(np.diff(person[order], append=-1))]
        return last[gain[last] > 0]

    def minimise(self, eps: float) -> PoolValue:
        """The exact value: a convex piecewise linear function of lam, by bisection on its slope, ending at a kink."""
        if self.n == 0:
            raise ValueError("the pool is empty: add the candidates of at least one individual")
        d_y, d_x = _joined(self._d_y), _joined(self._d_x)

        def line(lam: float) -> tuple[float, float]:
            """Value at 0 and slope of a line that touches the function from below at lam."""
            last = self._maximisers(lam)
            return float(d_y[last].sum() / self.n), float(eps - d_x[last].sum() / self.n)

        low, high = 0.0, self._steepest()
        at_low, at_high = line(low), line(high)
        if at_low[1] >= 0:
            return PoolValue(at_low[0], 0.0)
        if at_high[1] <= 0:  # eps = 0: only what is free counts, and every lam from here on says so
            return PoolValue(at_high[0] + at_high[1] * high, high)
        while True:  # the two lines cross at the minimum, or a third line lies above their crossing
            lam = (at_high[0] - at_low[0]) / (at_low[1] - at_high[1])
            crossing = at_low[0] + at_low[1] * lam
            middle = line(lam)
            value = middle[0] + middle[1] * lam
            if not low < lam < high or value <= crossing + 1e-14 * (at_low[0] + abs(at_low[1] * lam)):
                return PoolValue(max(crossing, 0.0), min(max(lam, low), high))
            if middle[1] < 0:
                low, at_low = lam, middle
            else:
                high, at_high = lam, middle

    def _steepest(self) -> float:
        """A lam at which nobody pays for anything: above every d_Y / d_X."""
        d_y, d_x = _joined(self._d_y), _joined(self._d_x)
        paid = d_x > 0
        with np.errstate(over="ignore"):
            steepest = float((d_y[paid] / d_x[paid]).max(initial=0.0))
        return min(2 * steepest, 1e300) if steepest > 0 else 1.0


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if len(parts) > 1:
        parts[:] = [np.concatenate(parts)]
    return parts[0]


def checked_distances(d_y: ArrayLike, d_x: ArrayLike) -> tuple[Matrix, Matrix]:
    """Both as float64 (individuals, candidates), or a clear error."""
    gain, cost = np.asarray(d_y, dtype=np.float64), np.asarray(d_x, dtype=np.float64)
    if gain.ndim != 2 or gain.shape != cost.shape:
        raise ValueError(f"d_y and d_x must both be (individuals, candidates); got {gain.shape} and {cost.shape}")
    if not (np.isfinite(gain).all() and np.isfinite(cost).all()):
        raise ValueError("a candidate has a distance that is NaN or infinite; the model's outputs must be finite")
    if cost.size and cost.min() < 0:
        raise ValueError(f"a fair distance is negative ({cost.min():g}); d_X must be at least 0")
    return gain, cost


def envelope(gain: Matrix, cost: Matrix) -> tuple[NDArray[np.intp], Matrix, Matrix]:
    """(row, d_Y, d_X) of the candidates on each row's upper concave envelope through (0, 0); others never win.

    By repeated passes: a candidate goes when it lies on or below the line between its kept neighbours.
    """
    n, m = gain.shape
    order = np.lexsort((-gain, cost), axis=1)
    gain = np.concatenate([np.zeros((n, 1)), np.take_along_axis(gain, order, 1)], axis=1)
    cost = np.concatenate([np.zeros((n, 1)), np.take_along_axis(cost, order, 1)], axis=1)
    best_before = np.maximum.accumulate(gain, axis=1)
    keep = np.concatenate([np.ones((n, 1), bool), gain[:, 1:] > best_before[:, :-1]], axis=1)
    row, column = np.nonzero(keep)
    g, c = gain[row, column], cost[row, column]
    while True:
        inner = np.zeros(len(row), bool)
        if len(row) > 2:
            inner[1:-1] = (row[:-2] == row[1:-1]) & (row[2:] == row[1:-1])
            run, rise = c[2:] - c[:-2], g[2:] - g[:-2]
            below = (g[1:-1] - g[:-2]) * run <= rise * (c[1:-1] - c[:-2])
            inner[1:-1] &= below & (np.arange(1, len(row) - 1) % 2 == 1)  # no two neighbours at once
            if not inner.any():
                inner[1:-1] = (row[:-2] == row[1:-1]) & (row[2:] == row[1:-1]) & below
                first = np.flatnonzero(inner)
                inner[:] = False
                inner[first[::2]] = True
                inner[1:] &= ~inner[:-1]
        if not inner.any():
            return row, g, c
        row, g, c = row[~inner], g[~inner], c[~inner]
