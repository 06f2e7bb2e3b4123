"""A map T from people to their worst cases, fixed beforehand: what a lower confidence bound on R(h) is about.

For any T, mixed with the identity so that its mean price is at most eps,
R(h) >= min(1, eps / E d_X(X, TX)) * E d_Y(X, TX).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.dual.confidence import UpperBound, lower_bound

Array = NDArray[Any]


@dataclass(frozen=True)
class FixedMove:
    """T takes the candidate with the largest d_Y - lam * d_X, among those with d_X <= d_x_cap; else it stays.

    ``d_y_cap`` only cuts the values that enter the mean, which can only lower it.
    """

    lam: float
    d_x_cap: float
    d_y_cap: float

    def __call__(self, d_y: Array, d_x: Array) -> tuple[Array, Array]:
        """Of candidates (n, m): d_Y (cut at its cap) and d_X of the one that T takes, (n,) each."""
        gain = np.where(d_x <= self.d_x_cap, d_y - self.lam * d_x, -np.inf)
        best = gain.argmax(1)
        rows = np.arange(len(d_y))
        moves = gain[rows, best] > 0
        y = np.where(moves, np.minimum(d_y[rows, best], self.d_y_cap), 0.0)
        return y, np.where(moves, d_x[rows, best], 0.0)

    def lower(self, y: Array, x: Array, eps: float, alpha: float, interval: UpperBound) -> float:
        """R(h) is at least this with probability 1 - alpha; y, x of people who took no part in the choice of T."""
        if self.d_y_cap <= 0:
            return 0.0
        l_y = lower_bound(interval, y, self.d_y_cap, alpha / 2)
        if self.d_x_cap <= 0:
            return l_y  # T never pays anything
        u_x = interval(x, self.d_x_cap, alpha / 2)
        return min(1.0, eps / u_x) * l_y


def choose_move(d_y: Array, d_x: Array, eps: float) -> FixedMove:
    """On tuning rows: the T with the largest min(1, eps / mean d_X) * mean d_Y, as the bound will see it.

    The bound lies below that product of the means themselves, so that moves with a small product need no bound.
    """
    from evenhand.dual.confidence import betting_upper

    tried = {}
    for move in _moves(d_y, d_x, eps):
        y, x = move(d_y, d_x)
        same = (move.d_x_cap, y.tobytes(), x.tobytes())  # another lam often takes the same candidates
        if y.max() > 0 and same not in tried:
            share = 1.0 if x.mean() <= eps else eps / x.mean()
            tried[same] = (share * y.mean(), FixedMove(move.lam, move.d_x_cap, float(1.5 * y.max())), y, x)
    best, best_value = FixedMove(0.0, 0.0, 0.0), 0.0
    for at_most, move, y, x in sorted(tried.values(), key=lambda one: -one[0]):
        if at_most <= best_value:
            break
        value = move.lower(np.tile(y, 4), np.tile(x, 4), eps, 0.05, betting_upper)
        if value > best_value:
            best, best_value = move, value
    return best


def _moves(d_y: Array, d_x: Array, eps: float) -> Iterator[FixedMove]:
    """Every cap of the price with every lam on a grid over what a price buys."""
    ratio = d_y[d_x > 1e-3 * eps] / d_x[d_x > 1e-3 * eps]  # nearly free moves are taken at any lam
    scale = float(ratio.max()) if ratio.size else 1.0
    yield FixedMove(0.0, 0.0, np.inf)
    for cap in (2 * eps, 10 * eps, 50 * eps, 250 * eps) if eps > 0 else ():
        for lam in (0.0, *scale * np.logspace(-5, 0.5, 56)):
            yield FixedMove(float(lam), cap, np.inf)
