"""Of how many rows of a batch should worst cases be looked for? Each, each second, each fourth.

    python experiments/looked_at.py [--splits 4] [--tables adult hiring] [--quick] [--out DIR]

``SenSeIClassifier(every=...)`` with all of rho on R(h) at eps = .1 and the paper's regression, on Adult and on the
tables of trees_tables.py; one whose package is absent is left out. Trained on four fifths of the training part of
each split and judged on the last fifth: no test row is looked at. ``relative`` is what the audit finds at eps = 0.01.
Writes looked_at_runs.csv, in which a run that is there is not made again, and the means, looked_at.csv.
"""

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from strengths import relative
from table3_adult import FIRST, RESULTS, run_missing
from trees_tables import TABLES, NotThere

from evenhand import SenSeIClassifier
from evenhand.evaluation import balanced_accuracy
from evenhand.fair_metrics import from_classifier

EVERY = (1, 2, 4)
COLUMNS = ("BA", "relative", "cpu_seconds")


def run(name: str, split: int, quick: bool = False) -> dict[str, Any]:
    torch.set_num_threads(1)
    table, every = name.split(", every ")
    data = TABLES[table](split)
    cut = int(0.8 * len(data.y))
    X, y, held, wanted = data.X.iloc[:cut], data.y[:cut], data.X.iloc[cut:], data.y[cut:]
    fair_metric = from_classifier(X, predict={key: np.asarray(v)[:cut] for key, v in data.sensitive.items()}, l2=0.1)
    few = {"steps": 5} if quick else {}
    start = time.process_time()
    model = SenSeIClassifier(fair_metric, every=int(every), random_state=split, **(FIRST | few)).fit(X, y)
    seconds = round(time.process_time() - start, 2)
    found = relative(model, held.iloc[: 20 if quick else 100], fair_metric, X)
    accuracy = balanced_accuracy(wanted, model.predict(held))
    return {
        "method": name,
        "split": split,
        "BA": round(accuracy, 5),
        "relative": round(found, 6),
        "cpu_seconds": seconds,
    }


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """A row for each table and share of the rows."""
    parts = runs["method"].str.split(", every ", expand=True)
    runs = runs.assign(table=parts[0], every=parts[1].astype(int))
    found = runs.groupby(["table", "every"], sort=False)
    table = found[list(COLUMNS)].mean().assign(splits=found.size())
    return table.reset_index().sort_values(["table", "every"]).round(4)[["table", "every", "splits", *COLUMNS]]


def there(table: str) -> bool:
    try:
        TABLES[table](0)
    except NotThere:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument(
        "--tables", nargs="+", choices=TABLES, default=["adult", "hiring", "credit", "compas", "german"]
    )
    parser.add_argument("--quick", action="store_true", help="one split and few steps, to see that it runs")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    tables = ["hiring"] if given.quick else [table for table in given.tables if there(table)]
    splits = range(1 if given.quick else given.splits)
    jobs = [(f"{table}, every {every}", split) for split in splits for table in tables for every in EVERY]
    runs = run_missing(given.out / "looked_at_runs.csv", jobs, 1, partial(run, quick=given.quick))
    table = means(runs)
    table.to_csv(given.out / "looked_at.csv", index=False, lineterminator="\n")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
