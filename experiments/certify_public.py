"""Certificates of public networks that nobody here trained: nine of the fairness-verification literature.

    python experiments/certify_public.py --data DIR [--nets ac-1 gc-4] [--eps 0.01 0.1] [--n 300] [--free sex age]
        [--own] [--out DIR]

DIR holds the networks as .npz (W0 b0 W1 b1 ..., ReLU between, one logit) and the people as adult_encoded.npz and
german_encoded.npz (X, columns, low, high, std). Metric: Sigma = diag(1 / std^2), 0 for the free columns; bounds: low
and high, sex binary; tuning rows X[:300], held-out rows X[300:300 + n]. A run that is already in the results is not
made again. One core; seconds are CPU seconds.

--own: networks of the same kind that this script trains, on the rows after the first 600 and on the columns as they
are, with other sensitive columns free; in odd units every other column is multiplied by 1000 and the rest divided by
it. Writes certify_own.csv.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from evenhand.certify.certify import certify
from evenhand.domain import Box
from evenhand.fair_metrics import FairMetric

RESULTS = Path(__file__).resolve().parent / "results"
NETS = ["ac-1", "ac-2", "ac-3", "ac-4", "ac-6", "ac-9", "ac-11", "gc-1", "gc-4"]
TUNING = 300
OWN = {  # people, hidden layers, free columns, odd units
    "own-1": ("adult", (64, 32, 16, 8, 4), ("race",), False),
    "own-2": ("adult", (30, 30), ("sex", "race"), False),
    "own-3": ("adult", (128,), ("age",), False),
    "own-4": ("adult", (20, 20, 20), ("race",), False),
    "own-5": ("adult", (20, 20, 20), ("race",), True),
    "own-6": ("german", (64, 32, 16, 8, 4), ("sex",), False),
    "own-7": ("german", (30, 30), ("sex", "age"), False),
    "own-8": ("german", (128,), ("age",), True),
}
SEED, FIRST_TRAINED, STEPS, BATCH, LEARNING_RATE = 0, 600, 2000, 128, 1e-3


def network(path: Path) -> nn.Sequential:
    arrays = np.load(path)
    parts: list[nn.Module] = []
    for i in range(sum(name.startswith("W") for name in arrays.files)):
        weight, bias = arrays[f"W{i}"], arrays[f"b{i}"]
        layer = nn.Linear(weight.shape[1], weight.shape[0]).double()
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weight.astype(np.float64)))
            layer.bias.copy_(torch.from_numpy(bias.astype(np.float64)))
        parts += [layer, nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def people(path: Path, free: tuple[str, ...] = ("sex",), unit: np.ndarray | float = 1.0):
    """Encoded rows, the fair metric and the domain, in other units if asked for."""
    data = np.load(path, allow_pickle=False)
    names = [str(name) for name in data["columns"]]
    sex = names.index("sex")
    price = 1 / (unit * data["std"].astype(np.float64)) ** 2
    price[[names.index(name) for name in free]] = 0.0
    box = Box(unit * data["low"].astype(np.float64), unit * data["high"].astype(np.float64), binary=[sex])
    return unit * data["X"].astype(np.float64), FairMetric(sigma=torch.from_numpy(np.diag(price))), box


def own(folder: Path, name: str):
    """A network of ours, in its units, with its people, the fair metric and the domain."""
    of, widths, free, odd = OWN[name]
    path = folder / f"{of}_encoded.npz"
    data = np.load(path, allow_pickle=False)
    x = torch.from_numpy(data["X"].astype(np.float32))[FIRST_TRAINED:]
    y = torch.from_numpy(data["y"].astype(np.float32))[FIRST_TRAINED:]
    torch.manual_seed(SEED)
    parts: list[nn.Module] = []
    for a, b in itertools.pairwise((x.shape[1], *widths)):
        parts += [nn.Linear(a, b), nn.ReLU()]
    model = nn.Sequential(*parts, nn.Linear(widths[-1], 1))
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    for _ in range(STEPS):
        rows = torch.randint(len(x), (BATCH,))
        optimiser.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x[rows])[:, 0], y[rows]).backward()
        optimiser.step()
    model = model.double().eval()
    unit = np.where(np.arange(x.shape[1]) % 2, 1e-3, 1e3) if odd else np.ones(x.shape[1])
    with torch.no_grad():
        model[0].weight.div_(torch.from_numpy(unit))
    return model, free, people(path, free, unit)


def run(folder: Path, name: str, eps: float, n: int, free: tuple[str, ...]) -> dict[str, object]:
    if name in OWN:
        model, free, (x, metric, box) = own(folder, name)
    else:
        x, metric, box = people(folder / f"{'adult' if name.startswith('ac') else 'german'}_encoded.npz", free)
        model = network(folder / f"{name}.npz")
    began = time.process_time()
    held_out = x[TUNING : TUNING + n]
    cert = certify(model, held_out, metric, eps, box, x_tune=x[:TUNING], distinct_people=True)
    sizes = "-".join(str(part.out_features) for part in model if isinstance(part, nn.Linear))
    numbers = {"r_low": cert.r_low, "r_high": cert.r_high, "gap": cert.gap, "upper": cert.upper, "lam": cert.lam}
    setting = {"net": name, "layers": sizes, "free": " ".join(free), "eps": eps, "n": n}
    if name in OWN:
        setting |= {"people": OWN[name][0], "odd_units": OWN[name][3]}
    return {**setting, **numbers, "seconds": time.process_time() - began}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--nets", nargs="+")
    parser.add_argument("--eps", nargs="+", type=float, default=[0.01, 0.1])
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--free", nargs="+", default=["sex"])
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    path = given.out / ("certify_own.csv" if given.own else "certify_public.csv")
    for eps in given.eps:
        for name in given.nets or (list(OWN) if given.own else NETS):
            setting = (name, eps, given.n, " ".join(OWN[name][2] if given.own else given.free))
            if any((row["net"], row["eps"], row["n"], row["free"]) == setting for row in known(path)):
                continue
            row = run(given.data, name, eps, given.n, tuple(given.free))
            given.out.mkdir(parents=True, exist_ok=True)
            rows = sorted([*known(path), row], key=place)  # others may have added theirs meanwhile
            pd.DataFrame(rows).to_csv(path, index=False, float_format="%.6g")
            print(row, flush=True)


def known(path: Path) -> list[dict[str, object]]:
    return pd.read_csv(path).to_dict("records") if path.exists() else []


def place(row: dict[str, object]) -> tuple[bool, object, int]:
    """Where a row stands in the table: other columns free last, then by eps and net."""
    name = str(row["net"])
    return name not in OWN and row["free"] != "sex", row["eps"], (list(OWN) if name in OWN else NETS).index(name)


if __name__ == "__main__":
    main()
