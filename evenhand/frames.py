"""Frames and arrays at the door: odd ones made plain; what is wrong with others is said by column, never by cell."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from evenhand.tables.errors import is_number
from evenhand.variations import on_cpu

LARGEST = float(np.finfo(np.float32).max)
NUMBERS = (int, float, np.number, np.bool_, Decimal, Fraction)  # in a column of objects
TEXTS = "OUST"  # kinds of arrays that may hold texts


def checked_table(X: Any, *, missing: bool = False) -> Any:
    """The door of every estimator: X as ``plain_table`` makes it, if it is a table of numbers; NaN only if missing."""
    X = plain_table(X)
    if _ndim(X) == 1:  # scikit-learn would print the row
        raise ValueError(
            "Expected 2D array, got 1D array instead. Reshape your data: X is rows by columns, so for one person write "
            "X.reshape(1, -1) or frame.iloc[[0]]"
        )
    (check_kinds if missing else check_numbers)(X)
    return X


def numbers(values: Any, name: str, dtype: Any = np.float64) -> np.ndarray:
    """What the user gave as ``name`` as an array of numbers; what cannot be one is said by column, never by cell."""
    values = plain_table(values, name)
    check_kinds(values, name)
    with suppress(TypeError, ValueError, OverflowError):
        return np.asarray(values, dtype=dtype)
    raise ValueError(f"{name} must be numbers, and some of its values are none; convert them first, see pd.to_numeric")


def plain_table(X: Any, name: str = "X") -> Any:
    """Arrow tables, lazy frames and records as frames, sparse matrices and columns as dense ones, masked cells as NaN,
    tensors without their graph; everything else as it is."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        return X.toarray()
    if isinstance(X, Mapping):
        raise TypeError(
            f"{name} must be a frame or an array, rows by columns; got a table of name: values, so write "
            f"pd.DataFrame({name})"
        )
    if hasattr(X, "collect") and type(X).__module__.startswith("polars"):
        return X.collect()
    if hasattr(X, "to_pandas") and type(X).__module__.startswith("pyarrow"):
        return X.to_pandas()
    if hasattr(X, "requires_grad"):
        return on_cpu(X)  # a tensor
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(object if X.dtype.kind in TEXTS else np.float64), np.nan)
    if isinstance(X, np.ndarray) and X.dtype.names:
        return pd.DataFrame(X)
    if isinstance(X, pd.DataFrame) and any(isinstance(kind, pd.SparseDtype) for kind in X.dtypes):
        return X.astype({name: kind.subtype for name, kind in X.dtypes.items() if isinstance(kind, pd.SparseDtype)})
    return X


def plain_labels(y: Any) -> Any:
    """Targets of pandas' own dtypes as numpy has them, so that 0 and 1 stay whole and True stays True; others as they
    are."""
    if not isinstance(y, pd.Series | pd.Index | pd.api.extensions.ExtensionArray) or isinstance(y.dtype, np.dtype):
        return y
    if pd.isna(y).any():
        return y
    if pd.api.types.is_bool_dtype(y.dtype):
        return np.asarray(y, dtype=bool)
    return np.asarray(y, dtype=np.int64) if pd.api.types.is_integer_dtype(y.dtype) else y


def attribute_values(given: Any) -> np.ndarray:
    """The values of a sensitive attribute (n,); categories that are called by numbers stay categories."""
    named = isinstance(getattr(given, "dtype", None), pd.CategoricalDtype)
    return np.asarray(given, dtype=object if named else None)


def check_labels(y: Any, numeric: bool) -> None:
    """One label for each row, and none missing; numbers may be several for each row."""
    labels: np.ndarray = np.asarray(y) if y is not None else np.empty(0)
    shape = tuple(labels.shape)
    if labels.ndim == 2 and shape[-1] > 1 and not numeric:
        raise ValueError(
            f"y should be a 1d array, one label for each row, got an array of shape {shape} instead; for several "
            "labels use sklearn.multioutput.MultiOutputClassifier, which trains one model for each"
        )
    if numeric:
        _check_quantities(labels)
    if labels.ndim == 1 and labels.dtype.kind in "OfmM":
        missing = int(pd.isna(labels).sum())
        if missing:
            raise ValueError(
                f"Input y contains NaN or None: y is missing in {missing} of {len(labels)} rows; drop these rows first"
            )


def _check_quantities(labels: np.ndarray) -> None:
    """What cannot be predicted as a number."""
    kind = labels.dtype.kind
    if kind in "mM":
        what = "dates" if kind == "M" else "durations"
        raise ValueError(f"y holds {what}; predict a number, such as days since a day that you name")
    if kind == "c":
        raise ValueError("Complex data not supported: y holds complex numbers; predict their size, or two numbers")
    words = _words(labels)
    if words:
        raise ValueError(
            f"y holds text in {words} of {len(labels)} rows, and numbers are predicted; use a classifier, or "
            "pd.to_numeric(y)"
        )
    if kind == "f" and labels.size and np.abs(labels[np.isfinite(labels)]).max(initial=0.0) > LARGEST:
        raise ValueError(f"y holds numbers above {LARGEST:.2g}, too large for float32; give them in a larger unit")


