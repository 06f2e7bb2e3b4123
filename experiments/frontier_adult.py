"""Accuracy against unfairness on Adult: SenSeI along rho, SenSR along eps, CLP along rho, and Project's point.

    python experiments/frontier_adult.py [--jobs 2] [--quick] [--time] [--out DIR]

Three folds of the training part of split 0; the test part is not touched. Unfairness is the searched R(h) at one eps
and metric for all, a lower bound. Finished models are kept (runs/frontier_adult, or DIR/frontier_adult_models): it can
be stopped at any time. ``--time`` trains SenSeI's sweep once more with nothing kept and writes how long that took.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand import evaluation
from evenhand.counterfactuals import alter_columns
from evenhand.datasets import adult
from evenhand.estimators import CLPClassifier, ProjectClassifier, SenSeIClassifier, SenSRClassifier
from evenhand.fair_metrics import from_classifier
from evenhand.frontier import SearchedUnfairness, frontier
from evenhand.report import plots
from evenhand.search import GradientSearch

RESULTS = Path(__file__).resolve().parent / "results"
RHOS = [0, 0.1, 0.3, 1, 3, 10, 30, 100]
EPSILONS = [0, 0.01, 0.1, 1]  # of SenSR
CLP_RHOS = [0.3, 3, 30, 300]
EPS = 0.1  # of SenSeI, and of the unfairness that all are measured by
FOLDS = 3
TRAINING = {"hidden": (100,), "steps": 1000, "batch_size": 500, "lr": 2e-3, "random_state": 0}
SEARCH = GradientSearch(subspace_step=0.5, subspace_steps=3, full_step=0.05, full_steps=4, line_search=False)
QUICK_STEPS = 5


def flips(X: pd.DataFrame) -> Any:
    """Everybody in all four combinations of sex and race."""
    return alter_columns(X, {"sex": [0, 1], "race": [0, 1]})


def spouse_flips(model: Any, X: pd.DataFrame, y: Any) -> float:
    """1 - S-Con: share of people whose prediction depends on being a husband or a wife."""
    versions = alter_columns(X, {"relationship": ["Husband", "Wife"]}, keep_original=False)
    return 1 - evaluation.prediction_consistency(versions.map(model.predict))


def gap_g(model: Any, X: pd.DataFrame, y: Any) -> float:
    """Gap RMS between women and men."""
    return evaluation.tpr_gaps(y, model.predict(X), X["sex"].to_numpy()).rms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--quick", action="store_true", help="few rows and steps, to see that it runs")
    parser.add_argument("--time", action="store_true", help="measure how long SenSeI's sweep takes; nothing is kept")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    out = given.out or (Path("runs/quick") if given.quick else RESULTS)
    out.mkdir(parents=True, exist_ok=True)
    train = adult(0).train
    X, y = (train.X[:600], train.y[:600]) if given.quick else (train.X, train.y)
    metric = from_classifier(X, columns=["sex", "race"], predict=["sex"], l2=0.1)
    training = {**TRAINING, "steps": QUICK_STEPS} if given.quick else TRAINING
    rows, some, folds = (6, slice(0, None, 7), 2) if given.quick else (1000, slice(None), FOLDS)
    scores = {
        "unfairness": SearchedUnfairness(EPS, metric, rows=rows),
        "spouse_flips": spouse_flips,
        "gap_g": gap_g,
    }
    fair = {"search": SEARCH, "lam": 0.2, "every": 1, **training}
    sweeps: dict[str, tuple[Any, dict[str, Any]]] = {
        "SenSeI": (SenSeIClassifier(metric, eps=EPS, free=0.0, **fair), {"rho": RHOS[some]}),
        "Project": (ProjectClassifier(metric, **training), {"params": [{}]}),
        "SenSR": (SenSRClassifier(metric, search=SEARCH, **training), {"params": {"eps": EPSILONS[some]}}),
        "CLP": (CLPClassifier(flips, **training), {"rho": CLP_RHOS[some]}),
    }
    if given.time:
        estimator, sweep = sweeps["SenSeI"]
        started = time.monotonic()
        found = frontier(estimator, X, y, **sweep, scores=scores, cv=FOLDS, n_jobs=given.jobs)
        took = {"settings": len(RHOS), "folds": FOLDS, "jobs": given.jobs}
        took |= {"wall_seconds": round(time.monotonic() - started, 1)}
        took |= {"cpu_seconds": round(float(found.frame["seconds"].sum()), 1)}
        (out / "frontier_adult_time.json").write_text(json.dumps(took, indent=1) + "\n")
        print(took)
        return
    tables, started = {}, time.monotonic()
    for name, (estimator, sweep) in sweeps.items():
        store = Path("runs") / "frontier_adult" if out == RESULTS else out / "frontier_adult_models"
        found = frontier(estimator, X, y, **sweep, scores=scores, cv=folds, n_jobs=given.jobs, directory=store)
        tables[name] = found.table.assign(cpu_seconds=found.frame["seconds"].sum().round(1))
        print(f"{name}: {found}", flush=True)
        if name == "SenSeI":
            choice = found.choose(max_accuracy_loss=0.02)
            (out / "frontier_adult_choice.txt").write_text(f"{choice}\n")
            print(choice)
        if not given.quick or len(tables) == len(sweeps):
            write(tables, out, quick=given.quick)
    print(f"{time.monotonic() - started:.0f} s")


def write(tables: dict[str, pd.DataFrame], out: Path, quick: bool) -> None:
    """The table and the chart of the sweeps that are finished."""
    table = pd.concat([part.assign(method=name) for name, part in tables.items()], ignore_index=True)
    shown = ["method", "rho", "eps", "accuracy", "unfairness", "spouse_flips", "gap_g"]
    table = table.reindex(columns=[*shown, *(column for column in table if column not in shown)])
    table.to_csv(out / "frontier_adult.csv", index=False, float_format="%.5g", lineterminator="\n")
    drawn = {name: part.drop(columns="cpu_seconds") for name, part in tables.items()}
    chart = plots.trade_off(drawn, title="Adult: balanced accuracy against searched R(h)", log=True)
    for kind in ("html", "svg", "png") if quick else ("svg", "png"):
        plots.save(chart, out / f"frontier_adult.{kind}")
    print(table[shown].round(4).to_string(index=False))


if __name__ == "__main__":
    main()
