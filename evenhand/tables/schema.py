"""What kind each column of a table is, and how it becomes numbers: inferred once, kept with the model."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from evenhand.tables.read import LEADING_ZERO, TableError, find_column

__all__ = ["Column", "Schema", "encoded_names", "make_encoder"]

MISSING_CATEGORY = "(missing)"
MAX_CATEGORIES = 30  # rarer ones share a column
CHUNK = 100_000
IGNORED = "you asked for it"
_DATE_LIKE = re.compile(r"^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")


@dataclass(frozen=True)
class Column:
    """One column: its kind (number, category, binary, date, dropped), and what was noticed."""

    name: str
    kind: str
    note: str = ""


@dataclass(frozen=True)
class Schema:
    """The columns of a table, which one is predicted and which are sensitive.

    ``apply`` turns any table with these columns into the form the encoder expects: numbers as float32 with NaN where
    missing, categories as text with "(missing)" as a category of its own.
    """

    columns: tuple[Column, ...]
    target: str
    sensitive: tuple[str, ...]
    labels: tuple[str, ...]  # the classes of the target as text, in the order of their codes

    @classmethod
    def infer(
        cls,
        frame: pd.DataFrame,
        target: str,
        sensitive: Sequence[str],
        keep_dates: bool = False,
        ignore: Sequence[str] = (),
    ) -> Self:
        """Kinds by looking at the values; columns that cannot help (dates, identifiers, constants) are dropped.

        ignore: columns that must not be used, whatever they hold.
        """
        names = [str(name) for name in frame.columns]
        target = find_column(target, names, "target")
        if not sensitive:
            raise TableError("name at least one sensitive column, for example --sensitive sex,race")
        sensitive = tuple(dict.fromkeys(find_column(name, names, "sensitive") for name in sensitive))
        if target in sensitive:
            raise TableError(f"{target!r} cannot be both the target and sensitive")
        ignored = {find_column(name, names, "ignore") for name in ignore}
        for name in ignored & {target, *sensitive}:
            raise TableError(
                f"{name!r} cannot be ignored: it is the {'target' if name == target else 'sensitive column'}"
            )
        labels = _labels(frame[target], target)
        columns = tuple(
            Column(name, "dropped", IGNORED)
            if name in ignored
            else _infer(frame[name], name, name in sensitive, keep_dates)
            for name in names
            if name != target
        )
        for column in columns:
            if column.name in sensitive and column.kind in ("date", "dropped"):
                raise TableError(f"the sensitive column {column.name!r} cannot be used: {column.note}")
        if not any(
            column.kind in ("number", "category", "binary") for column in columns if column.name not in sensitive
        ):
            raise TableError("no usable column is left beside the target and the sensitive ones")
        return cls(columns, target, sensitive, labels)

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that enter the model, numbers first, in the order the encoder puts them."""
        return tuple(c for kind in ("number", "binary", "category") for c in self.columns if c.kind == kind)

    def names(self, kind: str) -> list[str]:
        return [column.name for column in self.columns if column.kind == kind]

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The used columns in clean form; a missing column is an error that names it."""
        absent = [column.name for column in self.used if column.name not in frame.columns]
        if absent:
            raise TableError(
                f"the table lacks {len(absent)} column(s) the model was trained on: {', '.join(map(repr, absent[:10]))}"
            )
        clean: dict[str, Any] = {}
        for column in self.used:
            values = frame[column.name]
            if column.kind == "number":
                clean[column.name] = _numbers(values, column.name).astype(np.float32)
            else:
                clean[column.name] = _categories(values)
        return pd.DataFrame(clean, index=frame.index)

    def codes(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """The target as class numbers; a value that was not there in training is an error that names it."""
        if self.target not in frame.columns:
            raise TableError(f"the table has no column {self.target!r}, the target the model was trained on")
        values = _categories(frame[self.target])
        known = {label: code for code, label in enumerate(self.labels)}
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise TableError(
                f"the target {self.target!r} holds {', '.join(map(repr, unknown[:5]))}, which training did not have; "
                f"it knows {', '.join(map(repr, self.labels))}"
            )
        return np.asarray(values.map(known), dtype=np.int64)

    def missing_sensitive(self, frame: pd.DataFrame) -> dict[str, int]:
        """How many rows lack each sensitive value; only those that lack any."""
        counts = {name: int(frame[name].isna().sum()) for name in self.sensitive}
        return {name: count for name, count in counts.items() if count}

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Self:
        columns = tuple(Column(str(c["name"]), str(c["kind"]), str(c.get("note", ""))) for c in given["columns"])
        texts = (tuple(map(str, given[name])) for name in ("sensitive", "labels"))
        return cls(columns, str(given["target"]), *texts)


def make_encoder(schema: Schema) -> ColumnTransformer:
    """scikit-learn preprocessing for the schema: median and scaling for numbers, one-hot for categories (the rare ones
    together), one column for categories with two values."""
    number = Pipeline(
        [
            ("fill", SimpleImputer(strategy="median", keep_empty_features=True)),
            ("clip", MinMaxScaler(clip=True)),  # to the range seen in training: nobody is outside the bounds
            ("scale", StandardScaler()),
        ]
    )
    one_hot: dict[str, Any] = {"sparse_output": False, "dtype": np.float32}
    parts = [
        ("number", number, schema.names("number")),
        ("binary", OneHotEncoder(drop="if_binary", handle_unknown="ignore", **one_hot), schema.names("binary")),
        (
            "category",
            OneHotEncoder(max_categories=MAX_CATEGORIES, handle_unknown="infrequent_if_exist", **one_hot),
            schema.names("category"),
        ),
    ]
    encoder = ColumnTransformer([part for part in parts if part[2]])
    return encoder.set_output(transform="pandas")


def encode(encoder: ColumnTransformer, frame: pd.DataFrame) -> pd.DataFrame:
    """The encoded table as float32, in chunks so that a million rows fit into memory."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Found unknown categories")
        parts = [
            encoder.transform(frame.iloc[start : start + CHUNK]).astype(np.float32)
            for start in range(0, len(frame), CHUNK)
        ]
    whole: pd.DataFrame = parts[0] if len(parts) == 1 else pd.concat(parts)
    return whole


