"""Reading a table of texts from a file, with errors that name the missing column."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

__all__ = ["read_texts", "text_column"]


def read_texts(path: str | os.PathLike[str], columns: Sequence[str], texts: Sequence[str]) -> pd.DataFrame:
    """The table in a CSV, JSON-lines or parquet file, after checking that it has the columns. Pickle is refused.

    In the columns `texts` only an empty field is missing: the comment "null" is a comment.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is not there; download the data set and give the path of its file")
    with file.open("rb") as opened:
        start = opened.read(4)
    kinds = [suffix.lower() for suffix in file.suffixes]
    if start[:1] == b"\x80" or {".pkl", ".pickle", ".p"} & set(kinds):
        raise ValueError(
            f"{file.name} is a pickle, which can run any code when it is read; "
            "convert it to CSV, JSON lines or parquet on a machine where you trust it"
        )
    if start == b"PAR1" or ".parquet" in kinds:
        try:
            frame = pd.read_parquet(file)
        except ImportError as error:
            raise ImportError("reading parquet needs pyarrow: pip install pyarrow") from error
    elif {".json", ".jsonl", ".ndjson"} & set(kinds):
        try:
            frame = pd.read_json(file, lines=True, dtype=False)
        except ValueError as error:
            raise ValueError(f"{file.name} is not JSON lines (one object a line): {error}") from error
    else:
        try:
            header = pd.read_csv(file, nrows=0).columns
            frame = pd.read_csv(
                file,
                keep_default_na=False,
                na_values={name: [""] for name in header if name in texts}
                | {name: ["", "nan", "NaN", "NA"] for name in header if name not in texts},
                dtype={name: str for name in header if name in texts},
                low_memory=False,
            )
        except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
            raise ValueError(f"{file.name} is not a CSV file: {error}") from error
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{file.name} has no column {', '.join(map(repr, missing))}; "
            f"it has {', '.join(map(repr, frame.columns[:40]))}"
        )
    return frame


def text_column(frame: pd.DataFrame, name: str) -> list[str]:
    """The column as texts; missing ones are counted and located, not dropped."""
    texts = frame[name].tolist()
    wrong = [i for i, text in enumerate(texts) if not isinstance(text, str)]
    if wrong:
        raise ValueError(
            f"{name!r} is missing or no text in {len(wrong)} of {len(texts)} rows (first: row {wrong[0]}); "
            "drop them from the file first"
        )
    return texts
