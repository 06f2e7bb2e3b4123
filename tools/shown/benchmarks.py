"""Blocks about the benchmarks."""

from __future__ import annotations

import json
import sys
from typing import Any

import pandas as pd

from evenhand.headline import percent
from shown.tables import ROOT, find, table


def _read(name: str) -> Any:
    return json.loads(find(f"{name}.json").read_text())


def peers() -> str:
    results = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text())
    libraries = list(next(iter(results.values())))
    lines = [f"| | {' | '.join(libraries)} |", "|---|" + "---|" * len(libraries)]
    for trial, row in results.items():
        lines.append(
            f"| {trial.replace('_', ' ')} | " + " | ".join("yes" if row[name] else "no" for name in libraries) + " |"
        )
    return "\n".join(lines)


def speed() -> str:
    """Cost of a training step, from benchmarks/step.py."""
    results = json.loads((ROOT / "benchmarks" / "results" / "step.json").read_text())
    peer = f"inFairness {results['settings']['infairness']}"
    lines = [
        "CPU milliseconds of one training step, one thread, side by side (`benchmarks/step.py`): the paper's numbers",
        "of search steps, on all rows of a batch as inFairness does; the default, which looks at each fourth row, of",
        "which half also count for differences that cost nothing; the default search without them (`free=0`), and on",
        "all rows:",
        "",
        "| | plain step | SenSeI, default | `free=0` | `free=0`, all rows | SenSeI, the paper's steps "
        f"| {peer}, the same | times faster | at most |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, result in results["results"].items():
        ms, ratio = result["ms"], result["times_faster_than_infairness"]
        few = f"{ms['default']:.1f} ({result['erm_steps']['default']:.1f} plain steps)"
        one, whole = (f"{ms[key]:.1f} ({result['erm_steps'][key]:.1f})" for key in ("default_one", "default_all"))
        cells = [f"{ms['erm']:.1f}", few, one, whole, f"{ms['paper']:.0f}"]
        most = result["times_faster_at_most"]
        cells += [f"{ms['infairness']:.0f}", f"{ratio:.1f}", f"{most:.1f}"] if ratio else ["-", "-", "-"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [
        "",
        "At most: if the matrix products without which so many steps of search cannot be made ran at this machine's",
        "full speed, and nothing else took any time.",
    ]
    return "\n".join(lines)


def fairness() -> str:
    """CPU time to a fair model, from benchmarks/time_to_fairness.py."""
    results = json.loads((ROOT / "benchmarks" / "results" / "time_to_fairness.json").read_text())
    seeds = len({run["seed"] for run in results["runs"]})
    lines = [
        "CPU time on Adult to the lowest audited R(h) that inFairness, well tuned, reaches at all",
        "(`benchmarks/time_to_fairness.py`), with the same data, metric, network, batches and judge;",
        f"means over {seeds} splits:",
        "",
        "| eps | inFairness: R(h), BA, CPU s | evenhand: R(h), BA, CPU s | times less CPU |",
        "|---|---|---|---|",
    ]
    for row in results["summary"]:
        theirs = f"{row['peer_r']:.2g}, {row['peer_ba']:.3f}, {row['peer_cpu_seconds']:.0f}"
        if row["r"] is None:
            lines.append(f"| {row['eps']} | {theirs} | not reached | - |")
            continue
        ours = f"{row['r']:.2g}, {row['ba']:.3f}, {row['cpu_seconds']:.1f}"
        lines.append(f"| {row['eps']} | {theirs} | {ours} | {row['ratio']:.0f} |")
    lines += ["", "![R(h) and accuracy against CPU time](../benchmarks/results/time_to_fairness.svg)", "", *_relative()]
    return "\n".join(lines)


def _relative() -> list[str]:
    """The same, judged by R(h) over how differently strangers are treated."""
    results = _read("time_to_fairness_relative")
    splits = sorted({run["seed"] for run in results["runs"]})
    of = "the mean of " if len(splits) > 1 else ""
    told = []
    for row in results["summary"]:
        theirs = f"{percent(row['peer_r'])} in {row['peer_cpu_seconds']:.0f} s at {row['peer_ba']:.3f}"
        if row["r"] is None:  # as fair, perhaps, but not as accurate: our most accurate step
            points = [point for run in results["runs"] if run["method"] == "evenhand" for point in run["points"]]
            frame = pd.DataFrame(points).groupby("step").mean()
            best = frame.loc[frame["ba"].idxmax()]
            row |= {"r": best[f"relative_{row['eps']:g}"], "ba": best["ba"], "cpu_seconds": best["cpu_seconds"]}
        ours = f"{percent(row['r'])} in {row['cpu_seconds']:.1f} CPU s at BA {row['ba']:.3f}"
        ratio = "" if row["ratio"] is None else f": {row['ratio']:.0f} times less CPU"
        told.append(f"at eps {row['eps']:g} {ours}, against {theirs}{ratio}")
    return [
        "R(h) falls when all outputs are squeezed. Over how differently strangers are treated, which squeezing does "
        f"not change (`--judge relative`; {of}split {', '.join(map(str, splits))}): {'; '.join(told)}."
    ]


def ddp() -> str:
    found = _read("ddp")
    model, times = found["model_of_64_workers"], found["seconds"]
    rows = [
        [name, *(f"{1000 * t[kind]:.0f} ms" for kind in ("cpu", "communication", "wall"))] for name, t in times.items()
    ]
    speed, weak, busy = found["speed_up"], found["weak_scaling"], found["load"] > 1.5 * found["cores"]
    talk, whole = model["communication_seconds"], model["efficiency_at_504_rows_per_worker"]
    return (
        table(["a step of SenSeI, Bios shape", "CPU of the slower rank", "messages", "wall"], rows)
        + "\n\nTwo processes against one single-threaded process on the same batch: "
        f"{speed['compute']:.2f} times faster "
        f"by CPU time and messages, {speed['wall']:.2f} by wall time on {found['cores']} cores with a load "
        f"of {found['load']:g}. Twice the batch on two processes (1 is perfect): {weak['compute']:.2f} by CPU time and "
        f"messages, {weak['wall']:.2f} by wall time."
        + (" The machine was busy with other work, so its wall times say little.\n\n" if busy else "\n\n")
        + f"A model on paper, not a measurement: with {model['workers']} workers of 504 rows each, a ring all-reduce "
        f"sends {model['bytes_sent_per_worker_and_step'] / 1e6:.1f} MB a step from each worker, which takes "
        + ", ".join(f"{1000 * talk[s]:.0f} ms at {s} (efficiency {whole[s]:.0%})" for s in talk)
        + "."
    )


def large() -> str:
    found = _read("large")
    rows = [[name, f"{s['cpu_seconds']:.0f} s", f"{s['peak_gb']:.2f} GB"] for name, s in found["stages"].items()]
    return (
        table(["stage", "CPU", "peak memory"], rows)
        + f"\n\n{found['rows']:,} rows of {found['columns']} columns, a file of {found['file_gb']:.2f} GB: at most "
        f"{found['peak_gb']:.2f} GB at any moment, torch itself included."
    )


def kills() -> str:
    found = _read("kills")
    kinds = ", ".join(f"{name} {count}" for name, count in found["by kind"].items())
    whole = _read("kills_train")
    return (
        f"{found['identical']} of {found['kills']} kills resumed to identical weights ({kinds}); of `evenhand train` "
        f"itself, from reading to report, {whole['identical']} of {whole['kills']} to the same model file and "
        "certificate."
    )


def soak() -> str:
    found = _read("soak")
    return (
        f"{found['seconds'] / 60:.0f} minutes, {found['rounds']} rounds: {len(found['failures'])} failures, memory "
        f"{found['early_mb']:.0f} MB early and {found['late_mb']:.0f} MB late ({found['growth']:+.1%})."
    )


def fuzz() -> str:
    found = _read("fuzz")
    rows = [[name, f"{r['files']:,}", str(len(r["failures"]))] for name, r in found["readers"].items()]
    return table([f"reader ({found['by']}, {found['seconds each']:.0f} s each)", "files", "failures"], rows)


def mutants() -> str:
    """What tools/mutants.py found."""
    found = _read("mutants")
    real, hand = found["total"] - found["equivalent"], found["by_hand"]
    return (
        f"Of {found['total']} single-expression breaks in {found['modules']} modules, {found['equivalent']} change "
        f"nothing that anybody could observe (`tools/mutants_equivalent.json` says why); of the other {real}, a test "
        f"notices {found['noticed']} ({found['share']:.1%}). Of {hand['total']} breaks of a meaning, written by hand, "
        f"{hand['noticed']}."
    )


def install() -> str:
    found = _read("install")
    rows = [
        [kind, f"{f['import_ratio']:.2f}", f"{f['api_ratio']:.2f}", ", ".join(f["extra"]) or "none"]
        for kind, f in found["archives"].items()
    ]
    head = ["archive", "`import evenhand` / torch", "estimators, audit, certify / torch", "optional packages found"]
    return table(head, rows)


def versions() -> str:
    """What tools/versions.py installed, and how the tests ended there."""
    shown = ["numpy", "scipy", "scikit-learn", "pandas", "torch", "onnx", "lightgbm"]
    rows = []
    for case in sorted(_read("versions").values(), key=lambda case: (case["versions"] == "newest", case["python"])):
        installed = ", ".join(f"{name} {case['installed'][name]}" for name in shown) if "installed" in case else ""
        rows.append([case["python"], case["versions"], installed, case["result"]])
    return table(["Python", "versions", "among them", "tests"], rows)


def million() -> str:
    """What benchmarks/million_rows.py measured."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import million_rows

    return str(million_rows.sentence(_read("million_rows")))


def many() -> str:
    """What benchmarks/large.py --many measured."""
    found = _read("many_people")
    rows = [
        [name, f"{stage['cpu_seconds']:g} s", f"{max(0.0, stage['more_gb']):.2f} GB"]
        for name, stage in found["stages"].items()
    ]
    head = [f"{found['people']:,} people, 41 columns, 100 hidden units", "CPU, one thread", "memory on top"]
    return table(head, rows)
