"""How much of rho on differences that cost nothing: all (eps = 0), most of it, none. On validation rows of many tables.

    python experiments/free_only.py [--splits 4] [--tables hiring compas] [--quick] [--out DIR]

With eps > 0 a large rho also makes every other column matter less, which costs accuracy. With eps = 0 it only keeps the
free differences from mattering; with the directions of two regressions (see strengths.py) these are most of what gives
sex away. ``free`` shares rho between both. ADULT lists settings, judged by the columns of Table 3; ``chosen`` tells the
defaults among them. ELSEWHERE has a few of them for the tables of trees_tables.py; one whose package is absent is left
out. Every setting is trained on four fifths of the training part of each split and judged on the last fifth: no test
row is looked at. ``relative`` is what the audit finds at eps = 0.01 under the setting's own metric, ``free`` at 0,
each over how differently strangers are treated. Writes free_only_runs.csv and free_only_tables_runs.csv, in which a run
that is there is not made again, and their means.
"""

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from looked_at import there
from strengths import MARGIN
from table3_adult import FIRST, RESULTS, SCORES, metric, run_missing, scores, shortfall
from trees_tables import TABLES

from evenhand import SenSeIClassifier, audit
from evenhand.datasets import adult
from evenhand.datasets.adult import Table
from evenhand.estimators.inputs import data_bounds
from evenhand.evaluation import balanced_accuracy
from evenhand.fair_metrics import FairMetric, free_share, from_classifier

TWO = (0.15, 1e-5)  # from_classifier's own, where not too much is free; None: with its guard
MIXED = {"rho": 20.0, "steps": 1150}
ADULT: dict[str, tuple[Any, dict[str, Any]]] = {  # l2, and what is not SenSeIClassifier's default
    "one strength": (0.1, FIRST),
    "one strength, eps 0": (0.1, FIRST | {"eps": 0.0}),
    "two strengths, rho .7": (TWO, FIRST | {"rho": 0.7}),
    "two strengths, eps 0": (TWO, FIRST | {"eps": 0.0}),
    "two strengths, eps 0, rho 10": (TWO, FIRST | {"eps": 0.0, "rho": 10.0}),
    "two strengths, eps 0, 1000 steps": (TWO, FIRST | {"eps": 0.0, "steps": 1000}),
    "two strengths, free .95, 1300 steps": (None, MIXED | {"free": 0.95, "steps": 1300}),
    "two strengths, free .98, 1000 steps": (None, MIXED | {"free": 0.98, "steps": 1000}),
    "two strengths, free .98": (None, MIXED | {"free": 0.98}),
    "two strengths, free .98, 1300 steps": (None, MIXED | {"free": 0.98, "steps": 1300}),
    "two strengths, free .99, 1000 steps": (None, MIXED | {"free": 0.99, "steps": 1000}),
    "two strengths, free .99, 1300 steps": (None, MIXED | {"free": 0.99, "steps": 1300}),
}
ELSEWHERE: dict[str, tuple[Any, dict[str, Any]]] = {
    "one strength": (0.1, FIRST),
    "one strength, eps 0": (0.1, FIRST | {"eps": 0.0}),
    "defaults": (None, {}),
}
EPS = 0.01  # of the audit
AS_ACCURATE = 0.002  # less is chance: the standard error of a mean of four splits
FOUND = ("relative", "free")
PEOPLE = 50  # who are audited


def found(model: SenSeIClassifier, people: pd.DataFrame, fair_metric: FairMetric, X: pd.DataFrame) -> dict[str, float]:
    """What the audits find at EPS and at zero, over how differently strangers are treated."""
    bounds = data_bounds(torch.tensor(X.to_numpy(), dtype=torch.float32), fair_metric)
    possible = people[bounds.contains(torch.tensor(people.to_numpy(), dtype=torch.float64)).numpy()]
    values = []
    for eps in (EPS, 0.0):
        result = audit(model, possible, fair_metric=fair_metric, eps=eps, bounds=bounds, keep=1)
        assert result.relative is not None
        values.append(round(result.relative.low, 6))
    return dict(zip(FOUND, values))


def run_adult(name: str, split: int, quick: bool = False) -> dict[str, Any]:
    torch.set_num_threads(1)
    train, _ = adult(split)
    cut = int(0.8 * len(train.y))  # the rows of a split are in random order
    fit, held = (Table(*(column[rows] for column in train)) for rows in (slice(cut), slice(cut, None)))
    l2, settings = ADULT[name]
    fair_metric = metric(fit.X, l2=l2)
    start = time.process_time()
    few = {"steps": 5} if quick else {}
    model = SenSeIClassifier(fair_metric, random_state=split, **(settings | few)).fit(fit.X, fit.y)
    seconds = round(time.process_time() - start, 2)
    audits = found(model, held.X.iloc[: 20 if quick else PEOPLE], fair_metric, fit.X)
    return {"method": name, "split": split, **scores(model, held), **audits, "cpu_seconds": seconds}


