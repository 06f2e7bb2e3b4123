"""Columns that should not be there: those that give the target away by themselves, usually written down after the
outcome was known, sensitive columns under another name, and columns that are there twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from evenhand.tables.schema import Schema

ALONE = 0.95  # balanced accuracy (or R2 of a quantity) of one column by itself that no honest predictor has
ROWS = 20_000


def leaks(schema: Schema, clean: pd.DataFrame, y: NDArray[Any]) -> dict[str, float]:
    """name -> how well the column alone predicts the target on the other half of the rows, where that is too well.

    A small decision tree on one column, learned on one half and tried on the other, both ways; a missing value counts
    as a value, because whether something is recorded may tell as much. Sensitive columns are not looked at.
    """
    clean, y = clean.iloc[:ROWS], y[:ROWS]
    found = {}
    half = np.arange(len(y)) % 2 == 0
    for column in schema.known:
        if column.name in schema.sensitive:
            continue
        x = _values(clean[column.name], column.kind)
        score = min(_alone(x, y, half, schema.regression), _alone(x, y, ~half, schema.regression))
        if score >= ALONE:
            found[column.name] = score
    return found


def copies(schema: Schema, clean: pd.DataFrame, keep: Sequence[str] = ()) -> dict[str, str]:
    """name -> why, for columns that say exactly what a sensitive one says, such as race_code beside race."""
    found = {}
    for column in schema.known:
        if column.name in schema.sensitive or column.name in keep:
            continue
        for name in schema.sensitive:
            pairs = clean[[column.name, name]].drop_duplicates()
            if len(pairs) == pairs[column.name].nunique(dropna=False) == pairs[name].nunique(dropna=False) > 1:
                found[column.name] = f"it is the sensitive column {name!r} in other words: each value stands for one"
    return found


def twins(schema: Schema, clean: pd.DataFrame, keep: Sequence[str] = ()) -> dict[str, str]:
    """name -> why, for columns that repeat an earlier one in every row: a difference in it would count twice."""
    found: dict[str, str] = {}
    first: dict[int, str] = {}
    for column in schema.columns:
        if column not in schema.known or column.name in schema.sensitive:
            continue
        values = clean[column.name]
        name = first.setdefault(int(pd.util.hash_pandas_object(values, index=False).sum()), column.name)
        if name != column.name and column.name not in keep and values.equals(clean[name]):
            found[column.name] = f"it repeats {name!r} in every row"
    return found


def _values(column: pd.Series, kind: str) -> NDArray[np.float64]:
    """(n, 1): a number with the missing ones below all others, or a category as the number of its first appearance."""
    if kind == "number":
        values = column.to_numpy(dtype=np.float64)
        low = np.nanmin(values) if np.isfinite(values).any() else 0.0
        return np.where(np.isnan(values), low - 1 - abs(low), values)[:, None]
    return pd.factorize(column)[0].astype(np.float64)[:, None]


def _alone(x: NDArray[np.float64], y: NDArray[Any], learn: NDArray[np.bool_], regression: bool) -> float:
    if regression:
        tree = DecisionTreeRegressor(max_leaf_nodes=64, min_samples_leaf=2, random_state=0)
        return float(r2_score(y[~learn], tree.fit(x[learn], y[learn]).predict(x[~learn])))
    if len(np.unique(y[learn])) < 2 or len(np.unique(y[~learn])) < 2:
        return 0.0
    tree = DecisionTreeClassifier(max_leaf_nodes=32, class_weight="balanced", random_state=0)
    predicted = tree.fit(x[learn], y[learn]).predict(x[~learn])
    return float(balanced_accuracy_score(y[~learn], predicted))
