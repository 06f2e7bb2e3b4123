"""The columns of a table: which one is predicted, which are sensitive, which the model sees; kept with the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.tables.amounts import amounts, decimal_of
from evenhand.tables.errors import TableError, find_column
from evenhand.tables.kinds import IGNORED, USED, Column, categories_of, infer, numbers_of, text_of

__all__ = ["Column", "Schema"]

MOST_CLASSES = 20  # a number with more distinct values is a quantity

Own = str | int | float | bool  # a class as the table has it


@dataclass(frozen=True)
class Schema:
    """The columns of a table, which one is predicted and which are sensitive.

    ``classes`` are the target's own values, in the order of their codes; none for a target that is a number.
    ``see_sensitive``: whether the model is given the sensitive columns. ``apply`` turns any table with these columns
    into the form the encoder expects: numbers as float32 with NaN where missing, categories as text with "(missing)" as
    a category of its own.
    """

    columns: tuple[Column, ...]
    target: str
    sensitive: tuple[str, ...]
    classes: tuple[Own, ...]
    see_sensitive: bool = False

    @classmethod
    def infer(
        cls,
        frame: pd.DataFrame,
        target: str,
        sensitive: Sequence[str],
        *,
        keep_dates: bool = False,
        ignore: Sequence[str] = (),
        keep: Sequence[str] = (),
        see_sensitive: bool = False,
        regression: bool | None = None,
    ) -> Self:
        """Kinds by looking at the values; columns that cannot help (dates, identifiers, names, constants) are dropped.

        ignore: columns that must not be used, whatever they hold. keep: columns that must, though they look like
        identifiers. regression: whether the target is a quantity; by default a number with more than 20 values is.
        """
        names = [str(name) for name in frame.columns]
        target = find_column(target, names, "target")
        if not sensitive:
            raise TableError("name at least one sensitive column, such as sex or race", "sensitive")
        sensitive = tuple(dict.fromkeys(find_column(name, names, "sensitive columns") for name in sensitive))
        if target in sensitive:
            raise TableError(f"{target!r} cannot be both the target and sensitive")
        ignored = {find_column(name, names, "columns to ignore") for name in ignore}
        kept = {find_column(name, names, "columns to keep") for name in keep}
        for name in ignored & {target, *sensitive}:
            raise TableError(
                f"{name!r} cannot be ignored: it is the {'target' if name == target else 'sensitive column'}"
            )
        columns = tuple(
            Column(name, "dropped", IGNORED)
            if name in ignored
            else infer(frame[name], name, name in sensitive, keep_dates, name in kept)
            for name in names
            if name != target
        )
        for column in columns:
            if column.name in sensitive and column.kind in ("date", "dropped"):
                raise TableError(f"the sensitive column {column.name!r} cannot be used: {column.note}")
        schema = cls(columns, target, sensitive, _classes(frame[target], target, regression), see_sensitive)
        schema._check_something_is_left()
        return schema

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes as text."""
        return tuple(text_of(value) for value in self.classes)

    @property
    def regression(self) -> bool:
        return not self.classes

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that enter the model, numbers first, in the order the encoder puts them."""
        return tuple(c for c in self.known if self.see_sensitive or c.name not in self.sensitive)

    @property
    def known(self) -> tuple[Column, ...]:
        """The columns that the model or its judges look at."""
        return tuple(c for kind in USED for c in self.columns if c.kind == kind)

    def seeing(self, see_sensitive: bool) -> Self:
        """The same table for a model that is given the sensitive columns, or is not."""
        return replace(self, see_sensitive=see_sensitive)

    def without(self, reasons: Mapping[str, str]) -> Self:
        """Leaves out more columns: name -> why."""
        columns = tuple(
            replace(c, kind="dropped", note=reasons[c.name]) if c.name in reasons else c for c in self.columns
        )
        schema = replace(self, columns=columns)
        schema._check_something_is_left()
        return schema

    def kind(self, name: str) -> str:
        return next(column.kind for column in self.columns if column.name == name)

    def names(self, kind: str) -> list[str]:
        """The columns of one kind that enter the model."""
        return [column.name for column in self.used if column.kind == kind]

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The used columns in clean form; a missing column is an error that names it."""
        return self._clean(frame, self.used, "the model was trained on")

    def apply_known(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The used columns and the sensitive ones, whether the model sees them or not."""
        return self._clean(frame, self.known, "the model is trained and judged on")

    def _clean(self, frame: pd.DataFrame, columns: Sequence[Column], what: str) -> pd.DataFrame:
        absent = [column.name for column in columns if column.name not in frame.columns]
        if absent:
            raise TableError(f"the table lacks {len(absent)} column(s) {what}: {', '.join(map(repr, absent[:10]))}")
        clean: dict[str, Any] = {}
        for column in columns:
            values = frame[column.name]
            if column.kind == "number":
                clean[column.name] = numbers_of(values, column.name, column.decimal, column.unit).astype(np.float32)
            else:
                clean[column.name] = categories_of(values)
        return pd.DataFrame(clean, index=frame.index)

    def imputed(self, frame: pd.DataFrame) -> dict[str, int]:
        """How many numbers of each used column are missing, so that the median is filled in; only where any is."""
        clean = self.apply(frame)
        counts = {name: int(clean[name].isna().sum()) for name in self.names("number")}
        return {name: count for name, count in counts.items() if count}

    def codes(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """The target as class numbers; a value that was not there in training is an error that names it."""
        values = categories_of(self._target(frame))
        known = {label: code for code, label in enumerate(self.labels)}
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise TableError(
                f"the target {self.target!r} holds {', '.join(map(repr, unknown[:5]))}, which training did not have; "
                f"it knows {', '.join(map(repr, self.labels))}"
            )
        return np.asarray(values.map(known), dtype=np.int64)

    def truth(self, frame: pd.DataFrame) -> NDArray[Any]:
        """The target: class numbers, or for a quantity the numbers themselves."""
        if not self.regression:
            return self.codes(frame)
        return np.asarray(numbers_of(self._target(frame), self.target), dtype=np.float64)

    def own(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        """Class numbers as the table's own values: 1 and 2 stay 1 and 2."""
        return np.asarray(self.classes)[codes]

    def missing_sensitive(self, frame: pd.DataFrame) -> dict[str, int]:
        """How many rows lack each sensitive value; only those that lack any."""
        counts = {name: int(frame[name].isna().sum()) for name in self.sensitive}
        return {name: count for name, count in counts.items() if count}

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "columns": [asdict(column) for column in self.columns], "labels": list(self.labels)}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Self:
        columns = tuple(
            Column(
                str(c["name"]),
                str(c["kind"]),
                str(c.get("note", "")),
                bool(c.get("personal", False)),
                str(c.get("decimal", "")),
                str(c.get("unit", "")),
            )
            for c in given["columns"]
        )
        classes = given["classes"]
        if not isinstance(classes, list | tuple) or not all(
            isinstance(value, str | int | float | bool) for value in classes
        ):
            raise TypeError("classes must be texts, numbers or booleans")
        sensitive = tuple(map(str, given["sensitive"]))
        return cls(columns, str(given["target"]), sensitive, tuple(classes), bool(given["see_sensitive"]))

    def _target(self, frame: pd.DataFrame) -> pd.Series:
        if self.target not in frame.columns:
            raise TableError(f"the table has no column {self.target!r}, the target the model was trained on")
        values: pd.Series = frame[self.target]
        return values

    def _check_something_is_left(self) -> None:
        if not any(c.kind in USED for c in self.columns if c.name not in self.sensitive):
            unused = [c for c in self.columns if c.kind not in USED]
            if not unused:
                raise TableError(
                    "the table has no column beside the target and the sensitive ones; there is nothing to predict from"
                )
            reasons = "; ".join(f"{c.name}: {c.note}" for c in unused)
            raise TableError(f"no usable column is left beside the target and the sensitive ones ({reasons})", "keep")


