"""Fill the tables of a document from the committed results, so that no number is typed by hand.

    python tools/fill_docs.py docs/reproduction.md docs/frontier.md

A block begins with  <!-- results: NAME.csv[+OTHER.csv] [columns="a,b"] [mean=by] [where=column=value] [picture=yes] -->
and ends with  <!-- end -->  and what is between is replaced. ``mean`` averages over everything but the given column(s);
the rows of several files stand one below the other.
"""

import json
import re
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results"
BENCHMARKS = ROOT / "benchmarks" / "results"  # where a file is that the experiments do not have
BLOCK = re.compile(r"(<!-- results: (\S+?\.(?:csv|txt|json))((?: [^>]*?)?) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str, results: Path = RESULTS) -> str:
    """The document with every block made anew."""

    def find(name: str) -> Path:
        return results / name if (results / name).exists() else BENCHMARKS / name

    return BLOCK.sub(lambda m: m[1] + "\n" + block([find(n) for n in m[2].split("+")], m[3]) + "\n" + m[4], text)


def block(paths: list[Path], options: str) -> str:
    path = paths[0]
    missing = [p.name for p in paths if not p.exists()]
    if missing:
        return f"(no full run yet: {', '.join(missing)})\n"
    if path.suffix == ".txt":
        return "> " + path.read_text().strip() + "\n"
    given = dict(re.findall(r"(columns|mean|where|picture)=(\"[^\"]*\"|\S+)", options))
    given = {name: value.strip('"') for name, value in given.items()}
    frame = pd.concat([read(p) for p in paths], ignore_index=True)
    if "where" in given:
        column, value = given["where"].split("=")
        frame = frame[frame[column].astype(str) == value]
    if "mean" in given:
        by = given["mean"].split(",")
        numbers = [c for c in frame.select_dtypes("number") if c not in [*by, "seed", "split"]]
        frame = frame.groupby(by, sort=False, dropna=False)[numbers].mean().reset_index()
    if "splits" in frame:
        frame["splits"] = frame["splits"].map(lambda n: "-" if n != n else str(int(n)))
    columns = given["columns"].split(",") if "columns" in given else list(frame.columns)
    rows = [columns, ["---"] * len(columns)]
    rows += [[cell(value) for value in row] for row in frame[columns].itertuples(index=False)]
    picture = f"![{path.stem}](../experiments/results/{path.stem}.png)\n\n" if "picture" in given else ""
    return picture + "".join("| " + " | ".join(row) + " |\n" for row in rows)


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


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(filled(path.read_text()))


if __name__ == "__main__":
    main()
