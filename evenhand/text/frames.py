"""A text column and other columns as one model: the encoder's vector with the other columns beside it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from evenhand.text.features import Encoder, TextFeatures

__all__ = ["FrameFeatures", "as_frame"]


class FrameFeatures(TextFeatures):
    """Frames to scaled vectors: the encoder's of the column `text`, then numbers (a missing one is the median) and
    one-hot columns for everything else (a missing value is a category, an unknown one is none).
    """

    def __init__(self, encoder: Encoder | str, text: Any) -> None:
        super().__init__(encoder)
        self.text = text

    def fit(self, X: Any, y: Any = None) -> Self:
        self.fit_columns(X)
        return super().fit(X, y)

    def fit_columns(self, X: Any) -> Self:
        """Learn medians and categories of the other columns, which are remembered by name."""
        frame = as_frame(X, self.text).drop(columns=self.text)
        numeric = [name for name in frame if pd.api.types.is_numeric_dtype(frame[name].dtype)]
        numeric = [name for name in numeric if not pd.api.types.is_bool_dtype(frame[name].dtype)]
        others = [name for name in frame if name not in numeric]
        one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, max_categories=100)
        self.columns_ = ColumnTransformer(
            [
                ("numbers", SimpleImputer(strategy="median", keep_empty_features=True), numeric),
                ("kinds", one_hot, others),
            ]
        )
        self.columns_.fit(_plain(frame, others))
        self.numeric_, self.others_ = numeric, others
        return self

    def vectors(self, X: Any) -> NDArray[np.float32]:
        check_is_fitted(self, "columns_")
        frame = as_frame(X, self.text)
        lacking = [name for name in [*self.numeric_, *self.others_] if name not in frame.columns]
        if lacking:
            raise ValueError(f"the table has no column {lacking[0]!r}, which the model was trained with")
        beside = self.columns_.transform(_plain(frame[[*self.numeric_, *self.others_]], self.others_))
        return np.hstack([super().vectors(frame[self.text]), np.asarray(beside, dtype=np.float32)])


def as_frame(X: Any, text: Any) -> pd.DataFrame:
    """A pandas frame of a frame (pandas, polars) or an Arrow table that has the column of texts."""
    if hasattr(X, "to_pydict"):  # Arrow
        X = pd.DataFrame(X.to_pydict())
    elif hasattr(X, "to_dicts"):  # polars, without asking for Arrow
        X = pd.DataFrame(X.to_dict(as_series=False))
    if not isinstance(X, pd.DataFrame):
        raise TypeError(f"text={text!r} names a column, so X must be a table with it; got {type(X).__name__}")
    if text not in X.columns:
        raise ValueError(f"there is no column {text!r}; the table has {', '.join(map(str, X.columns[:12]))}")
    return X


def _plain(frame: pd.DataFrame, others: list[Any]) -> pd.DataFrame:
    """Categories as strings: a frame that went through an array of objects must look like the one that came in."""
    said = {name: frame[name].map(lambda value: "" if pd.isna(value) else str(value)).astype(object) for name in others}
    numbers = {name: pd.to_numeric(frame[name]).astype(float) for name in frame if name not in said}
    return pd.DataFrame(numbers | said, index=frame.index)
