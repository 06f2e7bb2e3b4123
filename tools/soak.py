"""Train, audit, certify, save and load again and again with random shapes; report failures and memory growth.

    python tools/soak.py --seconds 1800 --out benchmarks/results/soak.json

Memory is what the process holds after each round, when its garbage is collected and free pages are given back; growth
compares the median of the last fifth of the rounds with that of the second fifth, when everything has been loaded once.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import random
import statistics
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evenhand import ERMClassifier, FairMetric, SenSeIClassifier, SenSeIRegressor, SenSRClassifier, audit, certify
from evenhand.files import load, save


def one_round(draw: random.Random, folder: Path) -> str:
    """One random piece of work; gives its description."""
    rng = np.random.default_rng(draw.randrange(2**31))
    n, d, classes = draw.randint(60, 300), draw.randint(2, 12), draw.choice([2, 2, 3])
    x = rng.random((n, d)).astype(np.float32)
    y = (np.argsort(np.argsort(x[:, 0] + x[:, -1])) * classes) // n
    metric = FairMetric(torch.as_tensor(rng.normal(size=(d, draw.randint(1, max(1, d - 1)))), dtype=torch.float32))
    kind: Any = draw.choice([SenSeIClassifier, SenSeIClassifier, SenSRClassifier, SenSeIRegressor, ERMClassifier])
    given: dict[str, Any] = (
        {} if kind is ERMClassifier else {"fair_metric": metric, "eps": draw.choice([0.0, 0.01, 0.1])}
    )
    hidden = tuple(draw.randint(2, 24) for _ in range(draw.randint(1, 2)))
    model = kind(**given, hidden=hidden, steps=draw.randint(5, 30), batch_size=draw.randint(1, 128), random_state=0)
    model.fit(x, y)
    before = model.predict(x)
    save(model, folder / "model.evenhand")
    after = load(folder / "model.evenhand").predict(x)
    if not np.array_equal(before, after):
        raise AssertionError("the loaded model predicts something else")
    limits = (torch.zeros(d), torch.ones(d))
    found = audit(model, x, metric, eps=0.05, bounds=limits)
    if not (np.isfinite(found.r_low) and found.r_low >= 0):
        raise AssertionError(f"the audit found {found.r_low}")
    certified = draw.random() < 0.2 and kind is not SenSeIRegressor
    if certified:
        proved = certify(model, x, metric, eps=0.05, bounds=limits, tune_steps=10, rounds=1, tune_rows=20)
        if not proved.r_low <= proved.r_high + 1e-9:
            raise AssertionError(f"lower {proved.r_low} above upper {proved.r_high}")
    return f"{kind.__name__} n={n} d={d} hidden={hidden}" + (" certified" if certified else "")


def resident() -> float:
    """Memory of this process now, in MB, after giving back what is free."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * 4096 / 2**20
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=1800)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    torch.set_num_threads(1)
    draw, memory, failures = random.Random(given.seed), [], []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < began + given.seconds:
            try:
                one_round(draw, Path(folder))
            except Exception as error:
                failures.append(f"round {len(memory)}: {error!r}")
                traceback.print_exc()
            memory.append(resident())
    fifth = max(1, len(memory) // 5)
    early, late = statistics.median(memory[fifth : 2 * fifth] or memory), statistics.median(memory[-fifth:])
    growth = late / early - 1
    print(f"{len(memory)} rounds, {len(failures)} failures, memory {early:.0f} -> {late:.0f} MB ({growth:+.1%})")
    if given.out:
        result = {"seconds": given.seconds, "rounds": len(memory), "failures": failures}
        result |= {"early_mb": round(early, 1), "late_mb": round(late, 1), "growth": round(growth, 4)}
        given.out.write_text(json.dumps(result, indent=2) + "\n")
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