def _classes(target: pd.Series, name: str, regression: bool | None) -> tuple[Own, ...]:
    present = target.dropna()
    distinct = int(present.nunique())
    if distinct < 2:
        raise TableError(f"the target {name!r} has {distinct} distinct value(s); there is nothing to predict")
    numeric = pd.api.types.is_numeric_dtype(present) and not pd.api.types.is_bool_dtype(present)
    if not numeric and (regression or (regression is None and distinct > MOST_CLASSES)) and _written(present):
        return ()  # $32,000 and the like
    if regression and not numeric:
        raise TableError(f"the target {name!r} holds no numbers; only a number can be predicted as a quantity")
    if numeric and (regression or (regression is None and distinct > MOST_CLASSES)):
        return ()
    if distinct > MOST_CLASSES:
        raise TableError(
            f"the target {name!r} has {distinct:,} distinct values, which is not a class; choose another column or "
            "make classes of it"
        )
    if pd.api.types.is_bool_dtype(present):
        return tuple(bool(value) for value in np.sort(present.unique()))
    if numeric:
        values = np.sort(present.astype(np.float64).unique())
        return tuple(int(v) if float(v).is_integer() else float(v) for v in values)
    return tuple(sorted(categories_of(present).unique()))


def _written(present: pd.Series) -> bool:
    """Whether texts are numbers all the same, nearly all of them."""
    if pd.api.types.is_bool_dtype(present) or pd.api.types.is_datetime64_any_dtype(present):
        return False
    sample = present.map(text_of)
    return bool(amounts(sample, decimal_of(sample)).notna().mean() > 0.9)
