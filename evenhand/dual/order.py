"""The order in which people come must not matter.

An independent sample that was sorted afterwards (by score, age or group) is no sequence of independent draws: its first
rows are not like the others, and a bound that reads it one by one is void. A permutation fixed beforehand makes it one
again, whatever the order was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

SEED = 0  # fixed, so that the same people always get the same statement
LOUD = 7.0  # standard deviations: by chance once in 4e11 columns


def shuffled(n: int) -> NDArray[np.intp]:
    """The positions 0 .. n-1 in an order that does not depend on the data."""
    return np.random.default_rng(SEED).permutation(n).astype(np.intp)


class Trend:
    """Whether columns rise or fall with the row number of a stream: the correlation with it, column by column.

    Of rows in random order it is about 1 / sqrt(n); of sorted rows it is near 1.
    """

    def __init__(self) -> None:
        self.n = 0
        self._sums: NDArray[np.float64] | None = None  # of v, v^2 and t v, v measured from the first row
        self._first: NDArray[np.float64] | None = None

    def add(self, values: ArrayLike) -> None:
        """The next rows: (n, columns)."""
        rows = np.asarray(values, dtype=np.float64)
        if len(rows) == 0:
            return
        if self._first is None or self._sums is None:
            self._first, self._sums = rows[0].copy(), np.zeros((3, rows.shape[1]))
        v = rows - self._first
        t = np.arange(self.n, self.n + len(rows), dtype=np.float64)
        self._sums += np.stack([v.sum(0), np.square(v).sum(0), t @ v])
        self.n += len(rows)

    def column(self) -> int | None:
        """A column that visibly follows the row number, or None."""
        if self._sums is None or self.n < 3:
            return None
        sum_v, sum_vv, sum_tv = self._sums / self.n
        middle, spread = (self.n - 1) / 2, (self.n**2 - 1) / 12
        variance = sum_vv - sum_v**2
        covariance = sum_tv - middle * sum_v
        moves = variance > 1e-12 * sum_vv  # constant columns have no trend
        r = np.where(moves, covariance / np.sqrt(np.where(moves, variance, 1.0) * spread), 0.0)
        worst = int(np.abs(r).argmax())
        return worst if abs(r[worst]) * self.n**0.5 > LOUD else None