def check_kinds(X: Any, name: str = "X") -> None:
    """Name the columns that stand there twice or are not numbers, without showing what anybody's cell holds."""
    frame = _frame(X)
    if frame is None:
        return _check_array(X, name)
    twice = frame.columns[frame.columns.duplicated()].unique()
    if len(twice):
        raise ValueError(f"{name} has more than one column named {', '.join(map(repr, twice[:5]))}; rename all but one")
    strange = {str(column): _what(frame[column]) for column in frame.columns if not _is_numeric(frame[column])}
    if strange:
        raise ValueError(_not_numbers(strange, name))


def _check_array(X: Any, name: str) -> None:
    """``check_kinds`` of what is no frame: an array, or what numpy makes one of."""
    values = _array(X)
    if values is None:
        return
    kind = values.dtype.kind
    if kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} holds complex numbers; give their sizes, or two columns each"
        )
    if kind in "mM":
        what = "dates" if kind == "M" else "durations"
        raise ValueError(f"{name} holds {what} and must be numbers; give days since a day that you name")
    if kind not in TEXTS:
        return
    if values.ndim == 2:
        strange = {str(j): "categories" for j, cells in enumerate(values.T) if _words(cells)}
        if kind == "O":
            strange |= {str(j): "dates" for j, cells in enumerate(values.T) if any(isinstance(c, date) for c in cells)}
        if strange:
            raise ValueError(_not_numbers(strange, name))
    elif _words(values):
        raise ValueError(
            f"{name} must be numbers and holds text in {_words(values)} of {values.size} values; encode it, or use "
            "pd.to_numeric"
        )


def check_numbers(X: Any) -> None:
    """``check_kinds``, and name the columns of a frame that hold NaN, infinity or more than float32 can."""
    check_kinds(X)
    frame = _frame(X)
    if frame is None or len(frame) == 0:
        return
    sizes = {name: float(np.abs(_wide(frame[name])).max()) for name in frame.columns}
    bad = [str(name) for name, size in sizes.items() if not np.isfinite(size)]
    if bad:
        raise ValueError(
            f"Input X contains NaN or infinity in column(s) {', '.join(map(repr, bad))}; "
            "impute or drop them first, for example with sklearn.impute.SimpleImputer"
        )
    large = [str(name) for name, size in sizes.items() if size > LARGEST]
    if large:
        raise ValueError(
            f"column(s) {', '.join(map(repr, large))} hold numbers above {LARGEST:.2g}, too large for float32; scale "
            "them, for example with sklearn.preprocessing.StandardScaler"
        )


def _frame(X: Any) -> pd.DataFrame | None:
    """pandas' or polars' frame as pandas', None for anything else."""
    if isinstance(X, pd.DataFrame):
        return X
    return X.to_pandas() if type(X).__module__.startswith("polars") and hasattr(X, "columns") else None


def _array(X: Any) -> np.ndarray | None:
    """What numpy makes of it; None of tensors, which hold numbers only, and of lists of different lengths."""
    if hasattr(X, "requires_grad"):
        return None
    with suppress(TypeError, ValueError):
        return np.asarray(X)
    return None


def _ndim(X: Any) -> int | None:
    values = X if hasattr(X, "ndim") else _array(X)
    return None if values is None else int(values.ndim)


def _words(cells: np.ndarray) -> int:
    """How many cells are texts that are no numbers."""
    if cells.dtype.kind not in TEXTS:
        return 0
    texts = [cell for cell in cells.ravel().tolist() if isinstance(cell, str | bytes)]
    return sum(not is_number(text if isinstance(text, str) else text.decode(errors="replace")) for text in texts)


def _is_numeric(values: pd.Series) -> bool:
    kind = values.dtype
    if pd.api.types.is_complex_dtype(kind):
        return False
    if pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind):
        return True
    return kind.kind == "O" and all(v is None or v is pd.NA or isinstance(v, NUMBERS) for v in values)


def _wide(values: pd.Series) -> np.ndarray:
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def _what(values: pd.Series) -> str:
    """What a column that is no number holds: decides how to make one of it."""
    kind = values.dtype
    if pd.api.types.is_datetime64_any_dtype(kind):
        return "dates"
    if pd.api.types.is_timedelta64_dtype(kind):
        return "durations"
    if pd.api.types.is_complex_dtype(kind):
        return "complex numbers"
    if not isinstance(kind, pd.CategoricalDtype | pd.IntervalDtype | pd.PeriodDtype):
        words = values.dropna().astype(str)
        if len(words) and pd.to_numeric(words, errors="coerce").notna().all():
            return "numbers as text"
    return "categories"


def _not_numbers(strange: dict[str, str], table: str) -> str:
    """One sentence that names the columns that are no numbers, with a cure for each kind of them."""
    words = [name for name, what in strange.items() if what == "categories"]
    cures = {
        "categories": f"make_column_transformer((OneHotEncoder(sparse_output=False), {words}), "
        "remainder='passthrough')",
        "dates": f"({table}[column] - pd.Timestamp('2000-01-01')).dt.days",
        "durations": f"{table}[column].dt.total_seconds()",
        "complex numbers": f"{table}[column].abs()",
        "numbers as text": f"pd.to_numeric({table}[column])",
    }
    said = [f"{cure} ({what})" for what, cure in cures.items() if what in strange.values()]
    of = "" if table == "X" else f" of {table}"
    return (
        f"column(s) {', '.join(map(repr, strange))}{of} are not numbers; encode them first, for example with "
        f"{', '.join(said)}"
    )
