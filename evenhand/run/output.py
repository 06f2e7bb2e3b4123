"""The finished folder: model, metric, numbers, certificate, report, model card, and what made them."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pandas as pd

from evenhand.run.folder import Folder, versions
from evenhand.run.problem import Problem
from evenhand.run.stages import Results

MODEL = "model.evenhand"


def write_results(folder: Folder, problem: Problem, results: Results, made_by: dict[str, Any]) -> None:
    """Everything but the report, which is made from these files alone."""
    shutil.copyfile(folder.path / "stages" / "fair.evenhand", folder.path / f".{MODEL}")
    (folder.path / f".{MODEL}").replace(folder.path / MODEL)
    problem.fair_metric.save(folder.path / "metric.npz")
    folder.write_json("metrics.json", results.metrics)
    table = pd.DataFrame(results.frontier, columns=["rho", "accuracy", "unfairness", "front"])
    folder.write_table("frontier.csv", table)
    if results.certificate is not None:
        folder.write_json("certificate.json", results.certificate)
    folder.write_json("run.json", {**made_by, "versions": versions()})
    write_report(folder)


def write_report(folder: Folder) -> None:
    """report.html and model_card.md from the files of the folder."""
    from evenhand.model_card import model_card
    from evenhand.report import Findings, render

    findings = Findings.read(folder.path)
    folder.write("report.html", render(findings).encode())
    folder.write("model_card.md", model_card(findings).encode())


def summary(folder: Folder) -> dict[str, Any]:
    """The numbers of a finished run, for --json."""
    metrics = folder.read_json("metrics.json")
    result = {
        "folder": str(folder.path),
        "chosen": metrics["chosen"],
        "models": {
            name: {
                "balanced_accuracy": m["balanced_accuracy"],
                "changed": {question: c["share"] for question, c in m["changed"].items()},
                "gaps": {attribute: g["rms"] for attribute, g in m["gaps"].items()},
                "r_low": m["audit"]["r_low"],
            }
            for name, m in metrics["models"].items()
        },
    }
    path = folder.path / "certificate.json"
    if path.exists():
        found = json.loads(path.read_text("utf-8"))
        result["certificate"] = {k: v for k, v in found.items() if k not in ("each_low", "each_high")}
    return result
