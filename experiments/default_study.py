"""Settings around SenSeIClassifier's defaults, on validation rows of Adult: what accuracy each gains, at what cost.

    python experiments/default_study.py [--only NAME ...] [--out FILE]

Trains on four fifths of the training part of split 0 and judges on the fifth left, with worst cases of all rows of a
batch (every=1). One split: small differences mean little.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from table3_adult import FIRST, RESULTS, metric, scores

from evenhand.datasets import adult
from evenhand.datasets.adult import Table
from evenhand.estimators import SenSeIClassifier
from evenhand.estimators.fair import TRAINING_SEARCH

SETTINGS: dict[str, dict[str, Any]] = {
    "one strength": {},
    "rho 13": {"rho": 13.0},
    "rho 13, 400 hidden units": {"rho": 13.0, "hidden": (400,)},
    "rho 13, two hidden layers of 50": {"rho": 13.0, "hidden": (50, 50)},
    "rho 13, 1500 steps": {"rho": 13.0, "steps": 1500},
    "rho 30, 1500 steps": {"rho": 30.0, "steps": 1500},
    "rho 20, 1500 steps, 400 hidden units": {"steps": 1500, "hidden": (400,)},
    "rho 40, eps .03": {"rho": 40.0, "eps": 0.03},
    "rho 20, eps .03": {"eps": 0.03},
    "rho 8, eps .3": {"rho": 8.0, "eps": 0.3},
    "rho 13, full steps of .15": {"rho": 13.0, "search": replace(TRAINING_SEARCH, full_step=0.15)},
    "rho 13, full steps of .02": {"rho": 13.0, "search": replace(TRAINING_SEARCH, full_step=0.02)},
    "rho 20, full steps of .01": {"search": replace(TRAINING_SEARCH, full_step=0.01)},
    "rho 13, weight decay .001": {"rho": 13.0, "weight_decay": 1e-3},
    "rho 20, weight decay .003": {"weight_decay": 3e-3},
    "rho 13, weight decay .003, 1500 steps": {"rho": 13.0, "weight_decay": 3e-3, "steps": 1500},
    "rho 10, weight decay .01, 1000 steps": {"rho": 10.0, "weight_decay": 1e-2, "steps": 1000},
    "rho 13, batches of 2000": {"rho": 13.0, "batch_size": 2000},
    "rho 13, rate .0005": {"rho": 13.0, "lr": 5e-4},
}


def run(name: str, split: int = 0) -> dict[str, Any]:
    train, _ = adult(split)
    cut = int(0.8 * len(train.y))  # the rows of a split are in random order
    fit, held = (Table(*(column[rows] for column in train)) for rows in (slice(cut), slice(cut, None)))
    model = SenSeIClassifier(metric(fit.X), every=1, random_state=split, **(FIRST | SETTINGS[name])).fit(fit.X, fit.y)
    return {"setting": name, **{score: round(value, 3) for score, value in scores(model, held).items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--out", type=Path, default=RESULTS / "default_study.csv")
    given = parser.parse_args()
    torch.set_num_threads(1)
    frame = pd.DataFrame([run(name) for name in given.only])
    frame.to_csv(given.out, index=False, lineterminator="\n")
    print(frame.to_string(index=False))


if __name__ == "__main__":
    main()
