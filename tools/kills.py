"""Kill training processes at random moments (SIGKILL) and check that each resumes to the bits of an uninterrupted run.

    python tools/kills.py --kills 100 --out benchmarks/results/kills.json

Each trial is a real process, forked from this one to save the time of importing torch, that trains with a checkpoint
every other step; it is killed once or more at moments drawn uniformly over its run, then resumed to its end.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch
from torch import nn

from evenhand import FairMetric, FairRegularizer
from evenhand.objectives import CLP, ERM, Adversarial, SenSeI, SenSR
from evenhand.objectives.batch import Objective
from evenhand.regularizer import PricedSearch
from evenhand.training.loop import train
from evenhand.training.streams import mapped_batches
from evenhand.variations import Variations

STEPS, EVERY, N, D = 40, 2, 400, 6
KINDS = ("sensei with validation", "sensr with dropout", "clp", "adversarial", "stream")


def net(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(D, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 2))


def run(kind: str, checkpoint: Path | None) -> str:
    """Train from scratch or from the checkpoint; a digest of weights, objective and history."""
    torch.set_num_threads(1)
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


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    draw, identical, kills, trials = random.Random(given.seed), 0, Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        expected = {kind: run(kind, None) for kind in KINDS}
        took = {}
        for kind in KINDS:
            began = time.monotonic()
            in_child(kind, Path(folder) / f"{kind}.timing", Path(folder) / "timing", None)
            took[kind] = time.monotonic() - began
        while sum(kills.values()) < given.kills:
            kind = KINDS[trials % len(KINDS)]
            checkpoint, result = Path(folder) / f"{trials}.checkpoint", Path(folder) / f"{trials}.result"
            killed = 0
            for _ in range(draw.choice([1, 1, 2])):
                killed += in_child(kind, checkpoint, result, draw.uniform(0, took[kind]))
            if killed:
                in_child(kind, checkpoint, result, None)
                same = result.read_text() == expected[kind]
                identical += killed if same else 0
                kills[kind] += killed
                if not same:
                    print(f"trial {trials} ({kind}): {result.read_text()[:200]}")
                if given.out:  # after every trial, so that an interrupted count is a count too
                    found = {"kills": sum(kills.values()), "identical": identical, "by kind": dict(kills)}
                    given.out.write_text(json.dumps(found, indent=2) + "\n")
            trials += 1
    total = sum(kills.values())
    print(f"{identical} of {total} kills resumed to identical weights")
    raise SystemExit(identical < total)


if __name__ == "__main__":
    main()
