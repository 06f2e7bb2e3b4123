"""Post-processing of a black box's outputs (GLIF): CPU time and peak memory against the number of rows.

    python benchmarks/glif.py             # writes results/glif.json
    python benchmarks/glif.py --quick

Each size runs in a process of its own, in one thread, and includes the
search for the ten nearest neighbours in the fair metric. "narrow" has 10 features, of which 2 do not matter: a tree
finds the neighbours. "adult" has 41 features and the 3 directions of the Adult metric: beyond 15 features every pair
of rows is looked at, so that time grows as the square of the rows; memory does not.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
SHAPES = {"narrow": (10, 2), "adult": (41, 3)}  # features, directions that do not matter
ROWS = (10_000, 100_000)
QUICK_ROWS = (1_000, 2_000)


def measure(shape: str, n: int) -> dict[str, Any]:
    """Smooth n outputs in this process."""
    from evenhand import FairMetric
    from evenhand.postprocess import glif

    d, k = SHAPES[shape]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / d**0.5
    y = rng.normal(size=n)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found = glif(y, x, FairMetric(np.eye(d)[:, :k]), lam=1.0, theta=1 / d)  # weights that matter in any dimension
    seconds = time.process_time() - start
    return {
        "shape": shape,
        "rows": n,
        "cpu_seconds": round(seconds, 2),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 3),
        "peak_gb_before": round(before / 2**20, 3),
        "pairs": found.graph.nnz // 2,
        "objective_before": round(found.objective_before, 3),
        "objective": round(found.objective, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(measure(given.one[0], int(given.one[1]))))
        return
    out = given.out or (Path("runs/quick") if given.quick else HERE / "results")
    out.mkdir(parents=True, exist_ok=True)
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    results = []
    for shape in SHAPES:
        for n in QUICK_ROWS if given.quick else ROWS:
            command = [sys.executable, __file__, "--one", shape, str(n)]
            done = subprocess.run(command, env=one_thread, capture_output=True, text=True, check=True)
            results.append(json.loads(done.stdout))
            print(results[-1], flush=True)
            (out / "glif.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
