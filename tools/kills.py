"""Kill training processes at random moments (SIGKILL) and check that each resumes to the bits of an uninterrupted run.

    python tools/kills.py --kills 100 --out benchmarks/results/kills.json
    python tools/kills.py --kills 100 --only "evenhand train" --out benchmarks/results/kills_train.json
    python tools/kills.py --kills 10 --seed 7 --add --out benchmarks/results/kills_train.json --only "evenhand train"

Each trial is a real process, forked from this one to save the time of importing torch, that trains with a checkpoint
every other step; it is killed once or more at moments drawn uniformly over its run, then resumed to its end. "evenhand
train" is the whole command on a small table, from reading to report: the same command goes on in the same folder, and
the model file and the statement of the certificate must be those of an uninterrupted run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this tree, whatever is installed

from evenhand import FairMetric, FairRegularizer
from evenhand.cli import app
from evenhand.objectives import CLP, ERM, Adversarial, SenSeI, SenSR
from evenhand.objectives.batch import Objective
from evenhand.regularizer import PricedSearch
from evenhand.training.loop import train
from evenhand.training.streams import mapped_batches
from evenhand.variations import Variations

STEPS, EVERY, N, D = 40, 2, 400, 6
COMMAND = "evenhand train"
KINDS = ("sensei with validation", "sensr with dropout", "clp", "adversarial", "stream")
SMALL = ["--target", "yes", "--sensitive", "sex", "--rho", "2,8", "--steps", "60", "--trees", "10", "--hidden", "8"]
FEW = ["--jobs", "1", "--audit-rows", "20", "--certify-rows", "60", "--json"]


def net(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(D, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 2))


def run(kind: str, checkpoint: Path | None) -> str:
    """Train from scratch or from the checkpoint; a digest of weights, objective and history."""
    torch.set_num_threads(1)
    if kind == COMMAND:
        return command(checkpoint)
    seeds = torch.Generator().manual_seed(1)
    x = torch.rand(N, D, generator=seeds)
    y = (x[:, 0] + x[:, 1] > 1).long()
    metric, own = FairMetric(torch.eye(D)[:, :1]), torch.Generator().manual_seed(2)
    model, objective = net(0.3 if kind == "sensr with dropout" else 0.0), _objective(kind, metric, x, own)
    batches = torch.Generator().manual_seed(3)
    keeping = {"checkpoint": checkpoint, "checkpoint_every": EVERY, "resume": True} if checkpoint else {}
    common = {"steps": STEPS, "batch_size": 50, "generator": batches, **keeping}
    if kind == "stream":
        shuffled = mapped_batches(x.numpy(), y.numpy(), 50, generator=torch.Generator().manual_seed(4))
        history = train(model, objective, shuffled, **common)
    else:
        validation = (x[:80], y[:80]) if kind == "sensei with validation" else None
        history = train(model, objective, x, y, validation=validation, **common)
    digest = hashlib.sha256(repr((history.records, history.best_step)).encode())
    for name, tensor in [*model.state_dict().items(), *objective.state_dict().items()]:
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def command(folder: Path | None) -> str:
    """`evenhand train` into the folder; a digest of the model file, of what was chosen and of the certificate."""
    with tempfile.TemporaryDirectory() as thrown:
        out = Path(thrown) if folder is None else folder.with_suffix("")
        out.mkdir(exist_ok=True)
        draw = np.random.default_rng(0)
        people = pd.DataFrame({"sex": draw.choice(["f", "m"], 500), "age": draw.integers(18, 70, 500)})
        people["pay"] = (draw.normal(30, 8, 500) + 6 * (people["sex"] == "m")).round(1)
        people["yes"] = np.where(people["pay"] + draw.normal(0, 4, 500) > 33, "yes", "no")
        if not (out / "people.csv").exists():
            people.to_csv(out / "people.partial", index=False)
            (out / "people.partial").rename(out / "people.csv")
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            app(["train", str(out / "people.csv"), *SMALL, *FEW, "--out", str(out / "run")], standalone_mode=False)
        proven = json.loads((out / "run" / "certificate.json").read_text())["statement"]
        chosen = json.loads((out / "run" / "metrics.json").read_text())["chosen"]
        digest = hashlib.sha256((out / "run" / "model.evenhand").read_bytes())
    digest.update(repr((proven, chosen)).encode())
    return digest.hexdigest()


def _objective(kind: str, metric: FairMetric, x: torch.Tensor, own: torch.Generator) -> Objective:
    if kind in ("sensei with validation", "stream"):
        return SenSeI(FairRegularizer(metric, eps=0.1, bounds=(0.0, 1.0), generator=own), rho=5.0)
    if kind == "sensr with dropout":
        return SenSR(PricedSearch(metric, eps=0.1, bounds=(0.0, 1.0), generator=own))
    if kind == "clp":
        other = x.clone()
        other[:, 0] = 1 - other[:, 0]
        return CLP(Variations(torch.stack([x, other], 1).numpy(), rows=range(N)), rho=2.0, generator=own)
    if kind == "adversarial":
        return Adversarial((x[:, 0] > 0.5).long(), n_classes=2, weight=0.1, generator=own)
    return ERM()


def in_child(kind: str, checkpoint: Path, result: Path, kill_after: float | None) -> bool:
    """Run in a process of its own; whether it was killed before its end."""
    child = os.fork()
    if child == 0:
        try:
            result.write_text(run(kind, checkpoint))
            os._exit(0)
        except BaseException as error:
            result.write_text(f"error: {error!r}")
            os._exit(1)
    if kill_after is not None:
        deadline = time.monotonic() + kill_after
        while time.monotonic() < deadline:
            if os.waitpid(child, os.WNOHANG)[0]:
                return False
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def joined(before: dict[str, Any], kills: Counter[str], identical: int, given: argparse.Namespace) -> dict[str, Any]:
    """The counts of this run and, with --add, of those before it."""
    every = Counter(before["by kind"]) + kills
    found = {"kills": every.total(), "identical": before["identical"] + identical, "by kind": dict(every)}
    return found | ({"seeds added": [*before.get("seeds added", []), given.seed]} if given.add else {})


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path)
    options.add_argument("--only", choices=(*KINDS, COMMAND))
    options.add_argument("--add", action="store_true", help="to the counts that --out holds, with a seed of its own")
    given = options.parse_args()
    before = json.loads(given.out.read_text()) if given.add else {"kills": 0, "identical": 0, "by kind": {}}
    if given.add and given.seed in before.get("seeds added", []):
        raise SystemExit(f"--seed {given.seed} is in {given.out} already; its moments would be counted twice")
    kinds = KINDS if given.only is None else (given.only,)
    draw, identical, kills, trials = random.Random(given.seed), 0, Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        expected, took = {}, {}
        for kind in kinds:
            began, whole = time.monotonic(), Path(folder) / "whole"
            in_child(kind, Path(folder) / f"{kind}.timing", whole, None)
            took[kind] = time.monotonic() - began
            expected[kind] = whole.read_text() if kind == COMMAND else run(kind, None)
            if expected[kind].startswith("error"):
                raise SystemExit(expected[kind])
        while sum(kills.values()) < given.kills:
            kind = kinds[trials % len(kinds)]
            checkpoint, result = Path(folder) / f"{trials}.checkpoint", Path(folder) / f"{trials}.result"
            killed = 0
            for _ in range(draw.choice([1, 1, 2] if kind != COMMAND else [2, 4, 6])):
                killed += in_child(kind, checkpoint, result, draw.uniform(0, took[kind]))
            if killed:
                in_child(kind, checkpoint, result, None)
                same = result.read_text() == expected[kind]
                identical += killed if same else 0
                kills[kind] += killed
                if not same:
                    print(f"trial {trials} ({kind}): {result.read_text()[:200]}")
                if given.out:  # after every trial, so that an interrupted count is a count too
                    given.out.write_text(json.dumps(joined(before, kills, identical, given), indent=2) + "\n")
            trials += 1
    total = sum(kills.values())
    print(f"{identical} of {total} kills resumed to identical weights")
    raise SystemExit(identical < total)


if __name__ == "__main__":
    main()
