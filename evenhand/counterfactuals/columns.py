"""The same rows with other values in some columns."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.counterfactuals.texts import as_texts
from evenhand.variations import Variations

__all__ = ["alter_columns", "swap_column"]

Array = NDArray[Any]


def alter_columns(X: Any, changes: Mapping[Any, Sequence[Any]], *, keep_original: bool = True) -> Variations:
    """Each row of X with every combination of the values in `changes`: a `Variations` of values (n, m, d).

    X: a pandas or polars frame, a pyarrow Table (its versions are pandas frames), or an array (n, d) whose columns are
        named by their position.
    changes: the values which each column takes. The name of a one-hot block stands for its columns: with columns
        relationship_Husband, ..., relationship_Wife, `{"relationship": ["Husband", "Wife"]}` sets the whole block.
    keep_original: version 0 is the row as it is, followed by the combinations. If every row already has one of the
        combinations, as with sex and race below, the row takes the place of its own one: m is the number of
        combinations and no version comes twice. Otherwise m is one more. With `False` the versions are the
        combinations alone, in the order of `itertools.product`, which is what S-Con of the paper compares: Husband
        with Wife, whatever the row was.

    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [39.0, 50.0], "sex": [1, 0]})
    >>> alter_columns(X, {"sex": [0, 1]}).values
    array([[[39.,  1.],
            [39.,  0.]],
    <BLANKLINE>
           [[50.,  0.],
            [50.,  1.]]])
    >>> alter_columns(X, {"sex": [0, 1]}, keep_original=False).values[:, :, 1]
    array([[0., 1.],
           [0., 1.]])
    """
    names, table, like = _open(X)
    if not changes:
        raise ValueError("changes is empty: name at least one column and the values it takes")
    altered: list[int] = []
    choices: list[list[Array]] = []  # for each name in changes, what its columns become
    for name, values in changes.items():
        if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)) or len(values) == 0:
            raise ValueError(f"changes[{name!r}] must be a list of values, got {values!r}")
        twice = [value for value in values if list(values).count(value) > 1]
        if twice:
            raise ValueError(f"changes[{name!r}] holds {twice[0]!r} twice; give each value once")
        columns, settings = _settings(name, list(values), names, table, like)
        clash = [names[j] for j in columns if j in altered]
        if clash:
            raise ValueError(f"changes sets column {clash[0]!r} twice; name a column or its one-hot block, not both")
        altered += columns
        choices.append(settings)

    combinations = [np.concatenate(parts) for parts in product(*choices)]
    n, m = len(table), len(combinations)
    versions = np.repeat(table[:, None], m, axis=1)
    for k, combination in enumerate(combinations):
        versions[:, k, altered] = combination
    if not keep_original:
        return Variations(versions, np.arange(n), like)

    own = np.all(versions[:, :, altered] == table[:, None, altered], axis=2)  # (n, m): is the row this combination?
    if not own.any(axis=1).all():
        return Variations(np.concatenate([table[:, None], versions], axis=1), np.arange(n), like)
    # The row's own combination first, the others in their order.
    order = np.argsort(np.where(np.arange(m) == own.argmax(axis=1)[:, None], -1, np.arange(m)), axis=1)
    return Variations(versions[np.arange(n)[:, None], order], np.arange(n), like)


def swap_column(X: Any, column: Any, swaps: Callable[[list[str]], Variations]) -> Variations:
    """Versions of the rows whose text has versions: swapped texts in `column`, the other columns as they are.

    X: a pandas or polars frame, or a pyarrow Table. swaps: `TokenSwap`, `GenderSwap` or any function of texts.
    Version 0 is the row as it is; where the swap looks at a passage only, version 0 has the passage.

    >>> import pandas as pd
    >>> from evenhand.counterfactuals import TokenSwap
    >>> X = pd.DataFrame({"says": ["no token", "a gay man"], "age": [30, 40]})
    >>> swap_column(X, "says", TokenSwap(["gay", "deaf"])).values.tolist()
    [[['a gay man', 40], ['a deaf man', 40]]]
    """
    names, table, like = _open(X)
    if column not in names or like is None:
        known = ", ".join(map(str, names[:12]))
        raise ValueError(f"there is no column {column!r} of texts; X must be a frame, and has {known}")
    place = names.index(column)
    said = swaps(as_texts(table[:, place].tolist()))
    values = np.repeat(table[said.rows][:, None].astype(object), said.values.shape[1], axis=1)
    values[:, :, place] = said.values
    return Variations(values, said.rows, like)


def _open(X: Any) -> tuple[list[Any], Array, Any]:
    """Column names, the cells as one array (n, d), and the empty frame (None for an array)."""
    if hasattr(X, "column_names"):  # a pyarrow Table, whose ``columns`` are the data themselves
        X = X.to_pandas()
    if not hasattr(X, "columns"):
        table = np.asarray(X)
        if table.ndim != 2:
            raise ValueError(f"X must be a frame or an array (n, d), got shape {table.shape}")
        return list(range(table.shape[1])), table, None
    names = list(X.columns)
    if len(set(names)) < len(names):
        raise ValueError(f"X has two columns named {next(c for c in names if names.count(c) > 1)!r}; rename one")
    if _is_polars(X):
        like = X.clear()
        numeric = all(dtype.is_numeric() or str(dtype) == "Boolean" for dtype in X.dtypes)
    else:
        like = X.iloc[:0]
        numeric = all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in X.dtypes)
    cells = [X[name].to_numpy() for name in names]
    dtype = np.result_type(*(column.dtype for column in cells)) if numeric and cells else np.dtype(object)
    table = np.empty((len(X), len(names)), dtype=dtype)
    for j, column in enumerate(cells):
        table[:, j] = column
    return names, table, like


def _settings(name: Any, values: list[Any], names: list[Any], table: Array, like: Any) -> tuple[list[int], list[Array]]:
    """The columns that `name` stands for, and what each of `values` puts into them."""
    if name in names:
        j = names.index(name)
        held = table.dtype if like is None else (like.schema[name] if _is_polars(like) else like.dtypes[name])
        for value in values:
            if not _fits(value, held, like, name):
                raise ValueError(
                    f"column {name!r} is of type {held} and cannot hold {value!r}; "
                    "give a value of that type, or convert the column first"
                )
        _warn_of_typos(name, values, table[:, j])
        return [j], [np.array([value], dtype=table.dtype) for value in values]

    block = [j for j, other in enumerate(names) if isinstance(other, str) and other.startswith(f"{name}_")]
    if not block:
        if like is None:
            raise ValueError(
                f"X is an array of {len(names)} columns; name them by position 0 to {len(names) - 1}, not {name!r}"
            )
        heads = {str(other).rpartition("_")[0] for other in names} - {""}
        raise ValueError(f"X has no column {name!r} and no one-hot block {name}_*; {_closest(name, [*names, *heads])}")
    categories = [names[j].removeprefix(f"{name}_") for j in block]
    unknown = [value for value in values if str(value) not in categories]
    if unknown:
        raise ValueError(
            f"the one-hot block {name}_* has no category {str(unknown[0])!r}; {_closest(unknown[0], categories)}"
        )
    cells = table[:, block]
    if not np.all((cells == 0) | (cells == 1)) or np.any(cells.astype(float).sum(axis=1) > 1):
        raise ValueError(
            f"the columns {name}_* are not one-hot (a single 1, otherwise 0, in each row); "
            "alter the columns before they are standardised, or name each column by itself"
        )
    return block, [np.array([c == str(value) for c in categories]).astype(table.dtype) for value in values]


def _fits(value: Any, held: Any, like: Any, name: Any) -> bool:
    """Whether a column of type `held` can hold the value without changing it."""
    try:
        if _is_polars(like):
            kept = type(like)({name: [value]}, schema={name: held})[name][0]
        elif hasattr(held, "categories"):  # a pandas categorical turns what it does not know into NaN
            return bool(value in list(held.categories))
        elif like is None:
            kept = np.array([value]).astype(held)[0]
        else:
            kept = type(like)({name: [value]}).astype({name: held})[name].iloc[0]
        return bool(kept == value) or bool(kept != kept and value != value)
    except (TypeError, ValueError, OverflowError):
        return False
    except Exception as error:  # polars has exceptions of its own, and is not imported here
        if type(error).__module__.startswith("polars"):
            return False
        raise


def _warn_of_typos(name: Any, values: list[Any], column: Array) -> None:
    """A text which no row has, but nearly, is probably misspelt: 'Housband'."""
    if not any(isinstance(value, str) for value in values):
        return
    present = {value for value in column.tolist() if isinstance(value, str)}
    for value in values:
        near = difflib.get_close_matches(str(value), present, n=1, cutoff=0.85)
        if isinstance(value, str) and value not in present and near:
            warnings.warn(f"no row has {value!r} in column {name!r}; is {near[0]!r} meant?", stacklevel=4)


def _closest(name: Any, known: Sequence[Any]) -> str:
    near = difflib.get_close_matches(str(name), [str(k) for k in known], n=3, cutoff=0.4)
    return f"closest: {', '.join(near)}" if near else f"there are: {', '.join(map(str, list(known)[:10]))}"


def _is_polars(frame: Any) -> bool:
    return hasattr(type(frame), "schema")
