"""Versions of the same individual which must be treated alike, as one array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Variations"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Variations:
    """`values[i]` are m versions of the individual in row `rows[i]` of the data; version 0 is the original.

    values: (g, m, ...), texts or labels (g, m), feature vectors (g, m, d), predictions (g, m) or (g, m, K).
    rows: (g,) distinct row numbers. Individuals without other versions are simply not there.
    like: None, or an empty frame (pandas or polars) with the column names and types of the features; `map` then gives
        its function frames like this one, so that a model which was fitted on a frame meets a frame again.

    >>> texts = Variations([["she codes", "he codes"], ["her dog", "his dog"]], rows=[0, 7])
    >>> texts
    Variations of 2 individuals x 2 versions
    >>> texts.map(lambda texts: [len(t) for t in texts]).values
    array([[9, 8],
           [7, 7]])
    """

    values: Array
    rows: NDArray[np.intp]
    like: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _array(self.values))
        object.__setattr__(self, "rows", _row_numbers(self.rows))
        if self.values.ndim < 2 or self.values.shape[1] == 0:
            raise ValueError(
                f"values must be (individuals, versions, ...) with at least one version, got shape {self.values.shape}"
            )
        if len(self.rows) != len(self.values):
            raise ValueError(
                f"values holds {len(self.values)} individuals but rows names {len(self.rows)}; give one row each"
            )
        if self.like is not None:
            width = len(self.like.columns)
            if self.values.ndim != 3 or self.values.shape[2] != width:
                raise ValueError(
                    f"like has {width} columns, so values must be (individuals, versions, {width}), "
                    f"got {self.values.shape}"
                )

    def __len__(self) -> int:
        """The number of individuals."""
        return len(self.rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """(n, m, ...) where every row has its versions: what a cross-validation of scikit-learn splits with X."""
        order = np.argsort(self.rows)
        if not np.array_equal(self.rows[order], np.arange(len(self))):
            raise ValueError(
                "only Variations of every row can be an array; to split them with X, give an array (n, m, ...) in "
                "which rows without versions are repeated"
            )
        return np.array(self.values[order], dtype=dtype)

    def __repr__(self) -> str:
        rest = "".join(f" x {size}" for size in self.values.shape[2:])
        return f"Variations of {len(self):,} individuals x {self.values.shape[1]} versions{rest}"

    @property
    def original(self) -> Array:
        """Version 0 of each individual: (g, ...)."""
        return self.values[:, 0]

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the features, where they are known."""
        return None if self.like is None else tuple(self.like.columns)

    def flat(self) -> Any:
        """All g*m versions one below the other: a frame if `like` is given, a list of texts, or an array (g*m, ...)."""
        flat = self.values.reshape(-1, *self.values.shape[2:])
        if self.like is not None:
            return _frame(flat, self.like)
        return flat.tolist() if flat.ndim == 1 and flat.dtype.kind in "OU" else flat

    def map(self, f: Callable[[Any], Any]) -> Variations:
        """f of every version: f gets `flat()`, all g*m of them at once, and returns one result for each.

        f is not called when there is nobody; the result is then of shape (0, m).
        """
        g, m = self.values.shape[:2]
        if g == 0:
            return Variations(np.empty((0, m)), self.rows)
        results = _array(f(self.flat()))
        if results.ndim == 0 or len(results) != g * m:
            raise ValueError(
                f"the function must return one result for each of the {g * m} versions it was given "
                f"({g} individuals x {m}), got shape {results.shape}"
            )
        return Variations(results.reshape(g, m, *results.shape[1:]), self.rows)

    def select(self, rows: ArrayLike) -> Variations:
        """The variations that belong to `x[rows]`, numbered as there (row numbers or a boolean mask).

        >>> everybody = Variations([["a", "b"], ["c", "d"]], rows=[3, 5])
        >>> everybody.select([5, 0, 1]).rows
        array([0])
        """
        wanted = np.asarray(rows)
        wanted = np.flatnonzero(wanted) if wanted.dtype == bool else _row_numbers(wanted, distinct=False)
        place = {row: i for i, row in enumerate(self.rows.tolist())}
        known = np.array([row in place for row in wanted.tolist()], dtype=bool)
        found = [place[row] for row in wanted[known].tolist()]
        return Variations(self.values[np.array(found, dtype=np.intp)], np.flatnonzero(known), self.like)

    def versions(self, *which: int) -> Variations:
        """Only these versions, in this order; unless the first is 0, version 0 is no longer the original."""
        m = self.values.shape[1]
        wrong = [i for i in which if not 0 <= i < m]
        if wrong or not which:
            raise ValueError(f"versions are numbered 0 to {m - 1}, got {wrong or 'none'}")
        return Variations(self.values[:, list(which)], self.rows, self.like)


def on_cpu(tensor: Any) -> Any:
    """A torch tensor without its graph, of numbers that numpy has too: bfloat16 becomes float32."""
    here = tensor.detach().cpu()
    return here.float() if str(here.dtype) == "torch.bfloat16" else here


def check_variations(given: Any) -> None:
    """An array alone does not say whose versions it holds."""
    if not isinstance(given, Variations):
        raise TypeError(
            f"versions of the same people are Variations(values, rows), values (individuals, versions, features); got "
            f"{type(given).__name__}"
        )


def _array(values: Any) -> Array:
    """An array of numbers, or of objects for texts (a fixed-width array would pad each text to the longest one)."""
    if hasattr(values, "detach"):
        values = on_cpu(values).numpy()
    if isinstance(values, np.ndarray):
        return values
    try:
        first: Any = values
        while isinstance(first, (list, tuple)) and len(first) > 0:
            first = first[0]
        array = np.array(values, dtype=object) if isinstance(first, str) else np.asarray(values)
        if array.dtype == object and any(isinstance(value, (list, tuple)) for value in array.flat):
            raise ValueError("lists of different lengths")
        return array
    except ValueError as error:
        raise ValueError("values is ragged: every individual needs the same number of versions") from error


def _row_numbers(rows: ArrayLike, distinct: bool = True) -> NDArray[np.intp]:
    array = np.asarray(rows)
    if array.size == 0:
        array = array.astype(np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"rows must be a list of row numbers, got {array.dtype} of shape {array.shape}")
    if len(array) and array.min() < 0:
        raise ValueError(f"rows must not be negative, got {array.min()}")
    if distinct and len(np.unique(array)) != len(array):
        numbers, counts = np.unique(array, return_counts=True)
        raise ValueError(
            f"rows must be distinct, but {numbers[counts > 1][0]} comes more than once; "
            "put all versions of an individual into one line of values"
        )
    return array.astype(np.intp, copy=False)


def _frame(flat: Array, like: Any) -> Any:
    """The (n, d) array as a frame with the column names and types of `like`."""
    if hasattr(type(like), "schema"):  # polars
        return type(like)({name: flat[:, j].tolist() for j, name in enumerate(like.columns)}, schema=like.schema)
    frame = type(like)(flat, columns=like.columns)
    same = all(dtype == flat.dtype for dtype in like.dtypes)
    return frame if same else frame.astype(like.dtypes)
