"""Any results file as a table."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "experiments" / "results", ROOT / "benchmarks" / "results")


def results(
    *names: str,
    columns: list[str] | None = None,
    mean: list[str] | None = None,
    where: dict[str, object] | None = None,
    picture: bool = False,
    folders: tuple[Path, ...] = FOLDERS,
) -> str:
    """The rows of results files (CSV, JSON records, or a text) one below the other.

    columns: which ones; mean: average over everything but these columns; where: only rows with these values; picture:
    the file's figure above its table.
    """
    paths = [find(name, folders) for name in names]
    if paths[0].suffix == ".txt":
        return "> " + paths[0].read_text().strip()
    frame = pd.concat([read(path) for path in paths], ignore_index=True)
    for column, value in (where or {}).items():
        frame = frame[frame[column] == value]
    if mean:
        numbers = [c for c in frame.select_dtypes("number") if c not in [*mean, "seed", "split"]]
        frame = frame.groupby(mean, sort=False, dropna=False)[numbers].mean().reset_index()
    if "splits" in frame:
        frame["splits"] = frame["splits"].map(lambda n: "-" if n != n else str(int(n)))
    shown = columns or list(frame.columns)
    stem = paths[0].stem
    figure = f"![{stem}](../experiments/results/{stem}.png)\n\n" if picture else ""
    return figure + table(shown, [[cell(value) for value in row] for row in frame[shown].itertuples(index=False)])


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def find(name: str, folders: tuple[Path, ...] = FOLDERS) -> Path:
    """A results file by its name."""
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"no results file {name}; run the script that makes it, or take its block out")


def read(path: Path) -> pd.DataFrame:
    """A CSV file, or the records of a JSON file."""
    if path.suffix == ".csv":
        return pd.read_csv(path)
    records = json.loads(path.read_text())
    return pd.DataFrame(records if isinstance(records, list) else [records])


def cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    if value != value:
        return "-"
    if value.is_integer() and abs(value) >= 2:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 0.1 else f"{value:.3f}"
