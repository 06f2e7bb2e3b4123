"""Blocks about the experiments."""

from __future__ import annotations

import json
import sys

import pandas as pd

from evenhand.headline import percent
from shown.tables import ROOT, find


def demo() -> str:
    """What make demo prints, from evenhand demo --json > experiments/results/demo.json, and how its report looks."""
    found = json.loads((ROOT / "experiments" / "results" / "demo.json").read_text())
    eps = found["certificate"]["eps"]
    lines = [
        "What `make demo` finds on Adult's held-out people (S-Con: the same decision for Husband and Wife; GR-Con: for",
        "every sex and race; relative: how differently similar people are treated, of how differently strangers are;",
        f"decisions: share that somebody similar changes; both found by search, similar is d_X <= {eps:g}):",
        "",
        "| | BA | S-Con | GR-Con | gap sex | gap race | relative | decisions |",
        "|---|---|---|---|---|---|---|---|",
    ]
    shares = ("balanced_accuracy", "spouse_consistency", "sex_race_consistency", "gap_sex", "gap_race")
    for row in found["table"]:
        cells = [f"{row[name]:.3f}" for name in shares] + [percent(row["relative"]), percent(row["decisions"])]
        lines.append(f"| {row['name']} | {' | '.join(cells)} |")
    lines += ["", f"{found['certificate']['headline']}. {found['certificate']['statement']}."]
    return "\n".join([*lines, "", "![The report: summary and certificate](docs/images/report.png)"])


def relative_objective() -> str:
    """Both objectives on validation rows, means over the splits."""
    runs = pd.read_csv(find("relative_objective.csv"))
    columns = ["BA", "S-Con", "Gap_G RMS", "Gap_R RMS", "strangers", "relative"]
    means = runs.groupby(["objective", "rho"], sort=False)[columns].mean().reset_index()
    lines = [
        "| objective | rho | BA | S-Con | Gap_G | Gap_R | strangers | relative |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in means.sort_values(["objective", "rho"]).to_dict("records"):
        shares = " | ".join(f"{row[name]:.3f}" for name in columns[:4])
        lines.append(
            f"| {row['objective']} | {row['rho']:g} | {shares} | {row['strangers']:.2f} | {percent(row['relative'])} |"
        )
    return "\n".join(lines)


def search_study() -> str:
    """The table of the search study, as its script prints it."""
    sys.path.insert(0, str(ROOT / "experiments"))
    import search_study as study

    text: str = study.markdown(pd.read_csv(find("search_study.csv")))
    return text
