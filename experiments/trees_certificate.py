"""Certificates of boosted trees as anybody gets them: ``certify`` on held-out people, with its 95 % bound.

    python experiments/trees_certificate.py [--people 300] [--cases 4] [--out DIR]

The models and tables are those of ``trees_soundness.py``, which looks at the bound alone; here a search finds the lower
side, and tuning people are others than the held-out ones. Seconds are CPU seconds for the certificate, not for the fit.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import pandas as pd
from trees_fair import EPS, RESULTS
from trees_soundness import fitted

from evenhand import certify

TUNING = 200  # people, after the held-out ones
CASES = [("adult", "fair", 100, 16), ("adult", "plain", 100, 16), ("adult", "fair", 30, 8), ("adult", "plain", 30, 8)]


def run(table: str, kind: str, trees: int, leaves: int, people: int) -> dict[str, Any]:
    data, metric, box, model = fitted(table, kind, trees, leaves)
    held_out, tuning = data.X_test.iloc[:people], data.X_test.iloc[people : people + TUNING]
    began = time.process_time()
    found = certify(model, held_out, metric, EPS, box, tuning, distinct_people=True)
    return {
        "table": table, "model": kind, "trees": trees, "leaves": leaves, "people": people, "r_low": found.r_low,
        "r_high": found.r_high, "gap": found.r_high / found.r_low, "upper": found.upper, "range": found.r_lam_max,
        "seconds": round(time.process_time() - began, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--cases", type=int, default=len(CASES), help="only the first so many")
    parser.add_argument("--trees", type=int, help="fewer trees, to see that it works")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    rows = []
    for table, kind, trees, leaves in CASES[: given.cases]:
        rows.append(run(table, kind, given.trees or trees, leaves, given.people))
        print(rows[-1], flush=True)
        pd.DataFrame(rows).to_csv(given.out / "trees_certificate.csv", index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
