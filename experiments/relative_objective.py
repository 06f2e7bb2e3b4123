"""Which d_Y to train with: the paper's squared logits, or these over the difference of two strangers?

The paper's R(h) falls when all outputs are squeezed, which is no fairness. The relative objective
loss + rho * R(h) / E d_Y(h(X), h(X')), X and X' strangers of the batch, cannot be lowered so. Both are trained for
several rho on four fifths of the training part of each split and judged on the last fifth: no test row is looked at.

    python experiments/relative_objective.py [--splits 3] [--quick] [--out DIR]

Writes relative_objective.csv; a run that is there is not made again.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from table3_adult import RESULTS, metric, scores

from evenhand import SenSeIClassifier, audit
from evenhand.datasets import Table, adult
from evenhand.estimators.base import parameters
from evenhand.estimators.inputs import data_bounds
from evenhand.objectives.batch import Batch, mean_loss
from evenhand.objectives.sensei import SenSeI
from evenhand.output_distances import mean_squared_logits

WEIGHTS = {"squared logits": (5.0, 13.0, 20.0, 30.0), "relative": (1.0, 3.0, 10.0)}
EPS = 0.01  # of the audit


class Relative(SenSeI):
    """E[loss] + rho * R(h) over the mean d_Y of two strangers."""

    def forward(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        fair = self.regularizer.evaluate(model, batch.x, batch.rows)
        loss = mean_loss(self.loss(fair.h_x, batch.y), batch.weight)
        strangers = fair.h_x[torch.randperm(len(fair.h_x), generator=self.regularizer.generator)]
        scale = mean_squared_logits(fair.h_x, strangers).mean()
        self.last = {"loss": loss.detach(), "regularizer": fair.value.detach(), "strangers": scale.detach()}
        return loss + self.rho * fair.value / scale.clamp(min=1e-12)


@parameters()
class RelativeClassifier(SenSeIClassifier):
    """SenSeI with the relative objective."""

    def _objective(self, search_generator: torch.Generator) -> SenSeI:
        paper = super()._objective(search_generator)
        return Relative(paper.regularizer, self.rho, self._loss)


KINDS = {"squared logits": SenSeIClassifier, "relative": RelativeClassifier}


def run(objective: str, rho: float, split: int, steps: int, people: int) -> dict[str, Any]:
    train, _ = adult(split)
    cut = int(0.8 * len(train.y))  # the rows of a split are in random order
    part, rest = (Table(*(column[rows] for column in train)) for rows in (slice(cut), slice(cut, None)))
    began = time.process_time()
    model = KINDS[objective](metric(part.X), rho=rho, free=0.0, steps=steps, every=1, random_state=split).fit(
        part.X, part.y
    )
    seconds = time.process_time() - began
    box = data_bounds(torch.tensor(np.asarray(part.X), dtype=torch.float32))  # possible people only
    x = rest.X.iloc[:people]
    x = x[box.contains(torch.tensor(np.asarray(x), dtype=torch.float64)).numpy()]
    found = audit(model, x, eps=EPS, bounds=box, keep=1)
    assert found.relative is not None
    numbers = {"R": found.r_low, "strangers": found.strangers, "relative": found.relative.low, "cpu_seconds": seconds}
    rounded = {name: float(f"{value:.4g}") for name, value in numbers.items()}
    return {"objective": objective, "rho": rho, "split": split, **scores(model, rest), **rounded}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few steps, one weight each")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    path = args.out / "relative_objective.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    there = {(row["objective"], row["rho"], row["split"]) for row in rows}
    for split in range(1 if args.quick else args.splits):
        for objective, weights in WEIGHTS.items():
            for rho in weights[:1] if args.quick else weights:
                if (objective, rho, split) in there:
                    continue
                rows.append(run(objective, rho, split, 20 if args.quick else 500, 30 if args.quick else 200))
                print(rows[-1], flush=True)
                table = pd.DataFrame(rows).sort_values(["objective", "rho", "split"])
                table.to_csv(path.with_suffix(".partial"), index=False, lineterminator="\n")
                path.with_suffix(".partial").replace(path)


if __name__ == "__main__":
    main()
