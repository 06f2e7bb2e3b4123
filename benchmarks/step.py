"""CPU time of one training step, side by side: plain ERM, SenSeI here, SenSeI in inFairness.

    python benchmarks/step.py            # the paper's three shapes and three other models; writes results/step.json
    python benchmarks/step.py --quick    # under a minute

One thread, the same data and batches for all, one step of each in turn, medians of the CPU time (not wall time, so that
other work on the machine counts little). inFairness is installed by ``make bench`` into benchmarks/.peer; without it
its column is skipped.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from inspect import signature
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenhand.estimators import SenSeIClassifier
from evenhand.fair_metrics import FairMetric
from evenhand.objectives import ERM, Batch, Objective, SenSeI
from evenhand.regularizer import FairRegularizer
from evenhand.search import GradientSearch
from evenhand.training.loop import train

EVERY = signature(SenSeIClassifier).parameters["every"].default  # whom the default search looks at
FREE = signature(SenSeIClassifier).parameters["free"].default  # above 0: half of them also count at eps = 0
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Shape:
    """An experiment of the paper: its network, its batch and its search (s, se, f, fe)."""

    batch: int
    d: int
    hidden: tuple[int, ...]
    classes: int
    directions: int
    subspace: tuple[float, int]  # the paper's s, se
    full: tuple[float, int]  # the paper's f, fe
    eps: float
    rho: float
    first: type[nn.Module] | None = None  # what stands before the first linear layer


SHAPES = {
    "Adult": Shape(1000, 41, (100,), 2, 3, (5.0, 50), (0.001, 50), 0.01, 40.0),
    "Bios": Shape(504, 768, (2000,), 28, 25, (0.1, 50), (0.01, 10), 0.1, 5.0),
    "Toxicity": Shape(256, 768, (2000,), 2, 25, (0.1, 10), (0.0, 0), 0.0, 5.0),
    "3 layers": Shape(504, 256, (512, 256), 4, 10, (0.1, 20), (0.01, 10), 0.1, 5.0),
    "LayerNorm first": Shape(504, 256, (512,), 4, 10, (0.1, 20), (0.01, 10), 0.1, 5.0, nn.LayerNorm),
    "tanh first": Shape(504, 256, (512,), 4, 10, (0.1, 20), (0.01, 10), 0.1, 5.0, nn.Tanh),  # nothing is known of it
}
TINY = {
    "tiny": Shape(64, 8, (16,), 2, 2, (0.1, 3), (0.01, 3), 0.1, 5.0),
    "tiny, LayerNorm first": Shape(64, 8, (16,), 2, 2, (0.1, 3), (0.01, 3), 0.0, 5.0, nn.LayerNorm),
    "tiny, tanh first": Shape(64, 8, (16,), 2, 2, (0.1, 3), (0.01, 3), 0.0, 5.0, nn.Tanh),
}


def network(shape: Shape) -> nn.Sequential:
    torch.manual_seed(0)
    widths = [shape.d, *shape.hidden]
    layers: list[nn.Module] = []
    if shape.first is not None:
        layers.append(shape.first(shape.d) if shape.first is nn.LayerNorm else shape.first())
    for wide, narrow in pairwise(widths):
        layers += [nn.Linear(wide, narrow), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], shape.classes))


def data(shape: Shape, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows with a decaying spectrum, labels of a noisy linear rule that uses the sensitive directions too."""
    generator = torch.Generator().manual_seed(0)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator)

    rank = min(shape.d, 100)
    x = (normal(n, rank) * torch.linspace(1, 0.1, rank)) @ normal(rank, shape.d)
    x = x / x.std() * 0.5 + 0.15 * normal(n, shape.d)
    directions = torch.linalg.qr(normal(shape.d, shape.directions))[0]
    rule = normal(shape.d, shape.classes) / shape.d**0.5 + 0.1 * directions @ normal(shape.directions, shape.classes)
    return x, (x @ rule + 0.3 * normal(n, shape.classes)).argmax(1), directions


