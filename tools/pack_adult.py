"""Pack the UCI Adult files into the one compressed table that evenhand ships.

    python tools/pack_adult.py FOLDER        # FOLDER holds adult.data and adult.test, as downloaded from UCI

The rows of adult.data come first, then those of adult.test; nothing is dropped. The full stop which adult.test puts
after each label goes, "?" becomes an empty field, and the column names of adult.names become the header. The bytes
written depend on the input only.
"""

import argparse
import lzma
from pathlib import Path

COLUMNS = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)
TARGET = Path(__file__).parents[1] / "evenhand" / "datasets" / "adult.csv.xz"


def rows(path: Path) -> list[str]:
    """The data lines of one UCI file, without spaces, unknowns empty."""
    fields = [line.rstrip(".").split(", ") for line in path.read_text().splitlines()]
    return [",".join("" if value == "?" else value for value in row) for row in fields if len(row) == 15]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    lines = [COLUMNS, *rows(folder / "adult.data"), *rows(folder / "adult.test")]
    packed = lzma.compress("\n".join([*lines, ""]).encode(), preset=9 | lzma.PRESET_EXTREME)
    TARGET.write_bytes(packed)
    print(f"{len(lines) - 1:,} rows, {len(packed):,} bytes: {TARGET}")


if __name__ == "__main__":
    main()
