"""What a certificate of a text-size net (768-2000-28, 25 free directions) costs: seconds of its parts, on one core.

    python experiments/certify_text_size.py [--tuning-steps 2] [--people 50] [--out DIR]

Times are CPU seconds. The net is random with trained-like scales: the cost depends on the shapes only. Writes
certify_text_size.json.
"""

import argparse
import json
import time
from pathlib import Path

import torch

from evenhand.bounds.branch import bracket
from evenhand.bounds.layers import Layer
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import start_multipliers
from evenhand.bounds.solver import Solver
from evenhand.bounds.tuning import tune
from evenhand.domain import Box
from evenhand.fair_metrics import FairMetric

RESULTS = Path(__file__).resolve().parent / "results"
SIZES, K = (768, 2000, 28), 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuning-steps", type=int, default=2)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(0)
    d, hidden, outputs = SIZES
    layers = [
        Layer(torch.randn(b, a, generator=g, dtype=torch.float64) / a**0.5, torch.zeros(b, dtype=torch.float64))
        for a, b in ((d, hidden), (hidden, outputs))
    ]
    layers[-1] = Layer(layers[-1].weight / outputs**0.5, layers[-1].bias)
    metric = FairMetric(torch.randn(d, K, generator=g, dtype=torch.float64))
    problem = Problem(layers, metric, Box(-torch.ones(d), torch.ones(d)))
    x = 2 * torch.rand(args.people, d, generator=g, dtype=torch.float64) - 1
    start = start_multipliers(problem)
    began = time.process_time()
    tuned = tune(problem, x[:20], 0.1, steps=args.tuning_steps)
    step = (time.process_time() - began) / args.tuning_steps
    began = time.process_time()
    solver = Solver(problem, tuned.multipliers)
    factor = time.process_time() - began
    began = time.process_time()
    found = bracket(solver, x, rounds=1)
    each = (time.process_time() - began) / args.people
    result = {
        "layers": "-".join(map(str, SIZES)),
        "k": K,
        "size_of_S": solver.s.shape[0],
        "step_seconds": step,
        "factor_seconds": factor,
        "person_seconds": each,
        "lam_start": float(start.lam),
        "lam": float(tuned.multipliers.lam),
        "tuning_steps": args.tuning_steps,
        "people": args.people,
        "sound": bool((found.lower <= found.upper).all()),
        "minutes_for_100_steps_and_1000_people": (100 * step + factor + 1000 * each) / 60,
    }
    (args.out / "certify_text_size.json").write_text(json.dumps(result, indent=2) + "\n")
    print(result)


if __name__ == "__main__":
    main()
