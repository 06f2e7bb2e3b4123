"""Figure 1: the decision surface of SenSeI on two-dimensional data, for growing rho.

Points on a horizontal line are similar (A = [1, 0]), the labels are biased along it. Growing rho turns the boundary
horizontal; the plain network (rho = 0) follows the diagonal of the labels.

    python experiments/fig1_rho.py [--quick]
"""

import pandas as pd
import torch
from surfaces import SEARCH, Panel, arguments, measure, picture, save

from evenhand.datasets import synthetic
from evenhand.estimators import SenSeIClassifier
from evenhand.fair_metrics import FairMetric

RHOS = (0.1, 1.0, 3.0, 5.0)  # Figure 1
EPS = 0.01  # ours; the paper does not say
HIDDEN = (50,)
STEPS, BATCH, LR = 1000, 200, 5e-3
POINTS = 1000
SEEDS = range(5)  # of data and training; the picture shows the first
QUICK = {"steps": 60, "seeds": range(1), "points": 300}


def main() -> None:
    given = arguments(__doc__)
    steps, seeds, points = QUICK.values() if given.quick else (STEPS, SEEDS, POINTS)
    metric = FairMetric(torch.tensor([[1.0], [0.0]]))
    rows, panels = [], []
    for seed in seeds:
        X, y = synthetic(points, seed=seed)
        for rho in (0.0, *RHOS):
            clf = SenSeIClassifier(
                metric,
                hidden=HIDDEN,
                rho=rho,
                eps=EPS,
                search=SEARCH,
                every=1,
                free=0.0,
                random_state=seed,
                steps=steps,
                batch_size=BATCH,
                lr=LR,
            ).fit(X, y)
            measured = measure(clf.predict)
            rows.append({"rho": rho, "seed": seed, **measured})
            print(f"rho {rho:<4g} seed {seed}  " + "  ".join(f"{k} {v:.3f}" for k, v in measured.items()), flush=True)
            if seed == seeds[0]:
                title = f"ρ = {rho:g}" if rho else "ρ = 0, plain"
                panels.append(Panel(title, lambda points, clf=clf: clf.predict_proba(points)[:, 1], measured))
    table = pd.DataFrame(rows)
    print(table.drop(columns="seed").groupby("rho").mean().round(3))
    X, y = synthetic(points, seed=seeds[0])
    chart = picture(
        panels,
        X,
        y,
        "SenSeI: the larger ρ, the more horizontal the boundary",
        "Points on a horizontal line are similar; “equal” is the share of such pairs with the same prediction. "
        "Dots are training points.",
    )
    save(chart, table, given.out, "fig1_rho")


if __name__ == "__main__":
    main()
