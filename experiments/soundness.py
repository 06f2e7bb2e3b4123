"""Does any pair (x, x') lie above the certified bound? At least a million pairs a run, of every kind we can think of.

    python experiments/soundness.py [--seed 0] [--people 300] [--out DIR]

For plain, SenSeI and certified-trained nets on Adult: x' uniform in the box, at its vertices, near x, along the fibre,
with few columns changed, searched by gradients, and with sex and race flipped. Writes certify_soundness.csv.
"""

import argparse
from pathlib import Path

import pandas as pd
import torch
from certify_adult import EPS, RESULTS, TUNING, domain, fitted

from evenhand.bounds.branch import bracket
from evenhand.bounds.layers import affine_layers
from evenhand.bounds.problem import Problem
from evenhand.bounds.readout import readout
from evenhand.bounds.solver import Solver
from evenhand.bounds.tuning import tune
from evenhand.datasets import adult
from evenhand.fair_metrics import from_classifier
from evenhand.output_distances import mean_squared_logits, squared_error
from evenhand.search.thorough import Attack, candidates

MODELS = ("plain", "SenSeI", "certified")
EACH = 190  # pairs of each of six kinds for every person


def others(problem: Problem, x: torch.Tensor, lam: float, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """x' of each kind: (n, m, d)."""
    low, high = problem.box
    shape = (len(x), EACH, problem.d)
    uniform = low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
    vertices = torch.where(torch.rand(shape, generator=generator) < 0.5, low, high)
    near = x[:, None] + 0.1 * torch.randn(shape, generator=generator, dtype=torch.float64)
    flat = torch.linalg.eigh(problem.sigma)
    free = flat.eigenvectors[:, flat.eigenvalues < 1e-9]
    fibre = x[:, None] + 2 * torch.randn(len(x), EACH, free.shape[1], generator=generator, dtype=torch.float64) @ free.T
    few = torch.where(torch.rand(shape, generator=generator) < 0.05, uniform, x[:, None])
    flips = near.clone()
    pins = problem.pin_values[torch.randint(len(problem.pin_values), shape[:2], generator=generator)]
    flips[..., problem.pinned] = pins
    attack = Attack(problem.f, problem, squared_error, differentiable=True, effort=2.0)
    searched = candidates(attack, x, 0.01, [0.5 * lam, lam, 2 * lam])
    kinds = {"uniform": uniform, "vertices": vertices, "near": near, "fibre": fibre, "few columns": few, "flips": flips}
    return {**{kind: problem.box.round(points) for kind, points in kinds.items()}, "searched": searched}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    train, test = adult(args.seed)
    metric, box = from_classifier(train.X, columns=["sex", "race"], predict=["sex"]), domain(train.X)
    x = torch.tensor(test.X.to_numpy()[: args.people])
    tuning = torch.tensor(test.X.to_numpy()[args.people : args.people + TUNING])
    generator = torch.Generator().manual_seed(args.seed)
    rows = []
    for name in args.models:
        model, _ = fitted(name, None, args.seed, train, metric, box)
        problem = Problem(readout(mean_squared_logits, affine_layers(model.module_)).layers, metric, box)
        solver = Solver(problem, tune(problem, tuning[:40], EPS, steps=120).multipliers)
        lam = float(solver.m.lam)
        found = bracket(solver, x)
        pairs = {
            kind: problem.gain(x[:, None], points, lam) for kind, points in others(problem, x, lam, generator).items()
        }
        for kind, gain in pairs.items():
            above = int((gain > found.upper[:, None] + 1e-9).sum())
            tightest = float((gain.amax(1) / found.upper.clamp(min=1e-12)).max())
            rows.append({"model": name, "kind": kind, "pairs": gain.numel(), "violations": above, "closest": tightest})
        print(
            name,
            sum(r["pairs"] for r in rows),
            "pairs so far",
            sum(r["violations"] for r in rows),
            "violations",
            flush=True,
        )
    table = pd.DataFrame(rows)
    table.to_csv(args.out / "certify_soundness.csv", index=False, float_format="%.6g")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
