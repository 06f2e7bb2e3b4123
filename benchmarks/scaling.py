"""How the CPU time of a SenSeI step and its peak memory grow with the batch, the features, the hidden units and so on.

    python benchmarks/scaling.py             # writes results/scaling.json and a chart
    python benchmarks/scaling.py --quick

One quantity is doubled at a time from a base shape; the slope of log time against log quantity is 1 for linear growth,
less where a fixed cost remains. ``n`` is the number of training rows: a step should not depend on it. Sampling is the
share of a step that goes into drawing the batch and gathering its rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

try:
    from benchmarks.step import SHAPES, Clock, Shape, data, ours, sensei
except ImportError:  # run as a script
    from step import SHAPES, Clock, Shape, data, ours, sensei

from evenhand.objectives import ERM
from evenhand.search import GradientSearch
from evenhand.training.batches import balanced_batches

HERE = Path(__file__).resolve().parent
BASE = Shape(512, 256, (512,), 4, 8, (0.1, 8), (0.01, 4), 0.1, 5.0)
TINY = Shape(32, 16, (16,), 2, 2, (0.1, 2), (0.01, 1), 0.1, 5.0)


def grown(base: Shape, quantity: str, factor: int, n: int) -> tuple[Shape, int]:
    """The base shape with one quantity multiplied, and the number of training rows."""
    if quantity == "B":
        return replace(base, batch=base.batch * factor), n
    if quantity == "d":
        return replace(base, d=base.d * factor), n
    if quantity == "H":
        return replace(base, hidden=(base.hidden[0] * factor,)), n
    if quantity == "k":
        return replace(base, directions=base.directions * factor), n
    if quantity == "subspace steps":
        return replace(base, subspace=(base.subspace[0], base.subspace[1] * factor)), n
    if quantity == "full steps":
        return replace(base, full=(base.full[0], base.full[1] * factor)), n
    return base, n * factor


QUANTITIES = ("B", "d", "H", "k", "subspace steps", "full steps", "n")


def adam_steps(shape: Shape) -> GradientSearch:
    """As many steps of fixed size in either stage as the shape says."""
    return GradientSearch(*shape.subspace, *shape.full, line_search=False)


def step_times(base: Shape, factors: list[int], rounds: int) -> dict[str, list[float]]:
    """Median CPU ms per step for each quantity and factor, all interleaved."""
    n = 8 * base.batch
    clocks, runs = {}, {}
    for quantity in QUANTITIES:
        for factor in factors:
            shape, rows = grown(base, quantity, factor, n)
            x, y, directions = data(shape, rows)
            clock = clocks[quantity, factor] = Clock()
            runs[quantity, factor] = ours(shape, x, y, sensei(shape, directions, adam_steps(shape), every=1), clock)
    for _ in range(rounds):
        for run in runs.values():
            run(3)
    return {q: [statistics.median(clocks[q, f].steps) for f in factors] for q in QUANTITIES}


def sampling_ms(base: Shape, n: int, rounds: int) -> float:
    """CPU ms to draw a balanced batch and gather its rows."""
    x, y, _ = data(base, n)
    draws = balanced_batches(y, base.batch, 10 * rounds + 1, None, torch.Generator().manual_seed(0))
    next(draws)
    times = []
    for rows in draws:  # the clock runs over the gathering here and the drawing of the next rows
        start = time.process_time()
        x[rows], y[rows]
        times.append(time.process_time() - start)
        start = time.process_time()
        next(draws, None)
        times[-1] += time.process_time() - start
    return statistics.median(times) * 1e3


def peak_megabytes(tiny: bool) -> dict[str, float]:
    """Peak memory of a process that trains three steps on the Bios shape: plain, and SenSeI."""
    peaks = {}
    for what in ("erm", "sensei"):
        command = [sys.executable, str(Path(__file__).resolve()), "--memory", what, *(["--tiny"] if tiny else [])]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        peaks[what] = float(done.stdout.split()[-1])
    return peaks


def memory_probe(shape: Shape, what: str) -> None:
    torch.set_num_threads(1)
    x, y, directions = data(shape, 2 * shape.batch)
    objective = ERM() if what == "erm" else sensei(shape, directions, adam_steps(shape), every=1)
    ours(shape, x, y, objective, Clock())(3)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def slope(factors: list[int], times: list[float]) -> float:
    return float(np.polyfit(np.log(factors), np.log(times), 1)[0])


def chart(results: dict[str, list[float]], factors: list[int], path: Path) -> None:
    import altair as alt
    import pandas as pd

    rows = [
        {"quantity": quantity, "factor": factor, "relative": ms / times[0]}
        for quantity, times in results.items()
        for factor, ms in zip(factors, times)
    ]
    drawn = (
        alt.Chart(pd.DataFrame(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("factor:Q", scale=alt.Scale(type="log", base=2), title="quantity, relative to the base shape"),
            y=alt.Y("relative:Q", scale=alt.Scale(type="log", base=2), title="CPU time per step, relative"),
            color=alt.Color("quantity:N", sort=list(results)),
        )
        .properties(width=420, height=320)
    )
    drawn.save(path.with_suffix(".svg"))
    drawn.save(path.with_suffix(".png"), scale_factor=2)


def main(arguments: list[str] | None = None) -> dict[str, object] | None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--memory", choices=["erm", "sensei"], help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scaling.json")
    parser.add_argument("--no-chart", action="store_true")
    chosen = parser.parse_args(arguments)
    base = TINY if chosen.tiny else BASE
    if chosen.memory:
        memory_probe(TINY if chosen.tiny else SHAPES["Bios"], chosen.memory)
        return None
    torch.set_num_threads(1)
    factors, rounds = ([1, 2], 1) if chosen.tiny else ([1, 2, 4], 1 if chosen.quick else 5)
    times = step_times(base, factors, rounds)
    slopes = {quantity: slope(factors, ms) for quantity, ms in times.items()}
    drawing = sampling_ms(base, 8 * base.batch, rounds)
    share = drawing / times["B"][0]
    memory = peak_megabytes(chosen.tiny)
    for quantity, ms in times.items():
        print(f"{quantity:16s}" + "".join(f"{value:9.2f}" for value in ms) + f" ms   slope {slopes[quantity]:5.2f}")
    print(f"sampling and gathering {drawing:.3f} ms, {share:.2%} of a step")
    print(f"peak memory on the Bios shape: plain {memory['erm']:.0f} MB, SenSeI {memory['sensei']:.0f} MB")
    result: dict[str, object] = {
        "factors": factors,
        "ms": times,
        "slopes": slopes,
        "sampling_ms": drawing,
        "sampling_share": share,
        "peak_megabytes": memory,
    }
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(result, indent=1) + "\n")
    if not chosen.no_chart:
        chart(times, factors, chosen.out)
    return result


if __name__ == "__main__":
    main()
