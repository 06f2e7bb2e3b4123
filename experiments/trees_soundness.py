"""Does any pair of people lie above the bound of a tree ensemble? A million pairs, and how tight the bound is.

    python experiments/trees_soundness.py [--people 20] [--pairs 200000] [--out DIR]

Plain and fair ensembles of two sizes on a made table, and on Adult. The bound is built on tuning people; then each of
other people is compared with possible people anywhere, near by, along the free directions and across thresholds. Above
the bound: d_Y - lam * d_X > upper, or d_Y > the bound of everybody within eps. r_low is the
dual value over all lam of the worst people that were found. Seconds are CPU seconds of one core for building the bound
and for bounding r_lam and the neighbours of each person.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from trees_fair import RESULTS, plain
from trees_tables import TABLES, Table

from evenhand import Box, SenSeIBoostingClassifier
from evenhand.bounds.trees import bound_trees
from evenhand.dual.pool import Pool
from evenhand.ensembles.read import read_ensemble
from evenhand.ensembles.worst_case import worst_case
from evenhand.estimators.boosting import possible_people
from evenhand.fair_metrics import FairMetric, from_classifier
from evenhand.search.geometry import Geometry

EPS = 0.01
CASES = [  # table, model, trees, leaves
    ("hiring", "plain", 30, 8), ("hiring", "fair", 30, 8), ("hiring", "plain", 100, 16), ("hiring", "fair", 100, 16),
    ("adult", "plain", 100, 16), ("adult", "fair", 100, 16),
]  # fmt: skip


def others(x, box, geometry, jumps, n, rng):
    """n possible people for one person: anywhere, near by, along free directions, just beyond thresholds."""
    low, high = box.low.numpy(), box.high.numpy()
    anywhere = rng.uniform(low, high, (n, len(x)))
    near = x + rng.choice([0.01, 0.03, 0.1, 0.3], (n, 1)) * rng.normal(size=(n, len(x)))
    free = x + rng.normal(0, 2, (n, geometry.directions.shape[1])) @ geometry.directions.numpy().T
    across = np.repeat(x[None], n, 0)
    for j, marks in enumerate(jumps):
        if len(marks):
            chosen = rng.random(n) < 0.3
            across[chosen, j] = rng.choice(marks, chosen.sum()) + rng.choice([0.0, 1e-6], chosen.sum())
    kind = rng.integers(0, 4, n)[:, None]
    moved = np.select([kind == 0, kind == 1, kind == 2], [anywhere, near, free], across)
    return box.round(torch.from_numpy(np.clip(moved, low, high))).numpy()


def fitted(table: str, kind: str, trees: int, leaves: int) -> tuple[Table, FairMetric, Box, Any]:
    """The first split of a table, who is similar and possible there, and a model of it, plain or fair."""
    data = TABLES[table](0)
    metric = from_classifier(data.X, predict=data.sensitive, l2=0.1)
    box = possible_people(np.vstack([data.X, data.X_test]).astype(np.float64))
    if kind == "plain":
        model = plain(0).set_params(n_estimators=trees, num_leaves=leaves)
    else:
        model = SenSeIBoostingClassifier(metric, bounds=box, trees=trees, leaves=leaves, random_state=0)
    model.fit(data.X, data.y)
    return data, metric, box, model


def run(table: str, kind: str, trees: int, leaves: int, people: int, pairs: int) -> dict[str, object]:
    rng = np.random.default_rng(0)
    data, metric, box, model = fitted(table, kind, trees, leaves)
    ensemble, geometry = read_ensemble(model), Geometry(metric, box)
    x = torch.tensor(data.X_test.to_numpy(dtype=np.float64))
    began = time.process_time()
    bound = bound_trees(ensemble, geometry, x[-32:], EPS, 0.25)
    found, close = bound.upper(x[:people]), bound.near(x[:people], EPS).numpy()
    seconds = time.process_time() - began
    own, witnesses = x[:people].numpy(), [found.witness.numpy()]
    for radius in (0.3 * EPS, EPS, 4 * EPS, 16 * EPS):  # what is reached near by, whatever lam the bound was built for
        witnesses.append(worst_case(ensemble, bound.people, own, radius=radius, scale=0.25, boxes=500).witness)
    for share in (0.95, 0.85, 0.7, 0.5):  # and far away, where lam is too small to keep people from going there
        far = worst_case(ensemble, bound.people, own, lam=share * bound.lam, scale=0.25, boxes=500)
        witnesses.append(far.witness)
    reached_y = [0.25 * ((ensemble(witness) - ensemble(own)) ** 2).sum(1) for witness in witnesses]
    reached_x = [geometry.d_x(torch.from_numpy(witness - own)).numpy() for witness in witnesses]
    pool = Pool()
    pool.add(np.column_stack(reached_y), np.column_stack(reached_x))
    above, each = 0, max(pairs // people, 1)
    for i in range(people):
        one = x[i].numpy()
        other = others(one, box, geometry, ensemble.thresholds(), each, rng)
        d_y = 0.25 * (ensemble(other) - ensemble(one[None]))[:, 0] ** 2
        d_x = geometry.d_x(torch.from_numpy(other - one)).numpy()
        above += int((d_y - bound.lam * d_x > float(found.upper[i]) + 1e-9).sum())
        above += int((d_y > close[i] + 1e-9)[d_x <= EPS].sum()) + int((d_y > bound.everywhere + 1e-9)[d_x <= EPS].sum())
    low, high = pool.minimise(EPS).value, bound.lam * EPS + float(found.upper.mean())
    return {
        "table": table, "model": kind, "trees": trees, "leaves": leaves, "people": people, "pairs": each * people,
        "above": above, "r_low": low, "r_high": high, "gap": high / low, "seconds": round(seconds, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=200_000, help="of each ensemble")
    parser.add_argument("--cases", type=int, default=len(CASES), help="only the first so many")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    rows = []
    for case in CASES[: given.cases]:
        rows.append(run(*case, given.people, given.pairs))
        print(rows[-1], flush=True)
        pd.DataFrame(rows).to_csv(given.out / "trees_soundness.csv", index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
