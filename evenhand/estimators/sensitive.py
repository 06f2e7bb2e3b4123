"""What is known about each row beside its features: sensitive attributes for the methods that use them in training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.fair_metrics.columns import Column, column_names, column_positions
from evenhand.frames import plain_table

Sensitive = Sequence[Column] | Callable[[Any], Any] | None  # columns of X, or a function of X
MOST_GROUPS = 50


def group_numbers(sensitive: Any, X: Any, n: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Group number of each row and attribute (n, a), and the categories of each attribute.

    sensitive: names of columns of X (the name of a one-hot block stands for its columns), a function of X, or the
        attributes themselves: an array (n,) or (n, a), a frame, or name -> values.
    """
    if callable(sensitive):
        sensitive = sensitive(X)
    if not isinstance(sensitive, Mapping):
        sensitive = plain_table(sensitive, "sensitive_features")
    if _names(sensitive, X):
        attributes = _columns(sensitive, X)
    elif isinstance(sensitive, Mapping) or column_names(sensitive) is not None:
        keys = list(sensitive) if isinstance(sensitive, Mapping) else list(sensitive.columns)
        attributes = {str(key): np.asarray(sensitive[key]) for key in keys}
    else:
        values = np.asarray(sensitive)
        columns = [values] if values.ndim == 1 else list(values.T)
        attributes = {f"{j}": column for j, column in enumerate(columns)}
    return _coded(attributes, n)


def _coded(attributes: Mapping[str, np.ndarray], n: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    coded = [_codes(name, values, n) for name, values in attributes.items()]
    return np.stack([codes for codes, _ in coded], axis=1), tuple(categories for _, categories in coded)


def known_groups(given: Any, named: Sensitive, source: Any) -> tuple[np.ndarray | None, tuple[np.ndarray, ...]]:
    """Group numbers of a source's rows: from the attributes given to ``fit``, one for each row there, or from columns
    or a function of X; None if there are neither."""
    if given is not None:
        codes, groups = group_numbers(given, source.X, len(source.kept))
        return codes[source.kept], groups
    if named is None:
        return None, ()
    n = len(source.x)
    if isinstance(named, list | tuple) and 0 < len(named) < n and all(isinstance(name, str | int) for name in named):
        return _coded(_columns(named, source.X), n)  # an error tells what to give where names got lost
    return group_numbers(named, source.X, n)


def _names(sensitive: Any, X: Any) -> bool:
    """Whether it names columns of X rather than giving values."""
    if isinstance(sensitive, str):
        raise TypeError(
            f"sensitive must be a list of column names, got the string {sensitive!r}; write [{sensitive!r}]"
        )
    if not isinstance(sensitive, list | tuple) or len(sensitive) == 0 or column_names(X) is None:
        return False
    return all(isinstance(name, str) for name in sensitive) and len(sensitive) < len(X)


def _columns(columns: Sequence[Column], X: Any) -> dict[str, np.ndarray]:
    table = np.asarray(X, dtype=np.float64)
    return {str(column): _from_columns(table, column_positions(X, [column])) for column in columns}


def _from_columns(table: np.ndarray, positions: list[int]) -> np.ndarray:
    block = table[:, positions]
    if len(positions) == 1:
        return block[:, 0]
    result: np.ndarray = np.where(block.any(axis=1), block.argmax(axis=1), -1)  # no category: a group of its own
    return result


def _codes(name: str, values: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    if values.shape != (n,):
        raise ValueError(
            f"sensitive attribute {name!r} must have one value for each of the {n} rows; got {values.shape}"
        )
    missing = np.array([v is None or (v != v) is not False for v in values.tolist()])  # pd.NA is not even unlike itself
    if missing.any():
        raise ValueError(
            f"sensitive attribute {name!r} is missing in {missing.sum()} of {n} rows "
            f"(first: {np.flatnonzero(missing)[:5].tolist()}); drop these rows or make 'unknown' a group"
        )
    categories, codes = np.unique(values.astype(str) if values.dtype == object else values, return_inverse=True)
    if len(categories) > MOST_GROUPS:
        raise ValueError(f"sensitive attribute {name!r} has {len(categories)} values; bin it into groups first")
    if len(categories) < 2:
        raise ValueError(f"sensitive attribute {name!r} has a single value for everybody: nothing to be fair about")
    return codes.reshape(-1), categories
