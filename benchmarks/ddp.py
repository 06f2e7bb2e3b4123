"""Two processes against one: SenSeI on the Bios shape over torch.distributed (gloo), and a model of 64 workers.

    python benchmarks/ddp.py --out benchmarks/results/ddp.json

Strong scaling: the same joint batch on one single-threaded process and on two. Weak scaling: twice the batch on two.
The processes of a comparison take turns, a few steps each, so that other work on the machine falls on all alike. Two
times are given: *wall*, which is what counts on an idle machine with two cores, and *compute*, the CPU time of the
slower rank's computing thread plus the measured time of communication (during which that thread waits), which other
work on the machine disturbs less. The threads in which gloo sends and receives are in the latter time only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from evenhand import FairMetric, FairRegularizer, GradientSearch, ranks
from evenhand.objectives import SenSeI
from evenhand.training.loop import train

BATCH, D, HIDDEN, CLASSES, K = 504, 768, 2000, 28, 25
SEARCH = GradientSearch(
    subspace_step=0.1, subspace_steps=50, full_step=0.01, full_steps=10, line_search=False
)  # the paper's Bios
GIGABIT = 1e9 / 8
EVERY = 3  # steps between two stamps, which also copy the weights


def worker(batch: int, steps: int) -> None:
    """Train and print, as JSON, wall and CPU time of each step of this rank, and what communication costs."""
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(4000, D, generator=g)
    y = torch.arange(4000) % CLASSES
    model = nn.Sequential(nn.Linear(D, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    metric = FairMetric(torch.randn(D, K, generator=g))
    wall, cpu = [], []

    def stamp(step: int, of: int, record: dict[str, float]) -> None:
        wall.append(time.perf_counter())
        cpu.append(time.thread_time())

    with ranks.begin():
        fair = FairRegularizer(metric, eps=0.1, search=SEARCH, generator=torch.Generator().manual_seed(1))
        objective = SenSeI(fair, rho=5.0, every=1)
        generator = torch.Generator().manual_seed(2)
        settings: dict[str, Any] = {"batch_size": batch, "evaluate_every": EVERY, "decay": False}
        train(model, objective, x, y, steps=steps + EVERY, progress=stamp, generator=generator, **settings)
        result = {"wall": _each(wall), "cpu": _each(cpu), "lam": fair.lam.item()}  # the first stamp is behind a warm-up
        result["parameters"] = sum(p.numel() for p in model.parameters())
        if ranks.world() > 1:
            flat = torch.zeros(int(result["parameters"]))
            result["all_reduce"] = _timed(lambda: dist.all_reduce(flat))
            result["gather"] = _timed(lambda: ranks.gather([1.0, 2.0]))
        print(json.dumps(result), flush=True)


def _each(stamps: list[float]) -> list[float]:
    return [(b - a) / EVERY for a, b in itertools.pairwise(stamps)]


def _timed(work: Any, times: int = 15) -> float:
    """Best time of a message: what it costs when nothing else runs."""
    best = float("inf")
    for _ in range(times):
        dist.barrier()
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def run(world: int, batch: int, steps: int) -> dict[str, Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = os.environ | {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--worker", str(batch), "--steps", str(steps)],
            env=common | {"WORLD_SIZE": str(world), "RANK": str(r), "LOCAL_RANK": str(r)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for r in range(world)
    ]
    ranks = []
    for process in started:
        out, _ = process.communicate(timeout=1800)
        if process.returncode:
            raise RuntimeError(f"a rank ended with code {process.returncode}")
        ranks.append(json.loads(out.splitlines()[-1]))
    assert len({rank["lam"] for rank in ranks}) == 1, "lam differs between the ranks"
    return {
        "wall": [max(w) for w in zip(*(rank["wall"] for rank in ranks))],
        "cpu": [max(c) for c in zip(*(rank["cpu"] for rank in ranks))],
        "all_reduce": max(rank.get("all_reduce", 0.0) for rank in ranks),
        "gather": max(rank.get("gather", 0.0) for rank in ranks),
        "parameters": ranks[0]["parameters"],
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options.add_argument("--steps", type=int, default=6, help="steps a turn")
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    if given.worker:
        worker(given.worker, given.steps)
        return
    cases = {"one process": (1, BATCH), "two, same batch": (2, BATCH), "two, twice the batch": (2, 2 * BATCH)}
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in cases}
    for _ in range(given.turns):
        for name, (world, batch) in cases.items():
            turns[name].append(run(world, batch, given.steps))
    times = {}
    for name, found in turns.items():
        talk = min(f["all_reduce"] + 4 * f["gather"] for f in found)  # gradients, and four small messages a step
        cpu = statistics.median(c for f in found for c in f["cpu"])
        wall = statistics.median(w for f in found for w in f["wall"])
        times[name] = {"wall": wall, "cpu": cpu, "communication": talk, "compute": cpu + talk}
    one, two, twice = times.values()
    size = 4 * turns["one process"][0]["parameters"]
    result = {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "seconds": {name: {k: round(v, 4) for k, v in t.items()} for name, t in times.items()},
        "speed_up": {kind: round(one[kind] / two[kind], 2) for kind in ("wall", "compute")},
        "weak_scaling": {kind: round(one[kind] / twice[kind], 2) for kind in ("wall", "compute")},
        "model_of_64_workers": model_of(64, size, one["cpu"]),
    }
    print(json.dumps(result, indent=2))
    if given.out:
        given.out.write_text(json.dumps(result, indent=2) + "\n")


def model_of(workers: int, size: int, step: float, latency: float = 50e-6) -> dict[str, Any]:
    """A paper model, not a measurement: ring all-reduce of the gradients and four small messages, against a step."""
    sent = 2 * (workers - 1) / workers * size
    seconds = {
        f"{speed} Gbit/s": sent / (speed * GIGABIT) + 2 * (workers - 1) * latency + 4 * latency * workers
        for speed in (1, 10, 100)
    }
    return {
        "workers": workers,
        "bytes_sent_per_worker_and_step": round(sent),
        "communication_seconds": {name: round(s, 4) for name, s in seconds.items()},
        "efficiency_at_504_rows_per_worker": {name: round(step / (step + s), 3) for name, s in seconds.items()},
    }


if __name__ == "__main__":
    main()
