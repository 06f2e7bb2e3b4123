"""What an audit or a certificate of a stream keeps: as much for ten million people as for a hundred thousand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.dual.order import in_own_order, seed_of
from evenhand.dual.pool import PoolValue, checked_distances, envelope


class BlockMeans:
    """Values of independent people, for a confidence bound, in at most ``limit`` numbers, whatever order they come in.

    Up to ``limit`` people: their values, shuffled. Beyond, everybody goes into one of ``limit`` blocks drawn at random.
    Who is in which block has nothing to do with the values or their order, so that the means of the blocks are
    independent, lie in the same range and have the same expectation: every confidence bound for a mean holds for them;
    one that follows the variance, which falls as the number does, is hardly wider.
    """

    def __init__(self, limit: int = 2**20) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1; got {limit}")
        self.limit, self.n, self.total = limit, 0, 0.0
        self._kept: list[NDArray[np.float64]] = []
        self._sums, self._counts = np.zeros(0), np.zeros(0)
        self._draws = np.random.default_rng()  # given its seed when there are too many people

    def add(self, values: ArrayLike) -> None:
        fresh = np.asarray(values, dtype=np.float64).ravel()
        self.n += len(fresh)
        self.total += float(fresh.sum())
        if self.n <= self.limit:
            self._kept.append(fresh)
            return
        if not len(self._sums):  # full: from now on in blocks
            self._sums, self._counts = np.zeros(self.limit), np.zeros(self.limit)
            fresh, self._kept = np.concatenate([*self._kept, fresh]), []
            self._draws = np.random.default_rng(seed_of(fresh[: self.limit]))
        block = (self._draws.random(len(fresh)) * self.limit).astype(np.intp)
        self._sums += np.bincount(block, fresh, minlength=self.limit)
        self._counts += np.bincount(block, minlength=self.limit)

    @property
    def mean(self) -> float:
        """Of everybody."""
        return self.total / self.n

    @property
    def values(self) -> NDArray[np.float64]:
        """The values themselves up to ``limit`` people, means of blocks beyond, in an order of their own."""
        if len(self._sums):
            filled = self._counts > 0
            return np.asarray(self._sums[filled] / self._counts[filled])
        return in_own_order(np.concatenate([*self._kept, np.zeros(0)]))


class StreamedPool:
    """A ``Pool`` in bounded memory: its value from below, within about one part in ten thousand.

    max_j (d_Y_j - lam * d_X_j) of a person is a sum of hinges, one for each piece of the upper envelope: piece j adds
    (g_j - g_{j-1}) - lam * (c_j - c_{j-1}) as long as lam is below its slope. Summed up between the points of a fixed
    grid of lam, the pieces give the pooled function and its slope exactly at every point of the grid. It is convex, so
    it lies above its tangents there, and where the two tangents about the minimum cross is a lower bound of it.
    """

    def __init__(self, lam: float, tau: float, points: int = 8192) -> None:
        """lam: about where the minimum is expected; the grid spans sixteen powers of ten about it."""
        middle = lam if np.isfinite(lam) and lam > 0 else 1.0
        self.lams = np.concatenate([[0.0], middle * np.geomspace(1e-8, 1e8, points - 1)])
        self.tau, self.n = tau, 0
        self._gain, self._cost, self._above = (np.zeros(points + 1) for _ in range(3))
        self._free = 0.0  # gain of moves that cost nothing, which no lam outweighs

    def add(self, d_y: ArrayLike, d_x: ArrayLike) -> None:
        """New individuals with their candidates: two arrays (n, m)."""
        gain, cost = checked_distances(d_y, d_x)
        row, g, c = envelope(gain, cost)
        inner = np.flatnonzero(row[1:] == row[:-1]) + 1  # every person's first point is (0, 0)
        more_g, more_c = g[inner] - g[inner - 1], c[inner] - c[inner - 1]
        slope = np.divide(more_g, more_c, out=np.full(len(inner), np.inf), where=more_c > 0)
        place = np.searchsorted(self.lams, slope)  # the lams before it lie below the slope
        size = len(self._gain)
        self._gain += np.bincount(place, more_g, minlength=size)
        self._cost += np.bincount(place, more_c, minlength=size)
        self._free += float(more_g[np.isinf(slope)].sum())
        crosses = (g[inner] > self.tau) & (g[inner - 1] <= self.tau)
        self._above += np.bincount(place[crosses], minlength=size)
        self.n += len(gain)

    def minimise(self, eps: float) -> PoolValue:
        """A lower bound of the pool's value, and the lam where it is reached."""
        if self.n == 0:
            raise ValueError("the pool is empty: add the candidates of at least one individual")
        start = np.append(_after(self._gain), self._free) / self.n  # the tangents, and the limit of large lam
        slope = eps - np.append(_after(self._cost), 0.0) / self.n
        first = int(np.argmax(slope >= 0))  # slopes rise with lam, the last one is eps
        if first == 0:
            return PoolValue(float(start[0]), 0.0)
        lam = float((start[first] - start[first - 1]) / (slope[first - 1] - slope[first]))
        return PoolValue(float(start[first] + slope[first] * lam), lam)

    def share_above(self, lam: float) -> float:
        """Share of individuals whose d_Y at lam is above tau, at the point of the grid next to lam."""
        return float(_after(self._above)[np.abs(self.lams - lam).argmin()] / self.n)


def _after(sums: NDArray[Any]) -> NDArray[Any]:
    """At each point of the grid, the sum of what lies beyond it."""
    return sums[::-1].cumsum()[::-1][1:]