class Clock:
    """CPU milliseconds between successive steps of a run."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.last: float | None = None

    def tick(self) -> None:
        now = time.process_time()
        if self.last is not None:
            self.steps.append((now - self.last) * 1e3)
        self.last = now

    def pause(self) -> None:
        self.last = None


class Timed(Objective):
    """An objective that reads the clock whenever a step of train() begins."""

    def __init__(self, objective: Objective, clock: Clock) -> None:
        super().__init__(objective.loss)
        self.objective, self.clock = objective, clock

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        self.clock.tick()
        value = self.objective(model, batch)
        self.last = self.objective.last
        return value


Runner = Callable[[int], None]  # run this many steps


def ours(shape: Shape, x: Tensor, y: Tensor, objective: Objective, clock: Clock) -> Runner:
    model, timed = network(shape), Timed(objective, clock)
    generator = torch.Generator().manual_seed(0)

    def run(steps: int) -> None:
        clock.pause()  # k steps of train() are k - 1 intervals: the set-up of a run is not a step
        train(model, timed, x, y, steps=steps + 1, batch_size=shape.batch, lr=1e-5, decay=False, generator=generator)

    return run


def sensei(
    shape: Shape,
    directions: Tensor,
    search: GradientSearch,
    bounds: tuple[float, float] | None = None,
    every: int = EVERY,
    free: float = FREE,
) -> SenSeI:
    # A small lam lets the full stage move every row, as late in training; at lam = 1 an untrained net would not.
    fair = FairRegularizer(FairMetric(directions), eps=shape.eps, bounds=bounds, search=search, lam=1e-4)
    return SenSeI(fair, shape.rho, every=every, free=free)


def peer(shape: Shape, x: Tensor, y: Tensor, directions: Tensor, clock: Clock) -> Runner:
    """inFairness with as many auditor steps as the paper's two stages have together; balanced batches, fused Adam."""
    from inFairness.distances import MahalanobisDistances, SensitiveSubspaceDistance
    from inFairness.fairalgo import SenSeI as PeerSenSeI

    from evenhand.training.loop import balanced_batches

    model = network(shape)
    distance_x, distance_y = SensitiveSubspaceDistance(), MahalanobisDistances()
    distance_x.fit(directions)
    distance_y.fit(torch.eye(shape.classes) / shape.classes)
    attack_steps = shape.subspace[1] + shape.full[1]
    eps = shape.eps or 0.1  # with eps = 0 its loss is NaN after two steps; the time does not depend on eps
    algorithm = PeerSenSeI(model, distance_x, distance_y, F.cross_entropy, shape.rho, eps, attack_steps, 0.01)
    algorithm.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, fused=True)
    generator = torch.Generator().manual_seed(0)

    def run(steps: int) -> None:
        clock.pause()
        for rows in balanced_batches(y, shape.batch, steps, None, generator):
            clock.tick()
            loss = algorithm(x[rows], y[rows]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        clock.tick()

    return run


def peer_available() -> str | None:
    """The version of inFairness, or None. Its own folder comes last, so that it replaces nothing."""
    sys.path.append(str(HERE / ".peer"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import inFairness.fairalgo  # noqa: F401
        from importlib.metadata import version

        return version("inFairness")
    except ImportError:
        return None


def flops(shape: Shape) -> float:
    """Floating-point operations of the matrix products that one step at the paper's step counts cannot do without.

    A product (n, a) x (a, b) counts as 2 n a b. With a linear layer first, or a norm and a linear layer: Z0 and its
    gradient, the low-rank and the full part of the gradient of W1, each subspace step on (W1 A) u, each full step on
    W1 v, and the layers behind. Where nothing is known of the beginning, every step goes through the whole model and
    back.
    """
    n, d, k = shape.batch, shape.d, shape.directions
    widths = [*shape.hidden, shape.classes]
    first, tail = widths[0], sum(2 * n * a * b for a, b in pairwise(widths))
    se, fe = shape.subspace[1], shape.full[1]
    large, thin = 2 * n * d * first, 2 * n * k * first
    if shape.first not in (None, nn.LayerNorm):
        whole = large + tail
        return float(6 * whole + (2 * (se + fe) + 1) * whole + (2 * se + 4 * fe) * 2 * n * d * k)
    training = 2 * large + (large if fe else 0) + 6 * tail + thin + 2 * first * d * k
    subspace = 2 * first * d * k + (se + 1) * (thin + tail) + se * (tail + thin)
    full = fe * (2 * large + 2 * tail + 4 * n * d * k)
    return float(training + subspace + full)


def gemm_rate(shape: Shape, repeats: int) -> float:
    """This machine's sgemm rate, operations per second, at the shape's large product (n, d) x (d, H)."""
    a, b = torch.randn(shape.batch, shape.d), torch.randn(shape.d, shape.hidden[0])
    out = a @ b
    rounds = max(1, round(2e8 / (shape.batch * shape.d * shape.hidden[0])))
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(rounds):
            torch.mm(a, b, out=out)
        times.append((time.process_time() - start) / rounds)
    return 2 * shape.batch * shape.d * shape.hidden[0] / statistics.median(times)


def measure(name: str, shape: Shape, seconds: float, with_peer: bool) -> dict[str, object]:
    """Medians over interleaved steps, for about this many CPU seconds."""
    n = min(8000, 8 * shape.batch)
    x, y, directions = data(shape, n)
    paper, default = GradientSearch(*shape.subspace, *shape.full, line_search=False), GradientSearch()
    box = (float(x.min()), float(x.max()))
    clocks: dict[str, Clock] = {}
    runs: dict[str, Runner] = {}

    def add(column: str, make: Callable[[Clock], Runner]) -> None:
        clocks[column] = Clock()
        runs[column] = make(clocks[column])

    add("erm", lambda c: ours(shape, x, y, ERM(), c))
    add("default", lambda c: ours(shape, x, y, sensei(shape, directions, default), c))
    add("default_one", lambda c: ours(shape, x, y, sensei(shape, directions, default, free=0.0), c))
    add("default_all", lambda c: ours(shape, x, y, sensei(shape, directions, default, every=1, free=0.0), c))
    add("default_bounded", lambda c: ours(shape, x, y, sensei(shape, directions, default, box), c))
    add("paper", lambda c: ours(shape, x, y, sensei(shape, directions, paper, every=1, free=0.0), c))
    if with_peer:
        add("infairness", lambda c: peer(shape, x, y, directions, c))
    for run in runs.values():
        run(1)
    cost = {column: clock.steps[-1] for column, clock in clocks.items()}
    for clock in clocks.values():
        clock.steps.clear()
    rates: list[float] = []
    start, rounds = time.process_time(), 0
    while rounds < 2 or time.process_time() - start < seconds:
        for column, run in runs.items():  # cheap steps several at a time, so that each column gets a similar share
            run(max(1, min(20, round(cost["paper"] / cost[column]))))
        rates.append(gemm_rate(shape, 3))
        rounds += 1
    ms = {column: statistics.median(clock.steps) for column, clock in clocks.items()}
    rate = statistics.median(rates)
    return {
        "shape": asdict(shape) | {"first": "Linear" if shape.first is None else shape.first.__name__},
        "ms": ms,
        "steps_timed": {column: len(clock.steps) for column, clock in clocks.items()},
        "erm_steps": {column: value / ms["erm"] for column, value in ms.items()},
        "times_faster_than_infairness": ms["infairness"] / ms["paper"] if "infairness" in ms else None,
        "times_faster_at_most": ms["infairness"] / (flops(shape) / rate * 1e3) if "infairness" in ms else None,
        "gflops_needed": flops(shape) / 1e9,
        "sgemm_gflops_per_second": rate / 1e9,
        "sgemm_fraction": flops(shape) / (ms["paper"] / 1e3) / rate,
    }


def report(results: dict[str, dict[str, object]]) -> Iterator[str]:
    columns = ["erm", "default", "default_one", "default_all", "default_bounded", "paper", "infairness"]
    yield (
        f"{'CPU ms per step':24s}"
        + "".join(f"{column:>16s}" for column in columns)
        + "   inFairness/paper  default/erm  sgemm"
    )
    for name, result in results.items():
        ms: dict[str, float] = result["ms"]  # type: ignore[assignment]
        cells = "".join(f"{ms[column]:16.2f}" if column in ms else f"{'absent':>16s}" for column in columns)
        faster, fraction = result["times_faster_than_infairness"], result["sgemm_fraction"]
        yield (
            f"{name:24s}{cells}"
            + (f"{faster:18.1f}x" if faster else f"{'-':>19s}")
            + f"{ms['default'] / ms['erm']:8.2f}x"
            + (f"{fraction:7.0%}" if fraction else f"{'-':>7s}")
        )


def chart(results: dict[str, dict[str, object]], path: Path) -> None:
    import altair as alt
    import pandas as pd

    names = {
        "erm": "plain ERM",
        "default": "SenSeI, default search",
        "paper": "SenSeI, paper's steps",
        "infairness": "inFairness, as many steps",
    }
    rows = [
        {"shape": shape, "method": names[column], "ms": ms}
        for shape, result in results.items()
        for column, ms in result["ms"].items()  # type: ignore[attr-defined]
        if column in names
    ]
    order = list(names.values())
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X("ms:Q", scale=alt.Scale(type="log", domainMin=1), title="CPU ms per training step, one thread (log)"),
        y=alt.Y("method:N", sort=order, title=None),
        color=alt.Color("method:N", sort=order, legend=None),
    )
    bars = base.mark_bar().encode(x2=alt.datum(1))  # a logarithmic axis has no zero to start from
    labels = base.mark_text(align="left", dx=4).encode(text=alt.Text("ms:Q", format=".3~s"), color=alt.value("black"))
    drawn = (
        alt.layer(bars, labels)
        .properties(width=420)
        .facet(
            row=alt.Row("shape:N", sort=list(results), title=None, header=alt.Header(labelAngle=0, labelAlign="left"))
        )
    )
    drawn.save(path.with_suffix(".svg"))
    drawn.save(path.with_suffix(".png"), scale_factor=2)


def main(arguments: list[str] | None = None) -> dict[str, dict[str, object]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few steps of each: under a minute")
    parser.add_argument("--tiny", action="store_true", help="three tiny shapes, to see that everything runs")
    parser.add_argument("--only", nargs="*", help="names of shapes", default=None)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "step.json")
    parser.add_argument("--no-chart", action="store_true")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    version = peer_available()
    if version is None:
        print("inFairness is not installed: its column is skipped. `make bench` installs it.")
    shapes = TINY if chosen.tiny else SHAPES
    seconds = 0.1 if chosen.tiny else 1.0 if chosen.quick else 24.0
    results = {
        name: measure(name, shape, seconds, version is not None)
        for name, shape in shapes.items()
        if chosen.only is None or name in chosen.only
    }
    print("\n".join(report(results)))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    machine = {"machine": platform.machine(), "python": platform.python_version(), "torch": torch.__version__}
    settings = {"threads": 1, "infairness": version, **machine}
    chosen.out.write_text(json.dumps({"settings": settings, "results": results}, indent=1) + "\n")
    if not chosen.no_chart:
        chart(results, chosen.out)
    return results


if __name__ == "__main__":
    main()
