"""Reading a table of one's own: text, parquet, Excel, JSON, a database or standard input, as one frame."""

from __future__ import annotations

import difflib
import json
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from evenhand.tables.delimited import decode, first_line, open_packed, read_delimited, standard_input
from evenhand.tables.errors import TableError, find_column, find_columns

__all__ = ["TableError", "find_column", "find_columns", "read_sql", "read_table"]

COMPRESSED = {".gz", ".bz2", ".xz", ".zip", ".zst"}
STDIN = "-"


def read_table(
    path: str | Path,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    one_column: bool = False,
) -> pd.DataFrame:
    """A CSV, TSV, parquet, Excel or JSON file as a frame, compressed (gz, bz2, xz, zip, zst) or not; "-" is standard
    input.

    The separator (comma, semicolon, tab, bar), decimal commas and the encoding (UTF-8 or UTF-16, with or without
    byte order mark, otherwise Windows-1252) are found by looking at the first lines. "?", "NA" and such are missing.
    Codes with leading zeros (postcodes, say) stay text. Columns of one name are told apart by a number. What was
    altered is said in ``frame.attrs["notes"]``. header=False: the first line is data, columns are called "column 1" ...
    one_column: a file that nothing splits is a table of one column (texts), not a mistake.
    """
    if str(path) == STDIN:
        with tempfile.TemporaryDirectory() as folder:
            return _read(standard_input(Path(folder)), separator, decimal, header, "standard input", one_column)
    path = Path(path)
    if not path.exists():
        raise TableError(f"there is no file {path}{_neighbours(path)}")
    if path.is_dir():
        raise TableError(f"{path} is a folder; give the file inside it")
    return _read(path, separator, decimal, header, str(path), one_column)


def read_sql(query: str, url: str) -> pd.DataFrame:
    """The rows that a query of a database gives. url as SQLAlchemy has it, such as sqlite:///people.db."""
    try:
        if url.startswith("sqlite:///"):
            file = Path(url.removeprefix("sqlite:///"))
            if not file.is_file():
                raise TableError(f"there is no database {file}{_neighbours(file)}")
            connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
            try:
                frame = pd.read_sql_query(query, connection)
            finally:
                connection.close()
        else:
            frame = _from_alchemy(query, url)
    except TableError:
        raise
    except Exception as error:  # each driver has its own
        raise TableError(f"the query failed: {first_line(error)}") from error
    return _named_apart(frame, [str(name) for name in frame.columns], "the query")


def _from_alchemy(query: str, url: str) -> pd.DataFrame:
    try:
        import sqlalchemy
    except ImportError as error:
        raise TableError("databases other than SQLite need SQLAlchemy; pip install sqlalchemy") from error
    engine = sqlalchemy.create_engine(url)
    try:
        with engine.connect() as connection:
            return pd.read_sql_query(sqlalchemy.text(query), connection)
    finally:
        engine.dispose()


def _read(
    path: Path, separator: str | None, decimal: str | None, header: bool, shown: str, one_column: bool
) -> pd.DataFrame:
    if path.stat().st_size == 0:
        raise TableError(f"{shown} is empty (0 bytes)")
    kind = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED][-1:]
    if kind in ([".parquet"], [".pq"]):
        frame, names = _parquet(path)
    elif kind in ([".xlsx"], [".xlsm"], [".ods"]):
        frame, names = _excel(path, header)
    elif kind in ([".jsonl"], [".ndjson"], [".json"]):
        frame, names = _json(path)
    elif kind in ([".csv"], [".tsv"], [".txt"], [".tab"], [".data"], []):
        frame, names = read_delimited(path, separator, decimal, header, one_column)
    else:
        raise TableError(
            f"{path} ends in {kind[0]}; a table is read from .csv, .tsv, .parquet, .xlsx or .jsonl (.gz, "
            ".bz2, .xz, .zip)"
        )
    frame = _named_apart(frame, names, shown)
    if len(frame) == 0:
        raise TableError(f"{shown} has a header but no rows")
    return frame


