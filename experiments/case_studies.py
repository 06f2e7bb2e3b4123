"""Two public tables from the file to the report, as anybody would run them: what the guide's case studies show.

    python experiments/case_studies.py --german german_encoded.npz --out experiments/results

German credit (1,000 applicants, UCI) comes as label-encoded arrays ``X y columns``; Adult is embedded and has its own
run, `evenhand demo`. Each study is one call of the command line with its defaults; the numbers are those it prints with
``--json``. Nothing is chosen here but which columns are sensitive.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

KEPT = ("chosen", "reference", "models", "certificate", "headline", "statement", "rows", "metric", "parts")


def german(path: Path) -> pd.DataFrame:
    arrays = np.load(path)
    frame = pd.DataFrame(arrays["X"], columns=[str(name) for name in arrays["columns"]])
    return frame.astype(int).assign(credit=np.where(arrays["y"] == 1, "good", "bad"))


def study(frame: pd.DataFrame, folder: Path, options: list[str]) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / "people.csv", index=False)
    command = [sys.executable, "-m", "evenhand", "train", str(folder / "people.csv"), "--out", str(folder / "run")]
    done = subprocess.run([*command, *options, "--json"], stdout=subprocess.PIPE, check=True, text=True)
    told = json.loads(done.stdout)
    shown = ["evenhand", "train", "people.csv", *options]
    return {"command": " ".join(shown), "people": len(frame), **{key: told[key] for key in KEPT if key in told}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--german", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path, help="where the runs are kept; by default they are thrown away")
    parser.add_argument("--quick", action="store_true", help="small networks and few people, to see that it works")
    args = parser.parse_args()
    few = (
        ["--rho", "5", "--steps", "20", "--trees", "10", "--audit-rows", "20", "--certify-rows", "20"]
        if args.quick
        else []
    )
    with tempfile.TemporaryDirectory() as thrown:
        folder = args.folder or Path(thrown)
        options = ["--target", "credit", "--sensitive", "sex,age", *few]
        results = {"german": study(german(args.german), folder / "german", options)}
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "case_studies.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
