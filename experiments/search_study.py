"""How few steps of search train as fair a model as the paper's 50 + 50? Real Adult, five seeds, judged by an audit.

    python experiments/search_study.py [--jobs 2] [--seeds 5] [--rows 128]

Everything but the search is the same: split i for seed i, the three-direction metric, 41-100-2 network and its ordinary
start (not a blind one, so that the search has something to find), bounds = range of the data, rho, eps, batches, steps.
The judge is ``audit``: every combination of sex and race, both ends of each free direction, many starts, climbs for
several lam, and the exact minimum over lam. It knows nothing of the search that trained the model.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from table3_adult import RESULTS, metric, run_missing
from torch import Tensor

from evenhand import evaluation
from evenhand.audit import audit
from evenhand.datasets import adult
from evenhand.estimators.base import mlp
from evenhand.fair_metrics import FairMetric
from evenhand.objectives import ERM, Objective, SenSeI
from evenhand.regularizer import FairRegularizer, gradient_rule
from evenhand.search import PAPER_ADULT, GradientSearch, SignAscent
from evenhand.training.loop import train as fit

TRAINING = {"steps": 300, "batch_size": 500, "lr": 2e-3}
RHO, EPS = 40.0, 0.1
AUDIT_EPS = (0.01, 0.1)

PAPER = "50 x 5 + 50 x .001 (paper)"
DEFAULT = "3 x .5 + line up to .3 (default)"
SEARCHES: dict[str, GradientSearch] = {  # subspace steps x their size + full steps x their size
    PAPER: PAPER_ADULT,
    "5 x .5 + 5 x .05": GradientSearch(0.5, 5, 0.05, 5, line_search=False),
    "3 x .5 + 3 x .1": GradientSearch(0.5, 3, 0.1, 3, line_search=False),
    "2 x 1 + 2 x .1": GradientSearch(1.0, 2, 0.1, 2, line_search=False),
    "2 x 1 + 2 x .1, sign": GradientSearch(1.0, 2, 0.1, 2, line_search=False, ascent=SignAscent),
    DEFAULT: GradientSearch(),
    "2 x 1 + line up to .3": GradientSearch(1.0, 2, 0.3, 1),
}
PLAIN = "plain training"


def objective_of(method: str, fair_metric: FairMetric, x: Tensor, seed: int) -> Objective:
    if method == PLAIN:
        return ERM()
    regularizer = FairRegularizer(
        fair_metric,
        eps=EPS,
        bounds=(x.min(0).values, x.max(0).values),
        search=SEARCHES[method],
        lam_rule=gradient_rule(TRAINING["lr"] * RHO),
        lam=0.1,
        generator=torch.Generator().manual_seed(seed + 1),
    )
    return SenSeI(regularizer, RHO, every=1)


def run(method: str, seed: int, rows: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    train, test = adult(seed)
    fair_metric = metric(train.X)
    x, y = torch.tensor(train.X.to_numpy(), dtype=torch.float32), torch.tensor(train.y)
    network = mlp(x.shape[1], (100,), 2, torch.Generator().manual_seed(seed))
    objective = objective_of(method, fair_metric, x, seed)
    fit(network, objective, x, y, **TRAINING, generator=torch.Generator().manual_seed(seed))
    everyone = pd.concat([train.X, test.X])
    box = (everyone.min().to_numpy().copy(), everyone.max().to_numpy().copy())
    x_test = torch.tensor(test.X.to_numpy(), dtype=torch.float32)
    found = {f"R {e:g}": audit(network, x_test[:rows], fair_metric, eps=e, bounds=box).r_low for e in AUDIT_EPS}
    with torch.no_grad():
        ba = evaluation.balanced_accuracy(test.y, network(x_test).argmax(1).numpy())
    row = {"method": method, "split": seed, "BA": round(ba, 5)}
    return row | {k: float(f"{v:.4g}") for k, v in found.items()}


def costs(rounds: int) -> dict[str, float]:
    """CPU milliseconds of a training step on split 0: medians, a few steps of each search in turn."""
    torch.set_num_threads(1)
    train, _ = adult(0)
    fair_metric = metric(train.X)
    x, y = torch.tensor(train.X.to_numpy(), dtype=torch.float32), torch.tensor(train.y)
    networks = {method: mlp(x.shape[1], (100,), 2, torch.Generator().manual_seed(0)) for method in (PLAIN, *SEARCHES)}
    objectives = {method: objective_of(method, fair_metric, x, 0) for method in networks}
    seconds: dict[str, list[float]] = {method: [] for method in networks}
    for _ in range(rounds):
        for method, network in networks.items():
            start = time.process_time()
            fit(network, objectives[method], x, y, **{**TRAINING, "steps": 6})
            seconds[method].append(time.process_time() - start)
    return {method: 1000 * statistics.median(times) / 6 for method, times in seconds.items()}


def table(runs: pd.DataFrame, milliseconds: dict[str, float]) -> pd.DataFrame:
    """Means and standard errors over the seeds; the cost of a step in steps of plain training."""
    rows = []
    for method in [PLAIN, *SEARCHES]:
        part = runs[runs["method"] == method]
        if len(part):
            row = {"search": method, "seeds": len(part), "BA": round(part["BA"].mean(), 4)}
            for name in (f"R {eps:g}" for eps in AUDIT_EPS):
                row[name] = float(f"{part[name].mean():.3g}")
                row[f"{name} se"] = float(f"{part[name].sem():.2g}")
            rows.append({**row, "plain steps": round(milliseconds[method] / milliseconds[PLAIN], 1)})
    return pd.DataFrame(rows)


def markdown(result: pd.DataFrame) -> str:
    """The table of docs/search-study.md."""
    lines = [
        "| search | BA | R(h) at eps .01 | R(h) at eps .1 | cost of a step, in plain steps |",
        "|---|---|---|---|---|",
    ]
    for row in result.to_dict("records"):
        r = [f"{row[f'R {eps:g}']:.3g} ± {row[f'R {eps:g} se']:.2g}" for eps in AUDIT_EPS]
        lines.append(f"| {row['search']} | {row['BA']:.3f} | {r[0]} | {r[1]} | {row['plain steps']:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=128, help="test rows that are audited")
    parser.add_argument("--rounds", type=int, default=40, help="of the timing")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    jobs = [(method, seed, given.rows) for seed in range(given.seeds) for method in (PLAIN, *SEARCHES)]
    runs = run_missing(given.out / "search_study_runs.csv", jobs, given.jobs, run)
    milliseconds = costs(given.rounds)
    pd.Series(milliseconds, name="ms").round(3).to_csv(
        given.out / "search_study_cost.csv", index_label="search", lineterminator="\n"
    )
    result = table(runs, milliseconds)
    result.to_csv(given.out / "search_study.csv", index=False, lineterminator="\n")
    print(markdown(result))


if __name__ == "__main__":
    main()
