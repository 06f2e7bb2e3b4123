"""The finished folder: model, metric, numbers, certificate, report, model card, and what made them."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand.report import Findings, Section, render
from evenhand.report.card import model_card
from evenhand.tables.errors import TableError
from evenhand.workflow.folder import Folder, versions
from evenhand.workflow.prepare import Task
from evenhand.workflow.stages import Results

MODEL = "model.evenhand"


def write_results(folder: Folder, task: Task, results: Results, made_by: dict[str, Any]) -> None:
    """Everything but the report, which is made from these files alone."""
    shutil.copyfile(folder.path / "stages" / "fair.evenhand", folder.path / f".{MODEL}")
    (folder.path / f".{MODEL}").replace(folder.path / MODEL)
    task.view.fair_metric.save(folder.path / "metric.npz")
    folder.write_json("metrics.json", results.metrics)
    table = pd.DataFrame(results.frontier, columns=["kind", "rho", "accuracy", "unfairness", "front"])
    folder.write_table("frontier.csv", table)
    parts = [pd.DataFrame({"row": part.frame.index, "part": name}) for name, part in task.parts.items()]
    folder.write_table("parts.csv", pd.concat(parts))  # rows of the table, in the order in which they are looked at
    if results.certificate is not None:
        folder.write_json("certificate.json", results.certificate)
    folder.write_json("run.json", {**made_by, "date": folder.started, "versions": versions()})
    write_report(folder)


def write_report(folder: Folder, more: Sequence[Section] = ()) -> None:
    """report.html and model_card.md from the files of the folder; ``more`` are sections of one's own."""
    findings = read_findings(folder)
    try:
        page, card = render(findings, more), model_card(findings)
    except ModuleNotFoundError:
        raise
    except Exception as error:  # whatever a file that somebody altered may lead to
        raise TableError(
            f"metrics.json, run.json or certificate.json in {folder.path} is not as a finished run writes it "
            f"({type(error).__name__}: {error}); run the same command again in that folder to write them anew"
        ) from error
    folder.write("report.html", page.encode())
    folder.write("model_card.md", card.encode())


def data_hash(path: str | None, frame: pd.DataFrame) -> str:
    """SHA-256 of the file, so that a report can be matched with its data; of the values where there is no file."""
    digest = hashlib.sha256()
    if path is not None and Path(path).is_file():
        with Path(path).open("rb") as file:
            while part := file.read(1 << 20):
                digest.update(part)
    else:
        digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def read_findings(folder: Folder) -> Findings:
    """What the report shows, from the files of a finished run."""
    path = folder.path
    if not path.is_dir():
        raise TableError(f"{path} is not a folder; give the folder that evenhand train wrote")
    metrics, made_by = folder.read_json("metrics.json"), folder.read_json("run.json")
    certificate = folder.read_json("certificate.json") if (path / "certificate.json").exists() else None
    for name, given in (("metrics", metrics), ("run", made_by), ("certificate", certificate or {})):
        if not isinstance(given, dict):
            raise TableError(f"{path / f'{name}.json'} is no object; was it written by evenhand train?")
    for name in ("models", "chosen", "reference", "rows", "questions", "directions", "schema", "settings"):
        if name not in metrics:
            raise TableError(f"{path / 'metrics.json'} lacks {name!r}; was it written by evenhand train?")
    return Findings(metrics, made_by, _frontier(path / "frontier.csv"), certificate)


def _frontier(path: Path) -> list[dict[str, Any]]:
    """The weights that were tried; none where no file says so."""
    if not path.exists():
        return []
    try:
        rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
        return [
            {
                **{k: float(row[k]) if row[k] else None for k in ("rho", "accuracy", "unfairness")},
                "kind": row.get("kind", "network"),
                "front": row["front"] == "True",
            }
            for row in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise TableError(f"{path} is damaged ({error!r}); was it written by evenhand train?") from error


def summary(folder: Folder) -> dict[str, Any]:
    """The numbers of a finished run, for machines."""
    metrics = folder.read_json("metrics.json")
    result = {
        "folder": str(folder.path),
        "chosen": metrics["chosen"],
        "reference": metrics["reference"],
        "models": {name: _numbers(m) for name, m in metrics["models"].items()},
    }
    path = folder.path / "certificate.json"
    if path.exists():
        found = json.loads(path.read_text("utf-8"))
        result["certificate"] = {k: v for k, v in found.items() if k not in ("each_low", "each_high", "rows")}
    return result


def _numbers(m: dict[str, Any]) -> dict[str, Any]:
    scores = ("balanced_accuracy", "accuracy", "auc", "log_loss", "calibration_error", "r2", "mae")
    return {
        **{name: m[name] for name in scores if name in m},
        "changed": {question: c["share"] for question, c in m["changed"].items()},
        "gaps": {attribute: g["rms"] for attribute, g in m["groups"].items() if "rms" in g},
        **{name: m["audit"].get(name) for name in ("r_low", "relative", "decisions", "percentile")},
    }