def encoded_names(encoder: ColumnTransformer) -> list[tuple[str, str]]:
    """(column, value) behind each encoded feature; value is "" for a number."""
    names: list[tuple[str, str]] = []
    for part, transformer, columns in encoder.transformers_:
        if part == "number":
            names += [(column, "") for column in columns]
        elif part in ("binary", "category"):
            for column, shown in zip(columns, _shown(transformer, columns)):
                names += [(column, value) for value in shown]
    return names


def _shown(one_hot: OneHotEncoder, columns: Sequence[str]) -> list[list[str]]:
    features = list(one_hot.get_feature_names_out(list(columns)))
    shown: list[list[str]] = []
    for i, column in enumerate(columns):
        width = len(one_hot.categories_[i]) - (one_hot.drop_idx_ is not None and one_hot.drop_idx_[i] is not None)
        rare = one_hot.infrequent_categories_[i] if hasattr(one_hot, "infrequent_categories_") else None
        width += 0 if rare is None else 1 - len(rare)
        block, features = features[:width], features[width:]
        texts = [name.removeprefix(f"{column}_") for name in block]
        shown.append(["(rare)" if text == "infrequent_sklearn" else text for text in texts])
    return shown


def _infer(values: pd.Series, name: str, sensitive: bool, keep_dates: bool) -> Column:
    present = values.dropna()
    n_missing = len(values) - len(present)
    missing = f"{n_missing:,} missing" if n_missing else ""
    if len(present) == 0:
        return Column(name, "dropped", "every value is missing")
    if pd.api.types.is_datetime64_any_dtype(values):
        return Column(name, "number", "date as days") if keep_dates else Column(name, "date", "a date")
    distinct = int(present.nunique())
    if distinct == 1:
        return Column(name, "dropped", f"constant: {present.iloc[0]!r} in every row")
    if pd.api.types.is_bool_dtype(present) or (distinct == 2 and not n_missing):
        return Column(name, "binary", missing)
    if pd.api.types.is_numeric_dtype(values):
        if sensitive and distinct <= 10:
            return Column(name, "category", missing)
        if (
            not sensitive
            and pd.api.types.is_integer_dtype(values)
            and distinct == len(values) > 50
            and _in_order(values)
        ):
            return Column(name, "dropped", f"{distinct:,} different whole numbers in order: it counts the rows")
        return Column(name, "number", missing)
    texts = present.astype(str)
    sample = texts.iloc[:: max(1, len(texts) // 2000)]
    if not sensitive and sample.str.match(_DATE_LIKE).mean() > 0.95 and _parsed_dates(sample).notna().mean() > 0.95:
        return Column(name, "number", "date as days") if keep_dates else Column(name, "date", "a date")
    numeric = pd.to_numeric(sample, errors="coerce").notna().mean()
    if numeric > 0.9 and not sensitive and not sample.str.match(LEADING_ZERO).any():
        odd = texts[pd.to_numeric(texts, errors="coerce").isna()]
        return Column(
            name, "number", f"{len(odd):,} values that are not numbers count as missing, such as {odd.iloc[0]!r}"
        )
    if distinct > 50 and distinct > 0.9 * len(present) and not sensitive:
        return Column(
            name, "dropped", f"{distinct:,} different texts in {len(present):,} rows: an identifier or free text"
        )
    if distinct > MAX_CATEGORIES:
        return Column(name, "category", f"{distinct:,} categories, the {MAX_CATEGORIES - 1} most frequent kept apart")
    return Column(name, "category", missing)


def _in_order(values: pd.Series) -> bool:
    return bool(values.is_monotonic_increasing or values.is_monotonic_decreasing)


def _labels(target: pd.Series, name: str) -> tuple[str, ...]:
    present = target.dropna()
    distinct = int(present.nunique())
    if distinct < 2:
        raise TableError(f"the target {name!r} has {distinct} distinct value(s); a classifier needs two or more")
    if distinct > 20:
        raise TableError(
            f"the target {name!r} has {distinct:,} distinct values, which is not a class; choose another column or "
            "make classes of it (for numbers there is SenSeIRegressor in Python)"
        )
    if pd.api.types.is_numeric_dtype(present) and not pd.api.types.is_bool_dtype(present):
        return tuple(_text(value) for value in np.sort(present.unique()))
    return tuple(sorted(_categories(present).unique()))


def _numbers(values: pd.Series, name: str) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(values):
        return (values - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    if pd.api.types.is_numeric_dtype(values):
        return values.astype(np.float64).replace([np.inf, -np.inf], np.nan)
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.notna().sum() == 0 and values.notna().any():  # a date that was asked to be kept
        dates = _parsed_dates(values.astype(str))
        if dates.notna().any():
            return (dates - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
        raise TableError(f"column {name!r} held numbers in training but holds text such as {values.dropna().iloc[0]!r}")
    return numbers


def _categories(values: pd.Series) -> pd.Series:
    """Texts, the same for 1, 1.0 and "1", with a category for missing values."""
    distinct = pd.unique(values)
    texts = {value: MISSING_CATEGORY if pd.isna(value) else _text(value) for value in distinct}
    known = {value: text for value, text in texts.items() if not pd.isna(value)}
    mapped = values.map(known).astype(object)
    return mapped.where(values.notna(), MISSING_CATEGORY)


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _parsed_dates(texts: pd.Series) -> pd.Series:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        readings = [pd.to_datetime(texts, errors="coerce", dayfirst=dayfirst) for dayfirst in (False, True)]
    return max(readings, key=lambda dates: int(dates.notna().sum()))
