"""Ten million people, forty columns, from memory-mapped files: metric, training, audit and certificate in 2 GB.

    python benchmarks/large.py --out benchmarks/results/large.json     # about 2 GB of disk in a temporary folder
    python benchmarks/large.py --rows 200000                           # a quick look
    python benchmarks/large.py --many 100000 --out benchmarks/results/many_people.json

Peak memory is that of the whole process, the import of torch included, for each stage. Looking for the worst case of a
person costs milliseconds, and proving a bound for one about a tenth of a second, so audit and certificate look at a
part of the people, four times as many the second time: their memory is that of a chunk and does not grow.

With ``--many``: people like those of Adult (its rows drawn with replacement, the numbers shaken), a network of 100
hidden units, everybody audited; and scikit-learn's MLPClassifier of the same size, fitted to the same rows, beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from evenhand import ERMClassifier, SenSeIClassifier, audit, certify
from evenhand.datasets import adult
from evenhand.domain import Box
from evenhand.fair_metrics import from_classifier, from_classifier_stream
from evenhand.training.streams import Repeated, chunks, drop_pages, mapped_batches

COLUMNS = 40


def write(folder: Path, rows: int, block: int = 100_000) -> None:
    """Features in [0, 1], the first one sensitive and given away by the second; written block by block."""
    x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=(rows, COLUMNS))
    y = np.lib.format.open_memmap(folder / "y.npy", mode="w+", dtype=np.int8, shape=(rows,))
    for start in range(0, rows, block):
        draw = np.random.default_rng(start)
        part = draw.random((min(block, rows - start), COLUMNS), dtype=np.float32)
        part[:, 0] = part[:, 1] + draw.normal(0, 0.3, len(part)) > 0.5
        x[start : start + block] = part
        y[start : start + block] = part[:, 2] + part[:, 1] + draw.normal(0, 0.2, len(part)) > 1
        x.flush()
        drop_pages(x)


def peak() -> float:
    """Peak memory of this process since ``forget_peak``, in GB."""
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 2**20
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**30


def now() -> float:
    """Memory of this process at the moment, in GB."""
    if sys.platform == "linux":
        return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 2**20
    return peak()


def forget_peak() -> None:
    """Count the peak anew, where the system lets us; otherwise a stage's peak includes that of those before it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def adult_like(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64], Box]:
    """n people with Adult's 41 columns, their labels, and the set of possible people."""
    train, _ = adult(0)
    columns, x = list(train.X.columns), train.X.to_numpy(np.float64)
    draw = np.random.default_rng(seed)
    rows = draw.integers(0, len(x), n)
    people = x[rows]
    low, high = x.min(0), x.max(0)
    people[:, :5] = np.clip(people[:, :5] + draw.normal(0, 0.05, (n, 5)), low[:5], high[:5])
    starts = ["workclass", "marital-status", "occupation", "relationship"]
    blocks = [[j for j, name in enumerate(columns) if name.startswith(start + "_")] for start in starts]
    return people, np.asarray(train.y)[rows], Box(low, high, blocks=blocks, binary=[39, 40])


