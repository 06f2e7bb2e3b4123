"""Certificates of wide networks: 1000-50-2 and 384-2000-2, trained here on made-up people.

    python experiments/certify_wide.py [--cases ...] [--n 300] [--eps 0.01] [--out DIR]

People are independent and normal, cut to [-4, 4]; the label depends on some columns and on a group, which the free
directions (random and orthonormal, the group's own among them) are about. The domain is that box. A run that is already
in the results is not made again. One core; seconds are CPU seconds.
"""

import argparse
import itertools
import time
from pathlib import Path

import pandas as pd
import torch
from torch import nn

from evenhand.certify.certify import certify
from evenhand.domain import Box
from evenhand.fair_metrics import FairMetric

RESULTS = Path(__file__).resolve().parent / "results"
CASES = {  # widths, free directions
    "1000-50-2": ((1000, 50, 2), 3),
    "384-2000-2": ((384, 2000, 2), 5),
    "384-2000-2, 25 free": ((384, 2000, 2), 25),
}
SMALL = {"30-6-2": ((30, 6, 2), 2)}  # to see that it works
TUNING, TRAINING, STEPS = 300, 4000, 300


def case(widths: tuple[int, ...], k: int, n: int) -> tuple[nn.Sequential, torch.Tensor, FairMetric]:
    """A trained network, tuning and held-out people, and the fair metric."""
    g = torch.Generator().manual_seed(sum(widths) + k)
    d = widths[0]
    directions = torch.linalg.qr(torch.randn(d, k, generator=g, dtype=torch.float64)).Q
    x = torch.randn(TRAINING + TUNING + n, d, generator=g, dtype=torch.float64).clamp(-4, 4)
    use = torch.randn(d, generator=g, dtype=torch.float64) / d**0.5
    score = x @ use + 0.5 * x @ directions[:, 0] + 0.5 * torch.relu(x @ use.flip(0))
    y = (score + 0.3 * torch.randn(len(x), generator=g, dtype=torch.float64) > score.mean()).long()
    torch.manual_seed(0)
    parts: list[nn.Module] = []
    for i, (a, b) in enumerate(itertools.pairwise(widths)):
        parts += [nn.Linear(a, b)] + ([nn.ReLU()] if i < len(widths) - 2 else [])
    model = nn.Sequential(*parts)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    for _ in range(STEPS):
        rows = torch.randint(TRAINING, (200,), generator=g)
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x[rows].float()), y[rows]).backward()
        optimiser.step()
    return model, x[TRAINING:], FairMetric(directions)


def run(name: str, eps: float, n: int) -> dict[str, object]:
    widths, k = (CASES | SMALL)[name]
    model, x, metric = case(widths, k, n)
    began = time.process_time()
    box = Box(-4 * torch.ones(widths[0]), 4 * torch.ones(widths[0]))
    cert = certify(model, x[TUNING:], metric, eps, box, x_tune=x[:TUNING])
    seconds = time.process_time() - began
    numbers = {"r_low": cert.r_low, "r_high": cert.r_high, "gap": cert.gap, "upper": cert.upper, "lam": cert.lam}
    return {"net": name, "free": k, "eps": eps, "n": n, **numbers, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES | SMALL))
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--eps", type=float, default=0.01)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    path = given.out / "certify_wide.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    for name in given.cases:
        if any((row["net"], row["eps"], row["n"]) == (name, given.eps, given.n) for row in rows):
            continue
        rows.append(run(name, given.eps, given.n))
        given.out.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows).to_csv(path, index=False, float_format="%.6g")
        print(rows[-1], flush=True)


if __name__ == "__main__":
    main()
