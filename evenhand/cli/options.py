"""Options that several commands share, and reading the table that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.console import UserError

if TYPE_CHECKING:
    import pandas as pd

Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON on standard output, and nothing else there.")
]
Seed = Annotated[int, typer.Option(help="Seed of everything random: the same seed gives the same result.")]
Separator = Annotated[str | None, typer.Option(help="Field separator; found by itself when not given.")]
Decimal = Annotated[str | None, typer.Option(help="Decimal sign, '.' or ','; found by itself when not given.")]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line is data; columns are called 'column 1', 'column 2', ...")
]
Sql = Annotated[str | None, typer.Option(help="A query to read the table from, instead of DATA; with --url.")]
Url = Annotated[str | None, typer.Option(help="The database of --sql, such as sqlite:///people.db.")]
Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA", help="CSV, TSV, parquet, Excel or JSON lines, compressed or not; - is standard input."
    ),
]
Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="model.evenhand, a run folder, model.onnx, or module:object.")
]


def read(
    data: str | None,
    separator: str | None = None,
    decimal: str | None = None,
    no_header: bool = False,
    sql: str | None = None,
    url: str | None = None,
    say: Any = None,
) -> pd.DataFrame:
    """The table that the options name; what was altered on the way is said."""
    from evenhand.tables import read_sql, read_table

    if (sql is None) == (data is None):
        raise UserError("give either DATA or --sql with --url")
    if sql is not None:
        if url is None:
            raise UserError("--sql needs --url, such as sqlite:///people.db")
        frame = read_sql(sql, url)
    else:
        assert data is not None
        frame = read_table(data, separator=separator, decimal=decimal, header=not no_header)
    for note in frame.attrs.get("notes", []) if say is not None else []:
        say(note)
    return frame
