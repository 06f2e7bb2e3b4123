"""Sensitive coordinates: the columns that must not matter."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from evenhand.fair_metrics.metric import FairMetric

Column = str | int


def from_columns(X: Any, columns: Sequence[Column]) -> FairMetric:
    """The metric in which changing the given columns costs nothing.

    X is a frame (columns by name) or an array (columns by position); only its width and names are used.

    >>> import pandas as pd
    >>> from_columns(pd.DataFrame({"age": [40.0], "sex": [1.0]}), ["sex"])
    FairMetric(2 features, 1 free directions, Sigma = I - P_ran(A))
    """
    return FairMetric(coordinate_directions(X, columns))


def coordinate_directions(X: Any, columns: Sequence[Column]) -> torch.Tensor:
    """The unit vectors of the given columns, (d, len(columns))."""
    positions = column_positions(X, columns)
    directions = torch.zeros(width(X), len(positions))
    directions[positions, range(len(positions))] = 1.0
    return directions


def column_positions(X: Any, columns: Sequence[Column]) -> list[int]:
    """Positions of the named columns; an unknown name is an error that offers the closest ones.

    A categorical column that was one-hot encoded is found by its prefix: "race" stands for race_White, race_Black ...
    """
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got the string {columns!r}; write [{columns!r}]")
    names, labels = column_names(X), _labels(X)
    positions: list[int] = []
    for column in columns:
        if column in labels:  # a number or a tuple can be a name, too; 2 is then the column 2, wherever it stands
            positions.append(labels[column])
        elif labels and not isinstance(column, str):
            raise ValueError(f"column {column!r} does not exist{closest(str(column), names or [])}")
        elif names is None or not isinstance(column, str):
            if not isinstance(column, int | np.integer) or not -width(X) <= column < width(X):
                raise ValueError(
                    f"column {column!r} does not exist: the data have {width(X)} unnamed columns; give positions, such "
                    "as [0], where names get lost on the way, as they do in BaggingClassifier"
                )
            positions.append(int(column) % width(X))
        elif column in names:
            positions.append(names.index(column))
        else:
            block = [
                i for i, name in enumerate(names) if name.startswith(f"{column}_") or name.startswith(f"{column}=")
            ]
            if not block:
                raise ValueError(f"column {column!r} does not exist{closest(column, names)}")
            positions.extend(block)
    return list(dict.fromkeys(positions))


def closest(name: str, names: Sequence[str]) -> str:
    """' (did you mean ...)' with the closest existing names."""
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    return (
        f"; the closest are {', '.join(map(repr, near))}" if near else f"; there are {', '.join(map(repr, names[:20]))}"
    )


def column_names(X: Any) -> list[str] | None:
    """Names of a frame's columns (pandas, polars or pyarrow, whose ``columns`` are the data), None for an array."""
    columns = getattr(X, "column_names", None) or getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def _labels(X: Any) -> dict[Any, int]:
    """Position of each column of a frame whose columns are not all called by texts; none of any other."""
    columns = [] if hasattr(X, "column_names") else list(getattr(X, "columns", ()))
    return {} if all(isinstance(name, str) for name in columns) else {name: j for j, name in enumerate(columns)}


def width(X: Any) -> int:
    shape = getattr(X, "shape", None) or np.shape(X)
    if len(shape) != 2:
        raise ValueError(f"X must be two-dimensional, rows by columns; got shape {tuple(shape)}")
    return int(shape[1])
