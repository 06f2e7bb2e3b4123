"""Reading a table of one's own: separators, decimal commas, compressed files, and what kind each column is."""

from __future__ import annotations

import bz2
import csv
import difflib
import gzip
import io
import lzma
import re
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd

__all__ = ["TableError", "read_table"]

MISSING = ["?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "none", "-", "#N/A", ""]
COMPRESSED = {".gz", ".bz2", ".xz", ".zip", ".zst"}
SEPARATORS = [",", ";", "\t", "|"]
LEADING_ZERO = re.compile(r"^0\d+$")  # a code such as 01307, not a number
_DECIMAL_COMMA = re.compile(r"^\s*[-+]?\d+,\d+\s*$")
_DECIMAL_POINT = re.compile(r"^\s*[-+]?\d+\.\d+\s*$")


class TableError(ValueError):
    """The table cannot be used as it is; the message says what is wrong, where, and how to mend it."""


def read_table(path: str | Path, *, separator: str | None = None, decimal: str | None = None) -> pd.DataFrame:
    """A CSV, TSV or parquet file as a frame, compressed (gz, bz2, xz, zip, zst) or not.

    The separator (comma, semicolon, tab, bar), decimal commas and the encoding (UTF-8 with or without byte order mark,
    UTF-16 with one, otherwise Windows-1252) are found by looking at the first lines. "?", "NA" and such are missing.
    Codes with leading zeros (postcodes, say) stay text.
    """
    path = Path(path)
    if not path.exists():
        raise TableError(f"there is no file {path}{_neighbours(path)}")
    if path.is_dir():
        raise TableError(f"{path} is a folder; give the file inside it")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty (0 bytes)")
    kind = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED][-1:]
    if kind in ([".parquet"], [".pq"]):
        frame = _parquet(path)
    elif kind in ([".csv"], [".tsv"], [".txt"], [".tab"], [".data"], []):
        frame = _text(path, separator, decimal)
    else:
        raise TableError(
            f"{path} ends in {kind[0]}; a table is read from .csv, .tsv or .parquet (.gz, .bz2, .xz, .zip)"
        )
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    _refuse_twins(list(frame.columns), path)
    if len(frame) == 0:
        raise TableError(f"{path} has a header but no rows")
    return frame


def find_column(name: str, names: Sequence[str], role: str) -> str:
    """The column of that name, or an error that offers the closest ones."""
    if name in names:
        return name
    folded = {other.casefold(): other for other in names}
    near = difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(repr(folded[other]) for other in near)}?"
        if near
        else f"the columns are {', '.join(map(repr, list(names)[:20]))}" + (" ..." if len(names) > 20 else "")
    )
    raise TableError(f"the table has no column {name!r} for --{role}; {hint}")


def _parquet(path: Path) -> pd.DataFrame:
    try:
        from pyarrow import parquet

        _refuse_twins(parquet.read_schema(path).names, path)
        return pd.read_parquet(path)
    except TableError:
        raise
    except ImportError as error:
        raise TableError(f"reading {path} needs pyarrow; pip install pyarrow") from error
    except Exception as error:  # pyarrow has exceptions of its own
        raise TableError(f"{path} is not a parquet file that can be read: {_first_line(error)}") from error


def _text(path: Path, separator: str | None, decimal: str | None) -> pd.DataFrame:
    try:
        with _open(path) as file:
            head = file.read(1 << 18)
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise TableError(f"{path} cannot be unpacked: {_first_line(error)}") from error
    if b"\x00" in head[:1000] and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{path} is a binary file, not a table; save it as .csv, .tsv or .parquet")
    encoding, text = _decode(head)
    lines = text.splitlines()
    if len(head) == 1 << 18:
        lines = lines[:-1]  # the last one may be cut
    sep = separator or _separator(lines[:60], path)
    dec = decimal or _decimal(lines[:200], sep)
    _refuse_twins(_header(text, sep), path)  # pandas would rename the second one to "name.1"
    try:
        with _open(path) as file:
            return pd.read_csv(
                cast(Any, file),
                sep=sep,
                decimal=dec,
                dtype=dict.fromkeys(_codes(lines, sep), str),
                encoding=encoding,
                skipinitialspace=True,
                na_values=MISSING,
                keep_default_na=True,
                low_memory=False,
            )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise TableError(
            f"{path} cannot be read as a table separated by {_named(sep)}: {_first_line(error)}; "
            "mend that line, or name the separator with --separator"
        ) from error


def _open(path: Path) -> IO[bytes]:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if suffix == ".bz2":
        return bz2.open(path, "rb")
    if suffix == ".xz":
        return lzma.open(path, "rb")
    if suffix == ".zip":
        archive = zipfile.ZipFile(path)
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) != 1:
            raise TableError(f"{path} holds {len(names)} files; a zipped table must be the only file in its archive")
        return archive.open(names[0])
    if suffix == ".zst":
        try:
            import zstandard  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            raise TableError(f"reading {path} needs zstandard; pip install zstandard") from error
        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(path.open("rb")))
    return path.open("rb")


def _decode(head: bytes) -> tuple[str, str]:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", head[: len(head) // 2 * 2].decode("utf-16", errors="ignore")
    try:
        return "utf-8-sig", head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start > len(head) - 5:  # a character cut in two at the end
            return "utf-8-sig", head[: error.start].decode("utf-8-sig")
        return "cp1252", head.decode("cp1252", errors="replace")


def _separator(lines: list[str], path: Path) -> str:
    """The separator that splits the first lines into the same number of fields, the more the better."""
    best, found = 1, None
    for sep in SEPARATORS:
        widths = [len(row) for row in csv.reader(lines, delimiter=sep, skipinitialspace=True) if row]
        if not widths:
            continue
        agree = sum(width == widths[0] for width in widths) / len(widths)
        if agree > 0.9 and widths[0] > best:
            best, found = widths[0], sep
    if found is None:
        shown = lines[0][:60] if lines else ""
        raise TableError(
            f"{path} does not look like a table with several columns; its first line is {shown!r}. "
            "Name the separator, for example --separator ';'"
        )
    return found


def _header(text: str, sep: str) -> list[str]:
    """The names in the first line that is not empty; columns without a name do not count."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=True)
    first: list[str] = next((row for row in rows if any(cell.strip() for cell in row)), [])
    return [cell.strip() for cell in first if cell.strip()]


def _codes(lines: list[str], sep: str) -> list[str]:
    """The columns with a value like 01307 in the first lines: read as numbers they would lose their zeros."""
    rows = csv.reader(lines, delimiter=sep, skipinitialspace=True)
    header: list[str] = next((row for row in rows if any(cell.strip() for cell in row)), [])
    zeros = {i for row in rows if len(row) == len(header) for i, cell in enumerate(row) if LEADING_ZERO.match(cell)}
    return [header[i] for i in sorted(zeros)]


def _refuse_twins(names: Sequence[str], path: Path) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{path} has more than one column named {', '.join(map(repr, twice))}; rename all but one")


def _decimal(lines: list[str], sep: str) -> str:
    if sep == ",":
        return "."
    cells = [cell for row in csv.reader(lines[1:], delimiter=sep) for cell in row]
    commas = sum(bool(_DECIMAL_COMMA.match(cell)) for cell in cells)
    points = sum(bool(_DECIMAL_POINT.match(cell)) for cell in cells)
    return "," if commas > points else "."


def _neighbours(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"; there is no folder {folder} either"
    near = difflib.get_close_matches(path.name, [p.name for p in folder.iterdir()], n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else f" (looked in {folder.resolve()})"


def _named(sep: str) -> str:
    return {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}.get(sep, repr(sep))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
