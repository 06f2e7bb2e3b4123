"""The order in which people come must not matter.

An independent sample that was sorted afterwards (by score, age or group) is no sequence of independent draws: its first
rows are not like the others, and a bound that reads it one by one is void. A random permutation makes it one again,
whatever the order was. Its seed comes from the people themselves: the same people always get the same statement, and
no permutation is the same for all samples of a size (one that is unlucky for sorted people would fail every time).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

LOUD = 7.0  # standard deviations: by chance once in 4e11 columns


def row_keys(x: Any, unitless: bool = False) -> pd.Series:
    """A hash of each row of a frame, an array, a tensor or a list, by value; ``unitless``: each column of numbers over
    its largest, so that other units give the same."""
    if isinstance(x, pd.DataFrame):
        frame = x.reset_index(drop=True)
        frame.columns = pd.RangeIndex(frame.shape[1])
    else:
        values = x.detach().cpu().numpy() if hasattr(x, "detach") else x.toarray() if hasattr(x, "toarray") else x
        flat = np.asarray(values)
        frame = pd.DataFrame(flat.reshape(len(flat), -1) if len(flat) else flat.reshape(0, 1)).infer_objects()
    numeric = frame.select_dtypes("number", exclude="timedelta").columns
    numbers = frame[numeric].astype(np.float64).to_numpy()
    if unitless and len(numbers):
        largest = np.nanmax(np.where(np.isfinite(numbers), np.abs(numbers), 0.0), axis=0, initial=0.0)
        numbers = numbers / np.where(largest > 0, largest, 1.0)
    mantissa, exponent = np.frexp(numbers)
    with np.errstate(over="ignore"):  # of what is nearly infinite
        frame[numeric] = np.ldexp(np.round(mantissa * 2**30), exponent) + 0.0  # nine digits, in any unit
    return pd.util.hash_pandas_object(frame, index=False)


def seed_of(x: Any) -> int:
    """A seed that people give themselves, in whatever order and units they come."""
    keys = np.sort(row_keys(x, unitless=True).to_numpy(dtype=np.uint64))
    return int(pd.util.hash_array(keys).sum(dtype=np.uint64))  # hashed again: sums of hashes of one row must differ


def shuffled(n: int, seed: int) -> NDArray[np.intp]:
    """The positions 0 .. n-1 in random order."""
    return np.random.default_rng(seed).permutation(n).astype(np.intp)


def own_order(x: Any, seed: int = 0) -> NDArray[np.intp]:
    """The positions of all rows in a random order that the rows give themselves: the same people come in the same
    order, however they were sorted and in whatever units."""
    by_value = np.argsort(row_keys(x, unitless=True).to_numpy(dtype=np.uint64), kind="stable")
    return by_value[shuffled(len(by_value), (seed_of(x) + seed) % 2**64)]


def in_own_order(values: ArrayLike) -> NDArray[np.float64]:
    """Numbers in a random order that is the same however they came."""
    ordered = np.sort(np.asarray(values, dtype=np.float64).ravel())
    return np.asarray(ordered[shuffled(len(ordered), seed_of(ordered))] if len(ordered) else ordered)


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
