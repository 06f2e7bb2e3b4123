"""Fill the tables of a document from the committed results, so that no number is typed by hand.

    python tools/fill_docs.py docs/reproduction.md docs/frontier.md

A block begins with  <!-- results: NAME.csv [columns="a,b,c"] [mean=by] [where=column=value] [picture=yes] -->
and ends with  <!-- end -->  and what is between is replaced. ``mean`` averages over everything but the given column(s).
"""

import re
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results"
BLOCK = re.compile(r"(<!-- results: (\S+?\.(?:csv|txt))((?: [^>]*?)?) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str, results: Path = RESULTS) -> str:
    """The document with every block made anew."""
    return BLOCK.sub(lambda m: m[1] + "\n" + block(results / m[2], m[3]) + "\n" + m[4], text)


def block(path: Path, options: str) -> str:
    if not path.exists():
        return f"(no full run yet: {path.name})\n"
    if path.suffix == ".txt":
        return "> " + path.read_text().strip() + "\n"
    given = dict(re.findall(r"(columns|mean|where|picture)=(\"[^\"]*\"|\S+)", options))
    given = {name: value.strip('"') for name, value in given.items()}
    frame = pd.read_csv(path)
    if "where" in given:
        column, value = given["where"].split("=")
        frame = frame[frame[column].astype(str) == value]
    if "mean" in given:
        by = given["mean"].split(",")
        numbers = [c for c in frame.select_dtypes("number") if c not in [*by, "seed", "split"]]
        frame = frame.groupby(by, sort=False)[numbers].mean().reset_index()
    if "splits" in frame:
        frame["splits"] = frame["splits"].map(lambda n: "-" if n != n else str(int(n)))
    columns = given["columns"].split(",") if "columns" in given else list(frame.columns)
    rows = [columns, ["---"] * len(columns)]
    rows += [[cell(value) for value in row] for row in frame[columns].itertuples(index=False)]
    picture = f"![{path.stem}](../experiments/results/{path.stem}.png)\n\n" if "picture" in given else ""
    return picture + "".join("| " + " | ".join(row) + " |\n" for row in rows)


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
