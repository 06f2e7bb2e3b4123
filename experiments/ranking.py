"""Individually fair ranking: SenSTIR on a synthetic task whose relevance labels favour a group.

    python experiments/ranking.py [--quick] [--out DIR]

Rank consistency is Kendall's tau between the rankings of a query's items before and after everybody's group is flipped;
inconsistency is 1 minus it. All scores are on new queries. NDCG is against the biased relevance, so that fairness has a
price even for the best scorer that does not see the group: least squares with and without the group show which.
"""

import argparse
from pathlib import Path

import pandas as pd
from sklearn.linear_model import LinearRegression

from evenhand.estimators.senstir import SenSTIRRanker, ndcg, rank_consistency, synthetic_ranking
from evenhand.fair_metrics import from_columns

RESULTS = Path(__file__).resolve().parent / "results"
RHOS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0)
SEEDS = range(5)
TRAINING = {"hidden": (), "eps": 0.01, "steps": 150, "batch_size": 16, "lr": 0.05, "samples": 8}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed and few steps, to see that it runs")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    out = given.out or (Path("runs/quick") if given.quick else RESULTS)
    training, seeds = ({**TRAINING, "steps": 10}, range(1)) if given.quick else (TRAINING, SEEDS)
    rows = []
    for seed in seeds:
        train, test = synthetic_ranking(seed=seed), synthetic_ranking(seed=1000 + seed)
        flipped = test.X.assign(group=1 - test.X["group"])
        for method, columns in (("least squares", list(train.X)), ("least squares, group-blind", list(train.X)[:-1])):
            line = LinearRegression().fit(train.X[columns], train.y)
            scored, scored_flipped = (line.predict(X[columns]) for X in (test.X, flipped))
            consistency = rank_consistency(scored, scored_flipped, test.query)
            quality = ndcg(test.y, scored, test.query)
            rows.append({"method": method, "rho": None, "seed": seed, "NDCG": quality, "rank consistency": consistency})
        for rho in RHOS:
            ranker = SenSTIRRanker(from_columns(train.X, ["group"]), rho=rho, random_state=seed, **training).fit(*train)
            consistency = rank_consistency(ranker.predict(test.X), ranker.predict(flipped), test.query)
            row = {"method": "SenSTIR", "rho": rho, "seed": seed, "NDCG": ranker.score(*test)}
            rows.append({**row, "rank consistency": consistency})
            print(rows[-1], flush=True)
    rows.sort(key=lambda row: row["method"])
    out.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(out / "ranking.csv", index=False, float_format="%.5g", lineterminator="\n")


if __name__ == "__main__":
    main()
