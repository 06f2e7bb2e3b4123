"""Does the confidence statement hold as often as it says? Linear models with known R, 1,000 repetitions.

    python experiments/coverage.py [--repetitions 1000] [--out DIR]

h(x) = a x_0 + c x_1, x_0 sensitive in [-1, 1], x_1 unbounded, so that R(h) = (sqrt(E s^2) + |c| sqrt(eps))^2 with
s = |a| (1 + |x_0|). lam comes from 200 separate tuning rows, as in certify(). Writes certify_coverage.csv.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd

from evenhand.dual.confidence import betting_upper, empirical_bernstein_upper, hoeffding_upper, lower_bound

RESULTS = Path(__file__).resolve().parent / "results"
A, C, EPS, T = 0.5, 1.0, 0.01, 0.05
UPPERS = {"hoeffding": hoeffding_upper, "empirical Bernstein": empirical_bernstein_upper, "betting": betting_upper}


def draw(kind: str, n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "uniform":
        return rng.uniform(-1, 1, size)
    return np.where(rng.random(size) < 1 / n, 1.0, rng.uniform(-0.05, 0.05, size))  # a rare extreme person


def true_r(kind: str, n: int) -> float:
    mean = 7 / 3 if kind == "uniform" else 4 / n + (1 - 1 / n) * (1 + 0.05 + 0.05**2 / 3)
    return (math.sqrt(A**2 * mean) + C * math.sqrt(EPS)) ** 2


def simulate(kind: str, n: int, repetitions: int) -> list[dict[str, object]]:
    rng, r = np.random.default_rng(0), true_r(kind, n)
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in UPPERS}
    plug_in = []
    for _ in range(repetitions):
        tuning = A**2 * (1 + np.abs(draw(kind, n, 200, rng))) ** 2
        lam = C**2 + C * math.sqrt(tuning.mean() / EPS)
        s = A**2 * (1 + np.abs(draw(kind, n, n, rng))) ** 2
        rbar, largest = s * lam / (lam - C**2), 4 * A**2 * lam / (lam - C**2)
        step = C * np.sqrt(s) / (lam - C**2)  # the worst case of each person at lam, a map fixed beforehand
        d_x, d_y = step**2, (np.sqrt(s) + C * step) ** 2
        d_x_max = C**2 * 4 * A**2 / (lam - C**2) ** 2
        d_y_max = (2 * A + C * math.sqrt(d_x_max)) ** 2
        plug_in.append((math.sqrt(s.mean()) + C * math.sqrt(EPS)) ** 2)
        for name, upper in UPPERS.items():
            high = lam * EPS + upper(rbar, largest, T / 2)
            low = min(1.0, EPS / upper(d_x, d_x_max, T / 4)) * lower_bound(upper, d_y, d_y_max, T / 4)
            seen[name].append((low, high))
    rows: list[dict[str, object]] = []
    for name, pairs in seen.items():
        low, high = np.array(pairs).T
        rows.append(
            {
                "population": kind,
                "n": n,
                "interval": name,
                "repetitions": repetitions,
                "nominal": 1 - T,
                "coverage": float(((low <= r) & (r <= high)).mean()),
                "coverage_upper": float((high >= r).mean()),
                "coverage_lower": float((low <= r).mean()),
                "excess": float(high.mean() / r - 1),
                "plug_in_coverage": float((np.array(plug_in) >= r).mean()),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    rows = [row for kind in ("uniform", "rare") for n in (200, 1000) for row in simulate(kind, n, args.repetitions)]
    table = pd.DataFrame(rows)
    table.to_csv(args.out / "certify_coverage.csv", index=False, float_format="%.6g")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
