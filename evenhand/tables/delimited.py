"""Tables as text: separator, decimal sign, encoding and header are found by looking at the first lines."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import sys
import zipfile
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd

from evenhand.tables.errors import TableError

MISSING = ["?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "-", "#N/A", ""]
SEPARATORS = [",", ";", "\t", "|", " "]  # spaces only where nothing else splits the lines
LEADING_ZERO = re.compile(r"^0\d+$")  # a code such as 01307, not a number
_DECIMAL_COMMA = re.compile(r"^\s*[-+]?\d+,\d+\s*$")
_DECIMAL_POINT = re.compile(r"^\s*[-+]?\d+\.\d+\s*$")
HEAD = 1 << 18


def read_delimited(
    path: Path, separator: str | None = None, decimal: str | None = None, header: bool = True, one_column: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """The table, and its column names as they stand in the file (twins included)."""
    try:
        with open_packed(path) as file:
            head = file.read(HEAD)
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise TableError(f"{path} cannot be unpacked: {first_line(error)}") from error
    if b"\x00" in head[:1000] and not _utf_16(head):
        raise TableError(f"{path} is a binary file, not a table; save it as .csv, .tsv or .parquet")
    encoding, text = decode(head)
    lines = lines_of(text)
    if len(head) == HEAD:
        lines = lines[:-1]  # the last one may be cut
    sep = separator or _separator(lines[:60], path, one_column)
    dec = decimal or _decimal(lines[:200], sep)
    names = _header(text, sep)
    given: dict[str, Any] = {"dtype": dict.fromkeys(_codes(lines, sep), str)}
    if not header:
        names = [f"column {i + 1}" for i in range(len(names))]
        given = {"header": None, "names": names, "dtype": _positions(lines, sep, names)}
    try:
        with open_packed(path) as file:
            frame = pd.read_csv(
                cast(Any, file),
                sep=sep,
                decimal=dec,
                encoding=encoding,
                skipinitialspace=True,
                na_values=MISSING,
                keep_default_na=True,
                low_memory=False,
                **given,
            )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise TableError(
            f"{path} cannot be read as a table separated by {_named(sep)}: {_said(error)}; mend that "
            "line, or name "
            "the separator",
            "separator",
        ) from error
    return _none_of_numbers(frame), names


def _none_of_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Among numbers "none" is a missing one; among words it is a word: a degree, a diagnosis."""
    for i, kind in enumerate(frame.dtypes):
        if not (pd.api.types.is_object_dtype(kind) or isinstance(kind, pd.StringDtype)):
            continue
        column = frame.iloc[:, i]
        none = column.map(lambda cell: isinstance(cell, str) and cell.strip().casefold() == "none").to_numpy(dtype=bool)
        if not none.any():
            continue
        others = column[~none & column.notna().to_numpy()]
        if len(others) and pd.to_numeric(others, errors="coerce").notna().all() and not others.map(_coded).any():
            frame.isetitem(i, pd.to_numeric(column.mask(none), errors="coerce").to_numpy())
    return frame


def _coded(cell: object) -> bool:
    return isinstance(cell, str) and LEADING_ZERO.match(cell) is not None


def open_packed(path: Path) -> IO[bytes]:
    """The file as bytes, unpacked by its ending."""
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


def standard_input(folder: Path) -> Path:
    """What is piped in, kept in a file of the folder, so that it can be looked at twice."""
    path = folder / "standard-input.csv"
    with path.open("wb") as file:
        while part := sys.stdin.buffer.read(1 << 20):
            file.write(part)
    return path


def decode(head: bytes) -> tuple[str, str]:
    """Encoding and text: UTF-8 or UTF-16, with or without byte order mark, otherwise Windows-1252."""
    wide = _utf_16(head)
    if wide:
        return wide, head[: len(head) // 2 * 2].decode(wide, errors="ignore")
    try:
        return "utf-8-sig", head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start > len(head) - 5:  # a character cut in two at the end
            return "utf-8-sig", head[: error.start].decode("utf-8-sig")
        return "cp1252", head.decode("cp1252", errors="replace")


def _utf_16(head: bytes) -> str | None:
    """Which kind of UTF-16 it is, if any: by its byte order mark, or because nearly every other byte is 0, as the Latin
    letters, digits and separators of a table have it."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    begin = head[:1000]
    first, second = (part.count(0) / max(len(part), 1) for part in (begin[::2], begin[1::2]))
    if max(first, second) < 0.8 or min(first, second) > 0.05:
        return None
    return "utf-16-le" if second > first else "utf-16-be"


def lines_of(text: str) -> list[str]:
    """Lines as a CSV file has them: U+2028, U+0085 and the like are characters inside a cell."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def first_line(error: Exception) -> str:
    """The first line of an error's text."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _separator(lines: list[str], path: Path, one_column: bool) -> str:
    """The separator that splits the first lines into the same number of fields, the more the better."""
    best, found = 1, None
    for sep in SEPARATORS:
        if sep == " " and found is not None:
            break
        widths = [len(row) for row in csv.reader(lines, delimiter=sep, skipinitialspace=True) if row]
        if not widths:
            continue
        agree = sum(width == widths[0] for width in widths) / len(widths)
        if agree > 0.9 and widths[0] > best:
            best, found = widths[0], sep
    if found is None and one_column and all(len(row) == 1 for row in csv.reader(lines) if row):
        return ","
    if found is None:
        raise TableError(
            f"{path} does not look like a table with several columns: commas, semicolons, tabs and bars do not split "
            "its first lines into equally many fields. Name the separator, such as ';'",
            "separator",
        )
    return found


def _header(text: str, sep: str) -> list[str]:
    """The cells of the first line that is not empty."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=True)
    first: list[str] = next((row for row in rows if any(cell.strip() for cell in row)), [])
    return [cell.strip() for cell in first]


def _codes(lines: list[str], sep: str) -> list[str]:
    """The columns with a value like 01307 in the first lines: read as numbers they would lose their zeros."""
    rows = csv.reader(lines, delimiter=sep, skipinitialspace=True)
    header: list[str] = next((row for row in rows if any(cell.strip() for cell in row)), [])
    zeros = {i for row in rows if len(row) == len(header) for i, cell in enumerate(row) if LEADING_ZERO.match(cell)}
    return [header[i] for i in sorted(zeros)]


def _positions(lines: list[str], sep: str, names: list[str]) -> dict[str, type[str]]:
    """The same for a table without header."""
    rows = list(csv.reader(lines, delimiter=sep, skipinitialspace=True))
    zeros = {i for row in rows if len(row) == len(names) for i, cell in enumerate(row) if LEADING_ZERO.match(cell)}
    return {names[i]: str for i in sorted(zeros)}


def _decimal(lines: list[str], sep: str) -> str:
    if sep == ",":
        return "."
    cells = [cell for row in csv.reader(lines[1:], delimiter=sep) for cell in row]
    commas = sum(bool(_DECIMAL_COMMA.match(cell)) for cell in cells)
    points = sum(bool(_DECIMAL_POINT.match(cell)) for cell in cells)
    return "," if commas > points else "."


def _said(error: Exception) -> str:
    """What the parser says, without whose parser it is."""
    return first_line(error).removeprefix("Error tokenizing data. ").removeprefix("C error: ")


def _named(sep: str) -> str:
    return {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars", " ": "spaces"}.get(sep, repr(sep))
