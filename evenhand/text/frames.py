"""A text column and other columns as one model: the encoder's vector with the other columns beside it."""

from __future__ import annotations

import warnings
from typing import Any, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from evenhand.counterfactuals.texts import as_texts
from evenhand.frames import NUMBERS
from evenhand.tables.kinds import infer
from evenhand.text.features import Encoder, TextFeatures

__all__ = ["FrameFeatures", "as_frame"]

ALL_DIFFERENT, FEWEST = 0.9, 20  # share of values that are all different in so many rows: nobody can learn from them
MOST_KINDS = 30  # of a column; rarer ones share a feature
RARE_SCALE = 0.1  # a one-hot feature is divided by no less, or a rare kind would lie dozens of deviations away


class FrameFeatures(TextFeatures):
    """Frames to scaled vectors: the encoder's of the column `text`, then numbers (a missing one is the median, others
    are kept within the range of training) and one-hot columns for everything else (a missing value is a kind, an
    unknown one is none). An empty cell in the column of texts is an empty text.

    Columns of dates, names, addresses, identifiers and other free text are left out with a warning: nothing can be
    learned from kinds that come once, and a saved model would hold what people wrote.

    Fitted: `numbers_` (name -> median, low, high), `kinds_` (name -> the kinds, None for the rare ones together).
    """

    def __init__(self, encoder: Encoder | str, text: Any, alike: Any = None) -> None:
        super().__init__(encoder, alike)
        self.text = text

    def fit(self, X: Any, y: Any = None) -> Self:
        self.fit_columns(X)
        return super().fit(X, y)

    def fit_columns(self, X: Any) -> Self:
        """Learn medians, ranges and kinds of the other columns, which are remembered by name."""
        frame = as_frame(X, self.text).drop(columns=self.text)
        self.numbers_: dict[Any, tuple[float, float, float]] = {}
        self.kinds_: dict[Any, list[str | None]] = {}
        for name in frame:
            if _measured(frame[name]):
                values = _numbers(frame[name], name)
                there = values[np.isfinite(values)]
                measured = (np.median(there), there.min(), there.max()) if len(there) else (0.0, 0.0, 0.0)
                self.numbers_[name] = (float(measured[0]), float(measured[1]), float(measured[2]))
            else:
                kinds = _kinds(frame[name])
                if why := _useless(kinds, name):
                    warnings.warn(f"column {name!r} is left out: {why}; give the columns to learn from", stacklevel=4)
                    continue
                counts = kinds.value_counts()
                few = len(counts) <= MOST_KINDS
                often = sorted(str(kind) for kind in counts.index[: MOST_KINDS if few else MOST_KINDS - 1])
                self.kinds_[name] = [*often, *([] if few else [None])]
        return self

    def fit_vectors(self, vectors: NDArray[np.float32]) -> Self:
        super().fit_vectors(vectors)
        if count := sum(map(len, self.kinds_.values())):
            self.scale_[-count:] = self.scale_[-count:].clip(min=RARE_SCALE)
        return self

    def _texts(self, X: Any) -> list[str]:
        check_is_fitted(self, "kinds_")
        frame = as_frame(X, self.text)
        lacking = [name for name in [*self.numbers_, *self.kinds_] if name not in frame.columns]
        if lacking:
            raise ValueError(f"the table has no column {lacking[0]!r}, which the model was trained with")
        return as_texts(frame[self.text])

    def _with_columns(self, X: Any, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        frame = as_frame(X, self.text)
        beside = [np.empty((len(frame), 0))]
        for name, (median, low, high) in self.numbers_.items():
            values = _numbers(frame[name], name)
            beside.append(np.clip(np.where(np.isnan(values), median, values), low, high)[:, None])
        for name, kinds in self.kinds_.items():
            said = _kinds(frame[name]).to_numpy()
            one_hot = said[:, None] == np.array(kinds, dtype=object)
            if kinds and kinds[-1] is None:
                one_hot[:, -1] = ~one_hot.any(axis=1)
            beside.append(one_hot)
        return np.hstack([vectors, np.hstack(beside).astype(np.float32)])


def _measured(column: pd.Series) -> bool:
    """Whether a column holds numbers, also as objects, such as the decimals of a database; yes and no are kinds."""
    if column.dtype.kind == "O":
        there = column.dropna()
        return len(there) > 0 and all(isinstance(v, NUMBERS) and not isinstance(v, bool | np.bool_) for v in there)
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)


def _useless(kinds: pd.Series, name: Any) -> str:
    """Why a column of kinds is nothing to learn from, or nothing."""
    there = kinds[kinds != ""]
    found = infer(there, str(name)) if len(there) else None
    if found is not None and (found.personal or found.kind == "date"):
        return found.note
    distinct = int(there.nunique())
    many = len(there) >= FEWEST and distinct > ALL_DIFFERENT * len(there)
    return f"{distinct:,} different values in {len(there):,} rows" if many else ""


def as_frame(X: Any, text: Any) -> pd.DataFrame:
    """A pandas frame of a frame (pandas, polars) or an Arrow table that has the column of texts; a missing text is
    an empty one."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError("expected a table, got a LazyFrame, which has not been computed yet; give frame.collect()")
    if hasattr(X, "to_pydict"):  # Arrow
        X = pd.DataFrame(X.to_pydict())
    elif hasattr(X, "to_dicts"):  # polars, without asking for Arrow
        X = pd.DataFrame(X.to_dict(as_series=False))
    if not isinstance(X, pd.DataFrame):
        raise TypeError(f"text={text!r} names a column, so X must be a table with it; got {type(X).__name__}")
    if text not in X.columns:
        raise ValueError(f"there is no column {text!r}; the table has {', '.join(map(str, X.columns[:12]))}")
    twice = X.columns[X.columns.duplicated()]
    if len(twice):
        raise ValueError(f"the table has two columns named {twice[0]!r}; rename one")
    if X[text].isna().any():
        X = X.copy()
        X[text] = X[text].astype(object).where(X[text].notna(), "")
    return cast(pd.DataFrame, X)


def _numbers(column: pd.Series, name: Any) -> NDArray[np.float64]:
    """Numbers with NaN where one is missing; infinite ones lie beyond every range and are cut to it."""
    try:
        return np.asarray(pd.to_numeric(column).astype(float).to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise ValueError(
            f"column {name!r} held numbers in training and holds something else now; mend it, or train again"
        ) from None


def _kinds(column: pd.Series) -> pd.Series:
    """Kinds as strings: a frame that went through an array of objects must look like the one that came in."""
    return column.map(lambda value: "" if pd.isna(value) else str(value)).astype(object)
