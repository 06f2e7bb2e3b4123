"""Encoded rows in the user's own units and categories again, as far as a Pipeline's steps can be undone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline


def undo(step: Any, values: NDArray[np.float64]) -> pd.DataFrame:
    """inverse_transform of a Pipeline or ColumnTransformer, column by column; what cannot be undone stays encoded."""
    if isinstance(step, Pipeline):
        frame: pd.DataFrame | None = None
        for _, part in reversed(step.steps):
            if part in (None, "passthrough"):
                continue
            frame = undo(part, values)
            try:
                values = frame.to_numpy(dtype=np.float64)
            except (TypeError, ValueError):
                return frame  # categories: there is nothing numeric left to undo
        return frame if frame is not None else pd.DataFrame(values)
    if isinstance(step, ColumnTransformer):
        return _undo_columns(step, values)
    names = getattr(step, "feature_names_in_", None)
    if hasattr(step, "inverse_transform") and not isinstance(step, SimpleImputer):  # it changes nothing that is there
        undone = np.asarray(step.inverse_transform(values))
        names = names if names is not None else [f"x{j}" for j in range(undone.shape[1])]
        return pd.DataFrame(undone, columns=[str(name) for name in names]).infer_objects()
    names = step.get_feature_names_out() if hasattr(step, "get_feature_names_out") else range(values.shape[1])
    return pd.DataFrame(values, columns=[str(name) for name in names])


def _undo_columns(step: ColumnTransformer, values: NDArray[np.float64]) -> pd.DataFrame:
    parts: dict[str, Any] = {}
    encoded_names = [str(name) for name in step.get_feature_names_out()]
    known = [str(name) for name in getattr(step, "feature_names_in_", range(step.n_features_in_))]
    for name, transformer, columns in step.transformers_:
        where = step.output_indices_.get(name)
        if where is None or where.stop == where.start or transformer == "drop":
            continue
        chosen = _column_names(columns, known)
        block = values[:, where]
        if transformer == "passthrough":
            undone: Any = block
        elif hasattr(transformer, "inverse_transform"):
            undone = _undo_part(transformer, block)
        else:
            parts.update({encoded_names[where.start + j]: block[:, j] for j in range(block.shape[1])})
            continue
        parts.update({str(column): undone[:, j] for j, column in enumerate(chosen)})
    frame = pd.DataFrame(parts)
    order = [name for name in known if name in frame.columns]
    return frame[order + [name for name in frame.columns if name not in order]].infer_objects()


def _undo_part(transformer: Any, block: Any) -> Any:
    """inverse_transform of one transformer or of a Pipeline of them; a SimpleImputer changes nothing that is there."""
    if isinstance(transformer, Pipeline):
        for _, part in reversed(transformer.steps):
            block = _undo_part(part, block)
        return block
    if transformer in (None, "passthrough") or isinstance(transformer, SimpleImputer):
        return block
    return np.asarray(transformer.inverse_transform(_categories(transformer, block)))


def _column_names(columns: Any, known: list[str]) -> list[str]:
    """The names behind a ColumnTransformer's columns: a name, a position, or a list, mask or slice of them."""
    if isinstance(columns, str | int):
        columns = [columns]
    if not isinstance(columns, slice) and all(isinstance(column, str) for column in columns):
        return [str(column) for column in columns]
    return [str(name) for name in np.asarray(known)[columns]]


def _categories(transformer: Any, block: NDArray[np.float64]) -> NDArray[np.float64]:
    """One-hot columns as the encoder wrote them: the largest of each feature is 1."""
    if not hasattr(transformer, "categories_") or not hasattr(transformer, "drop_idx_"):
        return block
    if transformer.drop_idx_ is not None:
        return np.round(block)
    whole, start = np.zeros_like(block), 0
    rare = getattr(transformer, "infrequent_categories_", [None] * len(transformer.categories_))
    for categories, together in zip(transformer.categories_, rare):
        stop = start + len(categories) - (0 if together is None else len(together) - 1)  # rare ones share a column
        whole[np.arange(len(block)), start + block[:, start:stop].argmax(1)] = 1.0
        start = stop
    return whole
