"""Fill the measured numbers of docs/scale.md from benchmarks/results, so that none is typed by hand.

    python tools/fill_scale.py

A block begins with  <!-- measured: NAME -->  and ends with  <!-- end -->; NAME is one of ``BLOCKS`` below.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "scale.md"
BLOCK = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def ddp(found: dict[str, Any]) -> str:
    model, times = found["model_of_64_workers"], found["seconds"]
    rows = [
        [name, *(f"{1000 * t[kind]:.0f} ms" for kind in ("cpu", "communication", "wall"))] for name, t in times.items()
    ]
    speed, weak, busy = found["speed_up"], found["weak_scaling"], found["load"] > 1.5 * found["cores"]
    talk, whole = model["communication_seconds"], model["efficiency_at_504_rows_per_worker"]
    return (
        table(["a step of SenSeI, Bios shape", "CPU of the slower rank", "messages", "wall"], rows)
        + f"\nTwo processes against one single-threaded process on the same batch: {speed['compute']:.2f} times faster "
        f"by CPU time and messages, {speed['wall']:.2f} by wall time on {found['cores']} cores with a load "
        f"of {found['load']:g}. Twice the batch on two processes (1 is perfect): {weak['compute']:.2f} by CPU time and "
        f"messages, {weak['wall']:.2f} by wall time."
        + (" The machine was busy with other work, so its wall times say little.\n\n" if busy else "\n\n")
        + f"A model on paper, not a measurement: with {model['workers']} workers of 504 rows each, a ring all-reduce "
        f"sends {model['bytes_sent_per_worker_and_step'] / 1e6:.1f} MB a step from each worker, which takes "
        + ", ".join(f"{1000 * talk[s]:.0f} ms at {s} (efficiency {whole[s]:.0%})" for s in talk)
        + ".\n"
    )


def large(found: dict[str, Any]) -> str:
    rows = [[name, f"{s['cpu_seconds']:.0f} s", f"{s['peak_gb']:.2f} GB"] for name, s in found["stages"].items()]
    return (
        table(["stage", "CPU", "peak memory"], rows)
        + f"\n{found['rows']:,} rows of {found['columns']} columns, a file of {found['file_gb']:.2f} GB: at most "
        f"{found['peak_gb']:.2f} GB at any moment, torch itself included.\n"
    )


def kills(found: dict[str, Any]) -> str:
    kinds = ", ".join(f"{name} {count}" for name, count in found["by kind"].items())
    return f"{found['identical']} of {found['kills']} kills resumed to identical weights ({kinds}).\n"


def soak(found: dict[str, Any]) -> str:
    return (
        f"{found['seconds'] / 60:.0f} minutes, {found['rounds']} rounds: {len(found['failures'])} failures, memory "
        f"{found['early_mb']:.0f} MB early and {found['late_mb']:.0f} MB late ({found['growth']:+.1%}).\n"
    )


def fuzz(found: dict[str, Any]) -> str:
    rows = [[name, f"{r['files']:,}", str(len(r["failures"]))] for name, r in found["readers"].items()]
    return table([f"reader ({found['by']}, {found['seconds each']:.0f} s each)", "files", "failures"], rows)


def install(found: dict[str, Any]) -> str:
    rows = [
        [kind, f"{f['import_ratio']:.2f}", f"{f['api_ratio']:.2f}", ", ".join(f["extra"]) or "none"]
        for kind, f in found["archives"].items()
    ]
    head = ["archive", "`import evenhand` / torch", "estimators, audit, certify / torch", "optional packages found"]
    return table(head, rows)


BLOCKS = {function.__name__: function for function in (ddp, large, kills, soak, fuzz, install)}


def table(head: list[str], rows: list[list[str]]) -> str:
    return "".join("| " + " | ".join(row) + " |\n" for row in [head, ["---"] * len(head), *rows])


def block(name: str) -> str:
    path = RESULTS / f"{name}.json"
    return BLOCKS[name](json.loads(path.read_text())) if path.exists() else "(not measured yet)\n"


def filled(text: str) -> str:
    return BLOCK.sub(lambda m: m[1] + "\n" + block(m[2]) + "\n" + m[3], text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
