"""A million rows and forty columns through ``evenhand train``, in less than 8 GB.

    python benchmarks/million_rows.py                  # writes benchmarks/results/million_rows.json
    python benchmarks/million_rows.py --rows 3000 --out /dev/stdout -- --rho 5 --steps 20 --no-certificate

The table is a CSV file as a user would have it: 26 numbers, 11 categories of up to 500 values, sex, region, the target,
5 % of the values missing. The command runs in a process of its own whose private memory the system limits
(RLIMIT_DATA); its peak is ru_maxrss, the import of torch included. What comes after ``--`` is handed to the command.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "million_rows.json"
NUMBERS, CATEGORIES = 26, 11  # with sex, region and the target: 40 columns
BLOCK = 100_000


def write(path: Path, rows: int) -> None:
    """The table, block by block."""
    for start in range(0, rows, BLOCK):
        draw = np.random.default_rng(start)
        n = min(BLOCK, rows - start)
        columns: dict[str, object] = {f"number_{j}": draw.normal(50, 10, n).round(2) for j in range(NUMBERS)}
        for j in range(CATEGORIES):
            kinds = np.array([f"value {i}" for i in range(2 + 500 * (j + 1) // CATEGORIES)])
            columns[f"category_{j}"] = kinds[(len(kinds) * draw.random(n) ** 3).astype(int)]
        frame = pd.DataFrame(columns).mask(draw.random((n, NUMBERS + CATEGORIES)) < 0.05)
        male = draw.random(n) < 0.5
        frame["sex"] = np.where(male, "male", "female")
        frame["region"] = draw.choice(["north", "east", "south", "west"], n)
        score = np.nan_to_num(frame["number_0"] - 50) / 10 + 0.8 * male + draw.normal(0, 0.7, n)
        frame["approved"] = np.where(score > 0.4, "yes", "no")
        frame.to_csv(path, mode="a", header=start == 0, index=False, quoting=csv.QUOTE_MINIMAL)


def train(data: Path, out: Path, limit_gb: float, more: list[str]) -> dict[str, float]:
    """Run the command under the limit; seconds and peak memory of the process."""
    command = [sys.executable, "-m", "evenhand", "train", str(data), "--target", "approved"]
    command += ["--sensitive", "sex,region", "--out", str(out), *more]

    def limited() -> None:
        size = int(limit_gb * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))

    began = time.perf_counter()
    child = subprocess.Popen(command, cwd=ROOT, preexec_fn=limited, stdout=subprocess.DEVNULL)  # its progress is shown
    _, status, used = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"evenhand train ended with {os.waitstatus_to_exitcode(status)} under {limit_gb:g} GB")
    return {
        "peak_gb": round(used.ru_maxrss / 2**20, 2),
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
    }


def sentence(result: dict[str, Any]) -> str:
    """What docs/benchmarks.md says of a result."""
    command, size = " ".join(["evenhand train", *result["options"]]), f"{result['file_gb']:.2f} GB"
    return (
        f"`{command}` on a CSV file of {result['rows']:,} rows x {result['columns']} columns ({size}) peaks at "
        f"{result['peak_gb']:.1f} GB, in a process that may use {result['limit_gb']:g} GB, and takes "
        f"{result['cpu_seconds']:.0f} CPU seconds (`benchmarks/million_rows.py`)."
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--limit", type=float, default=8.0, help="GB of private memory that the command may use")
    options.add_argument("--out", type=Path, default=RESULTS)
    options.add_argument("more", nargs="*", help="options of evenhand train, after --")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "people.csv"
        write(data, given.rows)
        measured = train(data, folder / "run", given.limit, given.more)
        metrics = json.loads((folder / "run" / "metrics.json").read_text())
        models = metrics["models"]
        result = {
            "rows": given.rows,
            "columns": NUMBERS + CATEGORIES + 3,
            "file_gb": round(data.stat().st_size / 2**30, 3),
            "options": given.more,
            "limit_gb": given.limit,
            **measured,
            "report_mb": round((folder / "run" / "report.html").stat().st_size / 1e6, 2),
            "balanced_accuracy": {m: round(models[m]["balanced_accuracy"], 4) for m in models},
            "changed": {m: round(models[m]["changed"]["sex or region"]["share"], 4) for m in models},
        }
    text = json.dumps(result, indent=2) + "\n"
    if given.out == Path("/dev/stdout"):
        sys.stdout.write(text)
        return
    given.out.write_text(text)


if __name__ == "__main__":
    main()
