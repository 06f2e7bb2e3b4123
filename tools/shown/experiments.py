"""Blocks about the experiments."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import pandas as pd

from evenhand.headline import percent
from shown.tables import ROOT, find, results


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


def case_study(name: str) -> str:
    """One table from the file to the report: its command, all models side by side, and what is proved."""
    found = json.loads((ROOT / "experiments" / "results" / "case_studies.json").read_text())[name]
    names = {
        "plain": "Plain network", "blind": "Plain network, blind", "boosted": "Boosted trees",
        "boosted_blind": "Boosted trees, blind", "project": "Project", "fair": "Fair (SenSeI)",
    }  # fmt: skip
    asked = list(found["models"]["plain"]["changed"])[-1]
    lines = [
        f"    {found['command']}",
        "",
        f"| {found['certificate']['n']} held-out people | BA | AUC | log loss "
        f"| decided otherwise if only {asked} changed | relative | decisions |",
        "|---|---|---|---|---|---|---|",
    ]
    for key, row in found["models"].items():
        scores = f"{row['balanced_accuracy']:.3f} | {row['auc']:.3f} | {row['log_loss']:.3f}"
        shares = " | ".join(percent(value) for value in (row["changed"][asked], row["relative"], row["decisions"]))
        lines.append(f"| {names.get(key, key)} | {scores} | {shares} |")
    proved = found["certificate"]
    return "\n".join([*lines, "", f"Why this model: {found['chosen']['why']}", "", f"Proved: {proved['headline']}."])


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
    study = script("search_study")
    milliseconds = pd.read_csv(find("search_study_cost.csv")).set_index("search")["ms"].to_dict()
    check_means("search_study", study.table(pd.read_csv(find("search_study_runs.csv")), milliseconds))
    text: str = study.markdown(pd.read_csv(find("search_study.csv")))
    return text


def table3() -> str:
    """Table 3, published and measured, one method below the other."""
    adult = script("table3_adult")
    for name in ("table3_adult", "table3_more", "table3_peer"):
        check_means(name, script(name).table(pd.read_csv(find(f"{name}_runs.csv"))))
    tried = pd.read_csv(find("table3_adult_tuning.csv")).groupby("method")[list(adult.SCORES)].mean()
    chosen = " ".join(f"{setting}={value:g}" for setting, value in adult.TUNED.items())
    if (best := tried.apply(adult.shortfall, axis=1).idxmin()) != chosen:
        raise ValueError(f"table3_adult.py trains with {chosen}, but on validation rows {best} is the best")
    columns = ["method", "source", "splits", *adult.SCORES[:3]]
    columns += ["Gap_G RMS", "Gap_R RMS", "Gap_G max", "Gap_R max", "cpu_seconds"]
    return results("table3_adult.csv", "table3_more.csv", "table3_peer.csv", columns=columns)


def script(name: str) -> Any:
    """An experiment as a module."""
    sys.path.insert(0, str(ROOT / "experiments"))
    return importlib.import_module(name)


def check_means(name: str, means: pd.DataFrame) -> None:
    """Whether the table is that of its runs."""
    kept = pd.read_csv(find(f"{name}.csv"))
    try:
        pd.testing.assert_frame_equal(means.astype(kept.dtypes), kept, atol=1e-9)
    except AssertionError as error:
        raise ValueError(f"{name}.csv is not the table of its runs; run experiments/{name}.py again\n{error}") from None