def _named_apart(frame: pd.DataFrame, names: Sequence[str], shown: str) -> pd.DataFrame:
    """Columns with names of their own: the second "a" becomes "a (2)", a column without a name keeps pandas' one."""
    notes, taken = list(frame.attrs.get("notes", [])), set[str]()
    columns = [str(name).strip() for name in frame.columns]
    if len(names) == len(columns):
        columns = [name.strip() or column for name, column in zip(names, columns)]
    for i, name in enumerate(columns):
        apart, count = name, 1
        while apart in taken or (count > 1 and apart in columns):
            count += 1
            apart = f"{name} ({count})"
        if apart != name:
            notes.append(f"{shown} has more than one column {name!r}; number {i + 1} is called {apart!r} here")
        taken.add(apart)
        columns[i] = apart
    frame.columns = pd.Index(columns)
    frame.attrs["notes"] = notes
    return frame


def _parquet(path: Path) -> tuple[pd.DataFrame, list[str]]:
    try:
        from pyarrow import parquet

        names = list(parquet.read_schema(path).names)
        table = parquet.read_table(path) if len(set(names)) == len(names) else parquet.ParquetFile(path).read()
        if len(set(names)) < len(names):  # pandas refuses twins
            table = table.rename_columns([f"{i}" for i in range(len(names))])
            return table.to_pandas(), names
        frame: pd.DataFrame = table.to_pandas()
        return frame, [str(name) for name in frame.columns]
    except ImportError as error:
        raise TableError(f"reading {path} needs pyarrow; pip install pyarrow") from error
    except Exception as error:  # pyarrow has exceptions of its own
        raise TableError(f"{path} is not a parquet file that can be read: {first_line(error)}") from error


def _excel(path: Path, header: bool) -> tuple[pd.DataFrame, list[str]]:
    """The first sheet."""
    try:
        with pd.ExcelFile(path) as book:
            sheets = book.sheet_names
            cells = pd.read_excel(book, header=None, dtype=object)
    except ImportError as error:
        raise TableError(f"reading {path} needs openpyxl; pip install openpyxl, or save it as CSV") from error
    except Exception as error:  # each engine has exceptions of its own
        raise TableError(f"{path} is not a spreadsheet that can be read: {first_line(error)}") from error
    cells = cells.dropna(how="all").dropna(how="all", axis=1)
    if cells.empty:
        raise TableError(f"the first sheet of {path} is empty")
    if header:
        names = ["" if pd.isna(cell) else str(cell) for cell in cells.iloc[0]]
        cells = cells.iloc[1:]
    else:
        names = [f"column {i + 1}" for i in range(cells.shape[1])]
    frame = cells.reset_index(drop=True).infer_objects()
    frame.columns = pd.Index([name or f"Unnamed: {i}" for i, name in enumerate(names)])
    if len(sheets) > 1:
        frame.attrs["notes"] = [f"{path} has {len(sheets)} sheets; only the first one, {sheets[0]!r}, is read"]
    return frame, names


def _json(path: Path) -> tuple[pd.DataFrame, list[str]]:
    """One object a line, or an array of objects."""
    try:
        with open_packed(path) as file:
            text = decode(file.read())[1].strip()
        rows = (
            json.loads(text)
            if text.startswith("[")
            else [json.loads(line) for line in text.split("\n") if line.strip()]
        )
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("a row is no object")
        frame = pd.DataFrame(rows)
    except (ValueError, OSError, EOFError) as error:
        raise TableError(
            f"{path} is neither JSON lines (one object a line) nor an array of objects: {first_line(error)}"
        ) from error
    nested = [str(name) for name in frame.columns if frame[name].map(lambda v: isinstance(v, list | dict)).any()]
    if nested:
        raise TableError(
            f"{path} holds lists or objects inside column(s) {', '.join(map(repr, nested[:5]))}; flatten them"
        )
    frame = frame.infer_objects()
    return frame, [str(name) for name in frame.columns]


def _neighbours(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"; there is no folder {folder} either"
    near = difflib.get_close_matches(path.name, [p.name for p in folder.iterdir()], n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else f" (looked in {folder.resolve()})"
