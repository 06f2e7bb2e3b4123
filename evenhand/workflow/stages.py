"""The stages of a run, each kept when it is finished: models, choice, scores, audits, certificate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand.ensembles.boosting import lightgbm
from evenhand.fair_metrics.metric import FairMetric
from evenhand.frontier.sweep import one_thread
from evenhand.tables.encoder import encoded_names
from evenhand.workflow import judging
from evenhand.workflow.baselines import names_of, train_one
from evenhand.workflow.choice import best_without_fairness, choose_rho
from evenhand.workflow.folder import Folder
from evenhand.workflow.judging import certificate, comparisons, describe, example, how_many, measure, positive_code
from evenhand.workflow.prepare import Task
from evenhand.workflow.settings import Settings
from evenhand.workflow.trained import NAMES, Trained
from evenhand.workflow.views import Part

Say = Callable[[str], None]
QUIET = (  # warnings of scikit-learn about what is meant here
    "Found unknown categories",
    "The given NumPy array is not writable",
    "X does not have valid feature names",
    "X has feature names",
)


@dataclass
class Results:
    """Everything that a report shows; plain values only, so that it can be read back from the folder."""

    models: dict[str, Trained]
    metrics: dict[str, Any]
    frontier: list[dict[str, Any]]
    certificate: dict[str, Any] | None


def run(task: Task, settings: Settings, folder: Folder, say: Say, jobs: int = 1) -> Results:
    """Train what people would use otherwise, choose the weight of fairness against the best of that, train the fair
    model, put all before the same judges on held-out people, certify the fair one. Finished stages are read instead.

    In one thread: the operations are small, and threads that wait for each other cost several times the work.
    """
    with warnings.catch_warnings(), one_thread():
        for message in QUIET:
            warnings.filterwarnings("ignore", message=message)
        if not task.schema.regression:
            positive_code(task, settings)  # a wrong name is told before the work, not after
        if "trees" in settings.weights:
            lightgbm()  # so is a package that is not there
        models = {name: train_one(name, task, settings, folder, say) for name in names_of(task, settings)}
        reference = folder.stage("reference", lambda: best_without_fairness(models, task))
        sweep = choose_rho(task, settings, reference, folder, say, jobs)
        other, chosen = sweep["other"], sweep["chosen"]
        if other is not None:
            name = f"fair_{other['kind']}"
            models[name] = train_one(name, task, settings, folder, say, other["rho"], other["kind"])
        models["fair"] = train_one("fair", task, settings, folder, say, chosen["rho"], chosen["kind"])
        held_out = task.parts["held_out"].rows(task.views["seeing"].inside(task.parts["held_out"]))
        measured = {name: _judge(model, task, settings, held_out, folder, say) for name, model in models.items()}
        metrics = {
            "models": measured,
            "reference": reference,
            "chosen": chosen,
            "comparisons": folder.stage("comparisons", lambda: comparisons(models, task, held_out)),
            "example": folder.stage("example", lambda: _example(models, measured, reference, task, settings, held_out)),
            **facts(task, settings, held_out),
        }
        proved = None
        if settings.certificate:
            proved = folder.stage("certificate", lambda: certificate(task, settings, models["fair"], held_out, say))
    return Results(models, metrics, sweep["table"], proved)


def _judge(model: Trained, task: Task, settings: Settings, held_out: Part, folder: Folder, say: Say) -> dict[str, Any]:
    """Scores and audit of one model on the held-out part."""

    def make() -> dict[str, Any]:
        result = measure(model, task, settings, held_out)
        audited = held_out.head(how_many(settings.audit_rows, 400, 60, model.view.fair_metric.d)).frame
        found = judging.search(model, audited, task, settings)
        say(f"{NAMES[model.name]}: {found}")
        result["audit"] = describe(found, model, audited, task, settings)
        result["history"] = _history(model)
        return result

    kept: dict[str, Any] = folder.stage(f"measure-{model.name}", make)
    return kept


def _history(model: Trained) -> dict[str, Any]:
    history = getattr(model.pipeline[-1], "history_", None)
    return {} if history is None or model.name != "fair" else {str(k): v for k, v in history.to_dict("list").items()}


def _example(
    models: dict[str, Trained], measured: dict[str, Any], reference: dict[str, Any], task: Task, settings: Settings,
    held_out: Part,
) -> Any:  # fmt: skip
    return None if settings.show_people == "none" else example(models, measured, reference["name"], task, held_out)


def facts(task: Task, settings: Settings, held_out: Part) -> dict[str, Any]:
    """What the report says about the table and the options."""
    return {
        "rows": {name: len(part.y) for name, part in task.parts.items()},
        "held_out_inside": len(held_out.y),
        "left_out": task.left_out,
        "notes": list(task.notes),
        "columns": [asdict(column) for column in task.schema.columns],
        "schema": task.schema.to_json(),
        "task": "regression" if task.schema.regression else "classification",
        "positive": None if task.schema.regression else task.schema.labels[positive_code(task, settings)],
        "directions": directions(task.view.fair_metric, encoded_names(task.view.encoder), task),
        "proxies": [{"name": p.name, "explained": p.explained, "surely": p.surely} for p in task.proxies],
        "free_share": task.free_share,
        "questions": [question.name for question in task.questions],
        "settings": asdict(settings),
    }


def directions(metric: FairMetric, names: Sequence[tuple[str, str]], task: Task) -> list[dict[str, Any]]:
    """What each sensitive direction is made of: the coordinates, and the coefficients of the inner models."""
    seen = task.schema.sensitive if task.schema.see_sensitive else ()
    described: list[dict[str, Any]] = [{"name": name, "kind": "column", "coefficients": []} for name in seen]
    for i, model in enumerate(metric.attribute_models):
        again = model.name in {earlier.name for earlier in metric.attribute_models[:i]}  # hardly regularised
        for j in range(model.directions.shape[1]):
            w = model.directions[:, j]
            largest = [i for i in np.argsort(-np.abs(w)) if abs(w[i]) > 1e-9][:15]
            suffix = f" ({j + 1} of {model.directions.shape[1]})" if model.directions.shape[1] > 1 else ""
            described.append(
                {
                    "name": model.name + " most surely" * again + suffix,
                    "kind": "proxy",
                    "coefficients": [
                        {
                            "feature": f"{names[i][0]} = {names[i][1]}" if names[i][1] else names[i][0],
                            "weight": float(w[i]),
                        }
                        for i in largest
                    ],
                }
            )
    return described
