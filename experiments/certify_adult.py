"""Audit and certificate on Adult: how tight the bracket of R(h) is, how far below the plain net a fair one is proven.

    python experiments/certify_adult.py [--seeds 0 1 2 3 4] [--n 1000] [--frontier] [--out DIR]

A run that is already in the results is not made again. ``--frontier`` adds other strengths. One core; seconds are CPU
seconds.
"""

import argparse
import copy
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from evenhand import evaluation
from evenhand.audit import audit
from evenhand.certify.certify import certify
from evenhand.datasets import adult, adult_frame
from evenhand.domain import Box
from evenhand.estimators import ERMClassifier, SenSeIClassifier
from evenhand.fair_metrics import from_classifier
from evenhand.search import GradientSearch
from evenhand.training.certified import certified_fine_tune

RESULTS = Path(__file__).resolve().parent / "results"
EPS, HELD_OUT, TUNING = 0.01, 1000, 256

# The published ranges of the numeric columns (UCI), fixed before any sample is drawn; indicators are 0 or 1, and sex
# and race are the two points they are.
RANGES = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 99999),
    "capital-loss": (0, 4356),
    "hours-per-week": (1, 99),
}

HIDDEN = {"linear": (), "plain": (100,), "two layers": (50, 50)}
PLAIN = {"steps": 1500, "batch_size": 1000, "lr": 1e-3}
SENSEI = {
    "rho": 10.0,
    "eps": EPS,
    "steps": 800,
    "batch_size": 500,
    "lr": 2e-3,
    "search": GradientSearch(),
    "every": 1,
    "free": 0.0,
}
CERTIFIED = {"rho_c": 30.0, "steps": 250, "lr": 1e-3}  # fine-tuning from the SenSeI net
FRONTIER = {"SenSeI": (2.5, 40.0), "certified": (10.0, 80.0)}  # other strengths, on split 0


def domain(train: pd.DataFrame) -> Box:
    """The box of possible people in the units of the split: published ranges, standardised like the train part."""
    raw = adult_frame().loc[train.index, list(RANGES)]
    low, high = np.zeros(train.shape[1]), np.ones(train.shape[1])
    for name, (smallest, largest) in RANGES.items():
        j = train.columns.get_loc(name)
        low[j] = (smallest - raw[name].mean()) / raw[name].std(ddof=0) - 1e-5
        high[j] = (largest - raw[name].mean()) / raw[name].std(ddof=0) + 1e-5
    return Box(low, high, binary=[train.columns.get_loc("sex"), train.columns.get_loc("race")])


def fitted(name: str, strength: float | None, seed: int, train, metric, box):
    """A trained estimator and the CPU seconds of its last stage; ``certified`` fine-tunes the SenSeI net."""
    began = time.process_time()
    if name in HIDDEN:
        model = ERMClassifier(hidden=HIDDEN[name], random_state=seed, **PLAIN).fit(train.X, train.y)
        return model, time.process_time() - began
    rho = strength if name == "SenSeI" and strength is not None else SENSEI["rho"]
    model = sensei(rho, seed)
    if name == "certified":
        began = time.process_time()
        settings = {**CERTIFIED, **({} if strength is None else {"rho_c": strength})}
        x = torch.tensor(train.X.to_numpy(), dtype=torch.float32)
        generator = torch.Generator().manual_seed(seed)
        model = copy.deepcopy(model)
        model.multipliers_ = certified_fine_tune(
            model.module_, x, torch.tensor(train.y), metric, EPS, box, **settings, generator=generator
        )
    return model, time.process_time() - began


@lru_cache(maxsize=4)
def sensei(rho: float, seed: int) -> SenSeIClassifier:
    train, metric, box = setting(seed)
    model = SenSeIClassifier(metric, bounds=tuple(box), random_state=seed, **{**SENSEI, "rho": rho})
    return model.fit(train.X, train.y)


@lru_cache(maxsize=2)
def setting(seed: int):
    """The train part of a split, its fair metric and the domain."""
    train, _ = adult(seed)
    return train, from_classifier(train.X, columns=["sex", "race"], predict=["sex"], l2=0.1), domain(train.X)


def run(name: str, strength: float | None, seed: int, n: int, audited: bool) -> dict[str, object]:
    (train, metric, box), test = setting(seed), adult(seed).test
    model, train_seconds = fitted(name, strength, seed, train, metric, box)
    held_out, tuning = test.X.iloc[:n], test.X.iloc[n : n + TUNING]
    began = time.process_time()
    searched = audit(model, held_out, metric, EPS, box).r_low if audited else float("nan")
    audit_seconds = time.process_time() - began if audited else float("nan")
    began = time.process_time()
    cert = certify(model, held_out, metric, EPS, box, x_tune=tuning, x_train=train.X)
    certify_seconds = time.process_time() - began
    return {
        "seed": seed,
        "model": name,
        "strength": strength,
        "n": n,
        "BA": evaluation.balanced_accuracy(test.y, model.predict(test.X)),
        "audit": searched,
        "r_low": np.fmax(searched, cert.r_low),
        "r_high": cert.r_high,
        "gap": cert.r_high / np.fmax(searched, cert.r_low),
        "lower": cert.lower,
        "upper": cert.upper,
        "lam": cert.lam,
        "range": cert.r_lam_max,
        "everywhere": cert.delta_everywhere,
        "train_seconds": train_seconds,
        "audit_seconds": audit_seconds,
        "certify_seconds": certify_seconds,
        "statement": str(cert),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--models", nargs="*", default=["linear", "plain", "two layers", "SenSeI", "certified"])
    parser.add_argument("--n", type=int, default=HELD_OUT)
    parser.add_argument("--no-audit", action="store_true", help="certificate only")
    parser.add_argument("--frontier", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--file", default="certify_adult.csv")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / args.file
    table = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["seed", "model", "strength"])
    wanted = [(name, None, seed) for seed in args.seeds for name in args.models]
    if args.frontier:
        wanted += [(name, value, seed) for seed in args.seeds for name, values in FRONTIER.items() for value in values]
    for name, strength, seed in wanted:
        same = table["strength"].isna() if strength is None else table["strength"] == strength
        if ((table["seed"] == seed) & (table["model"] == name) & same).any():
            continue
        row = run(name, strength, seed, args.n, not args.no_audit)
        table = pd.DataFrame([row]) if table.empty else pd.concat([table, pd.DataFrame([row])], ignore_index=True)
        table.sort_values(["model", "strength", "seed"]).to_csv(path, index=False, float_format="%.6g")
        print({key: value for key, value in row.items() if key != "statement"}, flush=True)


if __name__ == "__main__":
    main()
