"""Figure 4: the decision surface of SenSR on the data of Figure 1, for growing eps.

The boundary is horizontal already at eps = 0, where only moves along horizontal lines are allowed: unlike rho of
SenSeI, eps is no trade-off between following the biased labels and treating similar points alike.

    python experiments/fig4_sensr_eps.py [--quick]
"""

import pandas as pd
import torch
from surfaces import SEARCH, Panel, arguments, measure, picture, save

from evenhand.datasets import synthetic
from evenhand.estimators import SenSRClassifier
from evenhand.fair_metrics import FairMetric

EPSILONS = (0.0, 0.001, 0.01, 0.1)  # Figure 4
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
        for eps in EPSILONS:
            clf = SenSRClassifier(
                metric, hidden=HIDDEN, eps=eps, search=SEARCH, random_state=seed, steps=steps, batch_size=BATCH, lr=LR
            ).fit(X, y)
            measured = measure(clf.predict)
            rows.append({"eps": eps, "seed": seed, **measured})
            print(f"eps {eps:<5g} seed {seed}  " + "  ".join(f"{k} {v:.3f}" for k, v in measured.items()), flush=True)
            if seed == seeds[0]:
                panels.append(Panel(f"ε = {eps:g}", lambda points, clf=clf: clf.predict_proba(points)[:, 1], measured))
    table = pd.DataFrame(rows)
    print(table.drop(columns="seed").groupby("eps").mean().round(3))
    X, y = synthetic(points, seed=seeds[0])
    chart = picture(
        panels,
        X,
        y,
        "SenSR: horizontal already at ε = 0",
        "Points on a horizontal line are similar; “equal” is the share of such pairs with the same prediction. "
        "Dots are training points.",
    )
    save(chart, table, given.out, "fig4_sensr_eps")


if __name__ == "__main__":
    main()