def many_people(n: int, predicted: int = 1_000_000) -> dict[str, Any]:
    """Fit, predict and audit n people, and predict a million rows of 40 columns; each beside scikit-learn's."""
    x, y, box = adult_like(n)
    metric = from_classifier(x, columns=[39, 40], predict=[39])
    freed = box.freed(metric.directions, x)
    ours = ERMClassifier(hidden=(100,), random_state=0)
    theirs = MLPClassifier((100,), random_state=0)
    wide = np.random.default_rng(0).random((predicted, COLUMNS), dtype=np.float32)
    few = min(2000, n)
    narrow = ERMClassifier(hidden=(100,), steps=50, random_state=0).fit(wide[:few], y[:few])
    narrow_theirs = MLPClassifier((100,), max_iter=2, random_state=0)
    narrow_theirs.fit(wide[:few], y[:few])
    found = {}

    def judged(name: str, bounds: Box) -> None:
        found[name] = audit(ours, x, metric, eps=0.01, bounds=bounds)

    stages = {}
    for name, work in {
        "fit": lambda: ours.fit(x, y),
        "fit, MLPClassifier": lambda: theirs.fit(x, y),
        "predict": lambda: ours.predict(x),
        "predict, MLPClassifier": lambda: theirs.predict(x),
        f"predict {predicted:,} x {COLUMNS}": lambda: narrow.predict(wide),
        f"predict {predicted:,} x {COLUMNS}, MLPClassifier": lambda: narrow_theirs.predict(wide),
        "audit": lambda: judged("audit", box),
        "audit, learned direction free": lambda: judged("audit, learned direction free", freed),
    }.items():
        forget_peak()
        before, began, wall = now(), time.process_time(), time.perf_counter()
        work()
        stages[name] = {
            "cpu_seconds": round(time.process_time() - began, 1),
            "wall_seconds": round(time.perf_counter() - wall, 1),
            "more_gb": round(peak() - before, 3),
        }
        print(name, stages[name], flush=True)
    r_low = {name: one.r_low for name, one in found.items()}
    return {"people": n, "threads": torch.get_num_threads(), "load": round(os.getloadavg()[0], 1), "r_low": r_low} | {
        "stages": stages
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--audited", type=int, default=16_000, help="people audited, in chunks")
    options.add_argument("--certified", type=int, default=400, help="people certified, in chunks")
    options.add_argument("--batch", type=int, default=10_000)
    options.add_argument("--many", type=int, help="audit so many people like Adult's, and nothing else")
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    torch.set_num_threads(1)
    if given.many:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=ConvergenceWarning)  # models that are only timed
            result = many_people(given.many)
        if given.out:
            given.out.write_text(json.dumps(result, indent=2) + "\n")
        return
    stages: dict[str, dict[str, float]] = {}

    def stage(name: str, work: Callable[[], Any]) -> Any:
        forget_peak()
        began = time.process_time()
        result = work()
        stages[name] = {"cpu_seconds": round(time.process_time() - began, 1), "peak_gb": round(peak(), 3)}
        print(name, stages[name], flush=True)
        return result

    stages["imports"] = {"cpu_seconds": round(time.process_time(), 1), "peak_gb": round(peak(), 3)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stage("write", lambda: write(folder, given.rows))
        x, y = np.load(folder / "x.npy", mmap_mode="r"), np.load(folder / "y.npy", mmap_mode="r")
        size = (folder / "x.npy").stat().st_size / 2**30
        parts = Repeated(lambda: chunks(x, 50_000))
        metric = stage("learn the metric", lambda: from_classifier_stream(parts, [0]))
        batches = mapped_batches(x, y, given.batch, generator=torch.Generator().manual_seed(0))
        steps = -(-given.rows // given.batch)  # one pass
        model = SenSeIClassifier(metric, hidden=(16,), steps=steps, batch_size=given.batch, random_state=0)
        stage("train, one pass", lambda: model.fit_stream(batches))

        def accuracy() -> float:
            right = sum(int((model.predict(a) == b).sum()) for a, b in zip(chunks(x, 50_000), chunks(y, 50_000)))
            return right / given.rows

        right = stage("predict everybody", accuracy)
        for rows in (given.audited // 4, given.audited):
            people = chunks(x[:rows], 1024)
            found = stage(f"audit {rows:,}", partial(audit, model, people, eps=0.01, per_person=False))
        tune = np.array(x[-200:])
        for rows in (given.certified // 4, given.certified):
            people = chunks(x[:rows], 50)
            proved = stage(
                f"certify {rows:,}", partial(certify, model, people, eps=0.01, x_tune=tune, per_person=False)
            )
    largest = max(each["peak_gb"] for each in stages.values())
    print(f"accuracy {right:.3f}; {found}; {proved}; peak {largest:.2f} GB for a file of {size:.2f} GB")
    if given.out:
        result = {"rows": given.rows, "columns": COLUMNS, "file_gb": round(size, 3), "peak_gb": largest}
        result |= {"audited_rows": given.audited, "certified_rows": given.certified, "accuracy": round(right, 4)}
        result |= {"audit_r_low": found.r_low, "certificate": [proved.lower, proved.upper], "stages": stages}
        given.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
