"""Does the confidence statement hold as often as it says, in whatever order people come? 1,000 repetitions.

    python experiments/certify_coverage.py [--repetitions 1000] [--n 1000] [--out DIR]

h(x) = a x_0 + c x_1 with x_0 sensitive in [-1, 1] and d_Y the squared error, so that everything is known:
R(h) = (sqrt(E s^2) + |c| sqrt(eps))^2 with s = |a| (1 + |x_0|); strangers differ by twice the variance of h; a decision
(h > 0) can be changed when some x' with d_X <= eps lies on the other side. People are drawn independently and then
handed over in random order, ascending or descending by |x_0|, to the functions that certify() itself uses: its split
(tuning people given apart, or a fifth of the sample), its shuffled means, its move, its strangers, its counts.
Writes certify_coverage.csv.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from evenhand.certify.people import separate
from evenhand.dual.confidence import UpperBound, betting_upper, empirical_bernstein_upper, hoeffding_upper
from evenhand.dual.moves import FixedMove
from evenhand.dual.running import BlockMeans
from evenhand.headline import STRANGERS_PART, Headline
from evenhand.output_distances import squared_error

RESULTS = Path(__file__).resolve().parent / "results"
A, C, EPS, T = 0.5, 1.0, 0.01, 0.05
REACH = 3.0  # x_1 of everybody lies within it; x' may go further
UPPERS = {"hoeffding": hoeffding_upper, "empirical Bernstein": empirical_bernstein_upper, "betting": betting_upper}
ORDERS = ("random", "ascending", "descending")
POPULATIONS = ("uniform", "rare")
SPLITS = ("apart", "fifth")


def draw(kind: str, n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    x_0 = rng.uniform(-1, 1, size)
    if kind == "rare":  # almost everybody in the middle, one in n at the end
        x_0 = np.where(rng.random(size) < 1 / n, 1.0, rng.uniform(-0.05, 0.05, size))
    return np.column_stack([x_0, rng.uniform(-REACH, REACH, size)])


def score(x: np.ndarray) -> np.ndarray:
    return A * x[:, 0] + C * x[:, 1]


def turned(x: np.ndarray) -> np.ndarray:
    """Whether somebody within d_X <= eps gets the other decision."""
    low, high = -A + C * x[:, 1] - C * math.sqrt(EPS), A + C * x[:, 1] + C * math.sqrt(EPS)
    return np.where(score(x) > 0, low <= 0, high > 0)


def truth(kind: str, n: int) -> dict[str, float]:
    mean = 7 / 3 if kind == "uniform" else 4 / n + (1 - 1 / n) * (1 + 0.05 + 0.05**2 / 3)
    r = (math.sqrt(A**2 * mean) + C * math.sqrt(EPS)) ** 2
    second, first = (1 / 3, 0.0) if kind == "uniform" else (1 / n + (1 - 1 / n) * 0.05**2 / 3, 1 / n)
    strangers = 2 * (A**2 * (second - first**2) + C**2 * REACH**2 / 3)
    # turned: c x_1 in (-a x_0, a + c sqrt(eps)) or in (-a - c sqrt(eps), -a x_0), together 2 a + 2 c sqrt(eps) wide
    decisions = (2 * A + 2 * C * math.sqrt(EPS)) / (2 * REACH * C)
    return {"R": r, "relative": r / strangers, "decisions": decisions}


def statements(tuning: np.ndarray, held: np.ndarray) -> dict[str, dict[str, tuple[float, float]]]:
    """What certify() says with each interval, with the exact r_lam of this model for a bound."""
    lam = C**2 + C * math.sqrt((A**2 * (1 + np.abs(tuning[:, 0])) ** 2).mean() / EPS)
    s = A * (1 + np.abs(held[:, 0]))
    step = C * s / (lam - C**2)  # the worst case of each person at lam, a map fixed beforehand
    furthest = C * 2 * A / (lam - C**2)
    move = FixedMove(lam, furthest**2, (2 * A + C * furthest) ** 2)
    above, moved_y, moved_x = BlockMeans(), BlockMeans(), BlockMeans()
    above.add(s**2 * lam / (lam - C**2))
    for means, values in zip((moved_y, moved_x), move(((s + C * step) ** 2)[:, None], (step**2)[:, None]), strict=True):
        means.add(values)
    largest = 4 * A**2 * lam / (lam - C**2)
    headline = Headline(squared_error, torch.from_numpy(score(tuning)[:, None]), 0.0)
    flip = np.where(turned(held), -np.sign(score(held)), score(held))
    headline.add(torch.from_numpy(held), torch.from_numpy(np.stack([score(held), flip], 1)[..., None]))
    each, for_r = T / 2, (1 - STRANGERS_PART) * T / 2
    widest = (2 * A + 2 * REACH * C) ** 2
    rbar, y, x = above.values, moved_y.values, moved_x.values

    def said(interval: UpperBound) -> dict[str, tuple[float, float]]:
        low, high = (
            [move.lower(y, x, EPS, alpha, interval) for alpha in (each, for_r)],
            [lam * EPS + interval(rbar, largest, alpha) for alpha in (each, for_r)],
        )
        relative = headline.relative(0.0, 0.0, low[1], high[1], each, interval, widest)
        decisions = headline.decisions(each, each)
        assert relative is not None
        assert decisions is not None
        return {
            "R": (low[0], high[0]),
            "relative": (relative.lower, relative.upper),
            "decisions": (decisions.lower, decisions.upper),
        }

    return {name: said(interval) for name, interval in UPPERS.items()}


def simulate(kind: str, n: int, order: str, split: str, repetitions: int) -> list[dict[str, object]]:
    rng, known = np.random.default_rng(0), truth(kind, n)
    seen = {name: {number: [] for number in known} for name in UPPERS}
    for _ in range(repetitions):
        given = draw(kind, n, 200, rng) if split == "apart" else None
        x = draw(kind, n, n, rng)
        if order != "random":
            x = x[np.argsort(np.abs(x[:, 0]) * (1 if order == "ascending" else -1))]
        tuning, held, _ = separate(given, x)
        for name, numbers in statements(tuning, held).items():
            for number, pair in numbers.items():
                seen[name][number].append(pair)
    rows: list[dict[str, object]] = []
    for name, numbers in seen.items():
        row: dict[str, object] = {"population": kind, "n": n, "order": order, "split": split, "interval": name}
        row |= {"repetitions": repetitions, "nominal": 1 - T}
        for number, pairs in numbers.items():
            low, high = np.array(pairs).T
            within = (low <= known[number]) & (known[number] <= high)
            row[f"coverage_{number}"] = float(within.mean())
            row[f"excess_{number}"] = float(high.mean() / known[number] - 1)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--populations", nargs="+", choices=POPULATIONS, default=list(POPULATIONS))
    parser.add_argument("--orders", nargs="+", choices=ORDERS, default=list(ORDERS))
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--join", type=Path, nargs="+", help="folders of runs of parts, to put together")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    path, rows = args.out / "certify_coverage.csv", []
    if args.join:
        pd.concat([pd.read_csv(part / path.name) for part in args.join]).to_csv(path, index=False, float_format="%.6g")
        args.populations = []
    for kind in args.populations:
        for order in args.orders:
            for split in args.splits:
                rows += simulate(kind, args.n, order, split, args.repetitions)
                pd.DataFrame(rows).to_csv(path, index=False, float_format="%.6g")
    print(pd.read_csv(path).to_string(index=False))


if __name__ == "__main__":
    main()