def run_table(name: str, split: int, quick: bool = False) -> dict[str, Any]:
    torch.set_num_threads(1)
    table, setting = name.split(": ")
    data = TABLES[table](split)
    cut = int(0.8 * len(data.y))
    X, y, held, wanted = data.X.iloc[:cut], data.y[:cut], data.X.iloc[cut:], data.y[cut:]
    predict = {key: np.asarray(values)[:cut] for key, values in data.sensitive.items()}
    l2, settings = ELSEWHERE[setting]
    fair_metric = from_classifier(X, predict=predict, l2=l2)
    start = time.process_time()
    few = {"steps": 5} if quick else {}
    model = SenSeIClassifier(fair_metric, random_state=split, **(settings | few)).fit(X, y)
    seconds = round(time.process_time() - start, 2)
    share = free_share(fair_metric, torch.tensor(X.to_numpy(), dtype=torch.float32))
    return {
        "method": name,
        "split": split,
        "declared free": round(share, 4),
        "BA": round(balanced_accuracy(wanted, model.predict(held)), 5),
        **found(model, held.iloc[: 20 if quick else PEOPLE], fair_metric, X),
        "cpu_seconds": seconds,
    }


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Adult: means over the splits, and how far the worst column lies behind the published row."""
    numbers = [*SCORES, *FOUND, "cpu_seconds"]
    table = runs.groupby("method")[numbers].mean().loc[[name for name in ADULT if name in set(runs["method"])]]
    table["shortfall"] = table.apply(shortfall, axis=1)
    table.insert(0, "splits", runs.groupby("method").size())
    return table.round(4).reset_index().rename(columns={"method": "setting"})


def table_means(runs: pd.DataFrame) -> pd.DataFrame:
    """The other tables: a row for each table and setting."""
    parts = runs["method"].str.split(": ", expand=True)
    runs = runs.assign(table=parts[0], setting=parts[1])
    grouped = runs.groupby(["table", "setting"], sort=False)
    table = grouped[["declared free", "BA", *FOUND, "cpu_seconds"]].mean()
    table.insert(0, "splits", grouped.size())
    rows = [(one, name) for one in sorted(set(runs["table"])) for name in ELSEWHERE]
    return table.loc[[row for row in rows if row in table.index]].round(4).reset_index()


def chosen(table: pd.DataFrame) -> str:
    """For Table 3 and the defaults: ahead of the published row in every column, as accurate as any that is, and of
    these the one under which similar people are treated most alike."""
    ahead = table[table["shortfall"] <= -MARGIN]
    accurate = ahead[ahead["BA"] >= ahead["BA"].max() - AS_ACCURATE]
    return str(accurate.loc[accurate["relative"].idxmin(), "setting"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=4, help="of Adult")
    parser.add_argument("--table-splits", type=int, default=2, help="of the other tables")
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=[name for name in TABLES if name != "adult"])
    parser.add_argument("--only", nargs="*", choices=ADULT, default=list(ADULT), help="settings of Adult")
    parser.add_argument("--quick", action="store_true", help="one split and few steps, to see that it runs")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    names = list(ADULT)[-1:] if given.quick else given.only
    tables = ["hiring"] if given.quick else [name for name in given.tables if there(name)]
    settings = list(ELSEWHERE)[-1:] if given.quick else list(ELSEWHERE)
    jobs = [(name, split) for split in range(1 if given.quick else given.splits) for name in names]
    some = range(1 if given.quick else given.table_splits)
    more = [(f"{table}: {setting}", split) for split in some for table in tables for setting in settings]
    for file, wanted, run, mean in (
        ("free_only", jobs, run_adult, means),
        ("free_only_tables", more, run_table, table_means),
    ):
        if not wanted:
            continue
        runs = run_missing(given.out / f"{file}_runs.csv", wanted, 1, partial(run, quick=given.quick))
        table = mean(runs)
        table.to_csv(given.out / f"{file}.csv", index=False, lineterminator="\n")
        print(table.to_string(index=False))
        if run is run_adult and not given.quick:
            print("chosen:", chosen(table))


if __name__ == "__main__":
    main()
