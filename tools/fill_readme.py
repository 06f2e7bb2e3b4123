"""Write the numbers of the README from the results files: python tools/fill_readme.py

Each block between <!-- begin:name --> and <!-- end:name --> is made by the function of that name below;
tests/docs/test_readme.py fails when the README says something else than the results.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def demo() -> str:
    """What make demo prints, from evenhand demo --json > experiments/results/demo.json, and how its report looks."""
    found = json.loads((ROOT / "experiments/results/demo.json").read_text())
    eps = found["certificate"]["eps"]
    lines = [
        "What `make demo` finds on Adult's held-out people (S-Con: the same decision for Husband and Wife; GR-Con: for",
        "every sex and race; R(h): worst-case unfairness found by search):",
        "",
        f"| | BA | S-Con | GR-Con | gap sex | gap race | R(h), eps = {eps:g} |",
        "|---|---|---|---|---|---|---|",
    ]
    shares = ("balanced_accuracy", "spouse_consistency", "sex_race_consistency", "gap_sex", "gap_race")
    for row in found["table"]:
        cells = [f"{row[name]:.3f}" for name in shares] + [f"{row['searched']:.2g}"]
        lines.append(f"| {row['name']} | {' | '.join(cells)} |")
    lines += ["", f"{found['certificate']['statement']}."]
    return "\n".join([*lines, "", "![The report: summary and certificate](docs/images/report.png)"])


def peers() -> str:
    results = json.loads((ROOT / "benchmarks/results/peers.json").read_text())
    libraries = list(next(iter(results.values())))
    lines = [f"| | {' | '.join(libraries)} |", "|---|" + "---|" * len(libraries)]
    for trial, row in results.items():
        lines.append(
            f"| {trial.replace('_', ' ')} | " + " | ".join("yes" if row[name] else "no" for name in libraries) + " |"
        )
    return "\n".join(lines)


def table3() -> str:
    """Table 3, measured rows under the published ones."""
    with (ROOT / "experiments/results/table3_adult.csv").open() as file:
        rows = list(csv.DictReader(file))
    scores = ["BA", "S-Con", "GR-Con", "Gap_G RMS", "Gap_R RMS", "Gap_G max", "Gap_R max"]
    lines = [
        "Adult, means over random splits (`experiments/table3_adult.py`). The first three columns are better larger,",
        "the gaps smaller; CPU seconds of one fit on one core:",
        "",
        f"| | {' | '.join(scores)} | splits | CPU s |",
        "|---|" + "---|" * (len(scores) + 2),
    ]
    for row in rows:
        published = row["source"] == "published"
        values = [f"{float(row[name]):.3f}" if row[name] else "-" for name in scores]
        values += ["", ""] if published else [f"{float(row[name]):.0f}" for name in ("splits", "cpu_seconds")]
        name = f"*{row['method']}, published*" if published else f"**{row['method']}**"
        lines.append(f"| {name} | {' | '.join(values)} |")
    return "\n".join(lines)


def speed() -> str:
    """Cost of a training step, from benchmarks/step.py."""
    results = json.loads((ROOT / "benchmarks/results/step.json").read_text())
    peer = f"inFairness {results['settings']['infairness']}"
    lines = [
        "CPU milliseconds of one training step, one thread, side by side (`benchmarks/step.py`): the paper's numbers",
        "of search steps, and the default search:",
        "",
        f"| | plain step | SenSeI, default | SenSeI, the paper's steps | {peer}, the same | times faster |",
        "|---|---|---|---|---|---|",
    ]
    for name, result in results["results"].items():
        ms, ratio = result["ms"], result["times_faster_than_infairness"]
        few = f"{ms['default']:.1f} ({result['erm_steps']['default']:.1f} plain steps)"
        cells = [f"{ms['erm']:.1f}", few, f"{ms['paper']:.0f}"]
        cells += [f"{ms['infairness']:.0f}", f"{ratio:.1f}"] if ratio else ["-", "-"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def fairness() -> str:
    """CPU time to a fair model, from benchmarks/time_to_fairness.py."""
    results = json.loads((ROOT / "benchmarks/results/time_to_fairness.json").read_text())
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
    return "\n".join([*lines, "", "![R(h) and accuracy against CPU time](benchmarks/results/time_to_fairness.svg)"])


def certificate() -> str:
    """Bounds on R(h) on Adult, from experiments/certify_adult.py: means over the seeds."""
    with (ROOT / "experiments/results/certify_adult.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if not row["strength"]]
    columns = ["BA", "r_low", "r_high", "gap", "lower", "upper"]
    lines = [
        "Bounds on R(h) at eps = .01 on Adult, 1,000 held-out rows, means over seeds (`experiments/certify_adult.py`):",
        "",
        "| model | seeds | BA | R_low | R_high | gap | 95 % lower | 95 % upper |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for model in dict.fromkeys(row["model"] for row in rows):
        part = [row for row in rows if row["model"] == model]
        means = [f"{sum(float(row[name]) for row in part) / len(part):.3g}" for name in columns]
        lines.append(f"| {model} | {len(part)} | {' | '.join(means)} |")
    return "\n".join(lines)


BLOCKS = {
    "demo": demo,
    "peers": peers,
    "table3": table3,
    "speed": speed,
    "fairness": fairness,
    "certificate": certificate,
}


def filled(text: str) -> str:
    """The text with every known block made anew."""
    for name, make in BLOCKS.items():
        pattern = re.compile(f"(<!-- begin:{name} -->\n).*?(<!-- end:{name} -->)", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"the README has no block {name!r}")
        body = make()
        text = pattern.sub(lambda found, body=body: f"{found[1]}{body}\n{found[2]}", text)
    return text


if __name__ == "__main__":
    README.write_text(filled(README.read_text()))
