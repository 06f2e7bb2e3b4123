"""Boosted trees, fair and not, beside a fair network: accuracy, consistency, relative R, on Adult and two made tables.

    python experiments/trees_fair.py [--tables adult hiring credit] [--seeds 0 ... 9] [--methods ...] [--rows 100]

No model sees the sensitive columns; they teach the metric and judge the result. All settings are the estimators'
defaults but for what is below. A run that is already in the results is not made again. Seconds are CPU seconds of one
core; ``plain_fits`` divides them by those of a plain LightGBM of as many trees and leaves on the same rows.
"""

import argparse
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from table3_adult import FIRST
from trees_tables import TABLES, NotThere, Table

from evenhand import BuDROClassifier, SenSeIBoostingClassifier, SenSeIClassifier, evaluation
from evenhand.audit import audit
from evenhand.estimators.boosting import possible_people
from evenhand.fair_metrics import from_classifier

RESULTS = Path(__file__).resolve().parent / "results"
EPS, TREES, LEAVES = 0.01, 100, 16
L2 = 0.1  # of the regressions that teach the metric: as in the paper


def network(rho: float) -> Callable[[Any, Any, int], Any]:
    return lambda metric, box, seed: SenSeIClassifier(
        metric, bounds=box, every=1, random_state=seed, **(FIRST | {"rho": rho})
    )


METHODS = {
    "boosted, blind": lambda metric, box, seed: plain(seed),
    "BuDRO": lambda metric, box, seed: BuDROClassifier(metric, random_state=seed),
    "SenSeI trees": lambda metric, box, seed: SenSeIBoostingClassifier(metric, bounds=box, random_state=seed),
    "SenSeI trees, avoid 0": lambda metric, box, seed: SenSeIBoostingClassifier(
        metric, bounds=box, random_state=seed, avoid=0.0
    ),
    "SenSeI network": network(FIRST["rho"]),
    **{f"SenSeI network, rho {rho:g}": network(rho) for rho in (1.0, 0.3, 0.1, 0.001)},
}


def plain(seed: int) -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(
        n_estimators=TREES, num_leaves=LEAVES, class_weight="balanced", random_state=seed, n_jobs=1, verbose=-1
    )


def run(table: str, method: str, seed: int, rows: int, trees: int | None) -> dict[str, Any]:
    data = TABLES[table](seed)
    metric = from_classifier(data.X, predict=data.sensitive, l2=L2)
    box = possible_people(np.vstack([data.X, data.X_test]).astype(np.float64))
    model = METHODS[method](metric, box, seed)
    if trees is not None:
        size = "n_estimators" if "blind" in method else "steps" if "network" in method else "trees"
        model.set_params(**{size: trees})
    seconds = timed(model, data)
    found = audit(model, data.X_test.iloc[:rows], metric, EPS, box)
    reference = timed(plain(seed).set_params(**({} if trees is None else {"n_estimators": trees})), data)
    return {
        "table": table,
        "method": method,
        "seed": seed,
        "BA": evaluation.balanced_accuracy(data.y_test, model.predict(data.X_test)),
        "S-Con": np.nan if data.swap is None else evaluation.prediction_consistency(data.swap.map(model.predict)),
        "relative R": np.nan if found.relative is None else found.relative.low,
        "R": found.r_low,
        "rows": rows,
        "seconds": round(seconds, 2),
        "plain_fits": round(seconds / reference, 1),
    }


def timed(model: Any, data: Table) -> float:
    began = time.process_time()
    model.fit(data.X, data.y)
    return time.process_time() - began


def in_order(done: list[dict[str, Any]]) -> pd.DataFrame:
    """The runs by table and method, whenever they were made."""
    tables, methods = list(TABLES), list(METHODS)
    return pd.DataFrame(sorted(done, key=lambda r: (tables.index(r["table"]), methods.index(r["method"]), r["seed"])))


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits, with the spread of BA and of relative R."""
    grouped = runs.groupby(["table", "method"], sort=False)
    table = grouped[["BA", "S-Con", "relative R", "seconds", "plain_fits"]].mean()
    table["BA_sd"], table["relative R_sd"] = grouped["BA"].std(), grouped["relative R"].std()
    return table.assign(splits=grouped.size()).reset_index()


def against_network(runs: pd.DataFrame) -> pd.DataFrame:
    """BA of the fair trees beside that of the fair network at the same relative R: between the network's runs with
    several rho, on the logarithm of relative R; at its nearest run where the trees lie outside of them."""
    rows = []
    for (table, seed), part in runs.groupby(["table", "seed"], sort=False):
        nets = part[part["method"].str.startswith("SenSeI network")].sort_values("relative R")
        blind = part.loc[part["method"] == "boosted, blind", "BA"].mean()
        for _, ours in part[part["method"].str.startswith("SenSeI trees")].iterrows():
            if len(nets) > 1:
                r = float(ours["relative R"])
                inside = bool(nets["relative R"].iloc[0] <= r <= nets["relative R"].iloc[-1])
                theirs = float(np.interp(np.log(r), np.log(nets["relative R"]), nets["BA"]))
                rows.append((table, ours["method"], seed, r, float(ours["BA"]), theirs, blind, inside))
    scores = ["relative R", "BA, trees", "BA, network", "BA, blind"]
    each = pd.DataFrame(rows, columns=["table", "method", "seed", *scores, "inside"])
    grouped = each.groupby(["table", "method"], sort=False)
    found = grouped[scores].mean()
    found["points"] = 100 * (found["BA, trees"] - found["BA, network"])
    return found.assign(splits=grouped.size(), inside=grouped["inside"].sum()).reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--rows", type=int, default=100, help="held-out people whose worst case is searched")
    parser.add_argument("--trees", type=int, help="fewer trees and steps, to see that it works")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    path = given.out / "trees_fair_runs.csv"
    done = pd.read_csv(path).to_dict("records") if path.exists() else []
    for seed, table, method in product(given.seeds, given.tables, given.methods):
        if any((r["table"], r["method"], r["seed"]) == (table, method, seed) for r in done):
            continue
        try:
            done.append(run(table, method, seed, given.rows, given.trees))
        except NotThere as reason:
            print(f"{table} is left out: {reason}")
            continue
        print({k: v for k, v in done[-1].items() if k != "rows"}, flush=True)
        runs = in_order(done)
        runs.to_csv(path, index=False, float_format="%.6g")
        summary(runs).to_csv(given.out / "trees_fair.csv", index=False, float_format="%.4g")
        against_network(runs).to_csv(given.out / "trees_network.csv", index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
