"""Columns that are kept in another table: the sensitive ones often may not lie beside the others."""

from __future__ import annotations

import pandas as pd

from evenhand.tables.errors import TableError, find_column


def with_columns_of(frame: pd.DataFrame, other: pd.DataFrame, by: str | None = None) -> pd.DataFrame:
    """The table with the columns of another one about the same people: row by row, or those with the same ``by``.

    A column that both have must say the same in both; otherwise the rows are not the same people.
    """
    if by is not None:
        other = _found(frame, other, by)
    elif len(other) != len(frame):
        raise TableError(
            f"the other table has {len(other):,} rows and this one {len(frame):,}; it needs one for each, in the same "
            "order, unless a column names the people in both",
            "by",
        )
    other = other.set_axis(frame.index)
    for name in [name for name in other.columns if name in frame.columns]:
        differ = int((frame[name].astype(str) != other[name].astype(str)).sum())
        if differ:
            raise TableError(
                f"column {name!r} is in both tables and differs in {differ:,} of {len(frame):,} rows: the rows are in "
                "another order, or about other people. Name the column that says who is who in both",
                "by",
            )
    return pd.concat([frame, other[[name for name in other.columns if name not in frame.columns]]], axis=1)


def _found(frame: pd.DataFrame, other: pd.DataFrame, by: str) -> pd.DataFrame:
    """The rows of the other table, in the order of this one."""
    for table, role in ((frame, "people of the table"), (other, "people of the other table")):
        find_column(by, [str(name) for name in table.columns], role)
    twice = int(other[by].duplicated().sum())
    if twice:
        raise TableError(f"column {by!r} of the other table names {twice:,} people twice; one row for each is needed")
    places = pd.Index(other[by]).get_indexer(pd.Index(frame[by]))
    absent = int((places < 0).sum())
    if absent:
        raise TableError(f"{absent:,} of {len(frame):,} people are not in the other table (by {by!r})")
    found: pd.DataFrame = other.iloc[places]
    return found
