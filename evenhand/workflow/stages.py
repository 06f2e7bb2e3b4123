"""The stages of a run, each kept when it is finished: models, frontier, choice, scores, audits, certificate."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import Pipeline

from evenhand.audit import Audit, audit
from evenhand.certify.certificate import Certificate
from evenhand.certify.certify import certify
from evenhand.estimators import ERMClassifier, ProjectClassifier, SenSeIClassifier, SenSRClassifier
from evenhand.fair_metrics.metric import FairMetric
from evenhand.files import load, save
from evenhand.frontier import SearchedUnfairness, frontier
from evenhand.frontier.sweep import one_thread
from evenhand.tables.schema import Schema, encoded_names
from evenhand.workflow.folder import Folder
from evenhand.workflow.prepare import Part, Task
from evenhand.workflow.questions import Flip, most_changed, scores, show

Say = Callable[[str], None]
SWEEP_ROWS = 2000
SWEEP_TRAIN = 200_000  # rho is chosen on so many rows of a larger table: less memory, the same choice
SCORE_ROWS = 20_000
AUDIT_BYTES = 1 << 27
WIDE = 200  # features above which the certificate is tuned with less effort


@dataclass(frozen=True)
class Settings:
    """Options of a run that change its results."""

    rho: tuple[float, ...] = (1.0, 5.0, 15.0, 40.0)  # one value: no sweep
    eps: float = 0.1
    eps_certified: float = 0.01
    max_accuracy_loss: float = 0.03
    hidden: tuple[int, ...] = (100,)
    steps: int = 800
    batch_size: int = 500
    lr: float = 2e-3
    seed: int = 0
    confidence: float = 0.95
    sensr: bool = False  # also train SenSR, for comparison
    sensr_eps: float = 0.1
    certificate: bool = True
    audit_rows: int | None = None  # None: as many as take about a minute, see ``how_many``
    certify_rows: int | None = None


METHODS = {
    "plain": "Plain training",
    "project": "Project",
    "sensr": "SenSR",
    "fair": "SenSeI",
}


@dataclass
class Results:
    """Everything that a report shows; plain values only, so that it can be read back from the folder."""

    models: dict[str, Pipeline]
    metrics: dict[str, Any]
    frontier: list[dict[str, Any]]
    certificate: dict[str, Any] | None


def run(task: Task, settings: Settings, folder: Folder, say: Say, jobs: int = 1) -> Results:
    """All stages in order; those that are finished in the folder are read instead.

    In one thread: the operations are small, and threads that wait for each other cost several times the work.
    """
    with warnings.catch_warnings(), one_thread():
        warnings.filterwarnings("ignore", message="Found unknown categories")
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")  # nobody writes to it
        sweep = _sweep(task, settings, folder, say, jobs)
        chosen = sweep["chosen"]
        estimators: dict[str, Any] = {
            "plain": ERMClassifier(**_common(settings)),
            "project": ProjectClassifier(task.fair_metric, **_common(settings)),
            "fair": SenSeIClassifier(task.fair_metric, rho=chosen["rho"], eps=settings.eps, **_common(settings)),
        }
        if settings.sensr:
            estimators["sensr"] = SenSRClassifier(task.fair_metric, eps=settings.sensr_eps, **_common(settings))
        models = {name: _train(name, estimators[name], task, folder, say) for name in METHODS if name in estimators}
        held_out = inside(task, task.parts["held_out"])
        metrics = _measure(task, settings, models, held_out, folder, say)
        metrics["chosen"] = chosen
        certificate = None
        if settings.certificate:
            certificate = folder.stage("certificate", lambda: _certify(task, settings, models["fair"], held_out, say))
    return Results(models, metrics, sweep["table"], certificate)


def how_many(asked: int | None, most: int, least: int, d: int) -> int:
    """How many people to look at: as many as asked for, or fewer the wider the encoded table is (d features)."""
    return asked if asked is not None else max(least, min(most, 100 * most // d))


def broadest(task: Task) -> Flip:
    """The question about all sensitive columns together, or the first one."""
    joined = " or ".join(task.schema.sensitive)
    return next((q for q in task.questions if q.name == joined), task.questions[0])


def inside(task: Task, part: Part) -> Part:
    """The people whose categories were all seen in training: the others are outside the domain of the statements."""
    kept = task.box().contains(torch.from_numpy(part.X.to_numpy(dtype=np.float64))).numpy()
    return Part(part.frame[kept], part.X[kept], part.y[kept])


def _common(settings: Settings) -> dict[str, Any]:
    return {
        "hidden": settings.hidden,
        "steps": settings.steps,
        "batch_size": settings.batch_size,
        "lr": settings.lr,
        "random_state": settings.seed,
    }


def _sweep(task: Task, settings: Settings, folder: Folder, say: Say, jobs: int) -> dict[str, Any]:
    """Train for every rho, score on the validation part, choose by a stated rule."""
    if len(settings.rho) == 1:
        why = f"rho = {settings.rho[0]:g} was given; no other value was tried."
        return {"table": [], "chosen": {"rho": settings.rho[0], "why": why}}

    def make() -> dict[str, Any]:
        say(f"trade-off: {len(settings.rho)} values of rho, judged on validation data")
        train, validation = task.parts["train"].head(SWEEP_TRAIN), task.parts["validation"].head(SCORE_ROWS)
        X = pd.concat([train.X, validation.X])
        y = np.concatenate([train.y, validation.y])
        rows = how_many(None, SWEEP_ROWS, 200, task.fair_metric.d)
        folds = PredefinedSplit(np.r_[np.full(len(train.y), -1), np.zeros(len(validation.y), dtype=int)])
        found = frontier(
            SenSeIClassifier(task.fair_metric, eps=settings.eps, **_common(settings)),
            X,
            y,
            rho=list(settings.rho),
            scores={"unfairness": SearchedUnfairness(eps=settings.eps_certified, rows=rows)},
            cv=folds,
            n_jobs=jobs,
            directory=folder.path / "stages" / "frontier",
            chain=1,  # each from the start, as the model of the report will be
            progress=False,
        )
        choice = found.choose(max_accuracy_loss=settings.max_accuracy_loss)
        columns = ["rho", "accuracy", "unfairness", "front"]
        table = found.table[columns].to_dict("records")
        why = choice.why.removesuffix(", mean of 1 held-out folds.") + " on validation data."
        return {"table": table, "chosen": {"rho": float(choice.params["rho"]), "why": why}}

    result: dict[str, Any] = folder.stage("sweep", make)
    return result


def _train(name: str, estimator: Any, task: Task, folder: Folder, say: Say) -> Pipeline:
    """Fit one model on the train part, or read it if it is there."""
    path = folder.path / "stages" / f"{name}.evenhand"
    if path.exists():
        kept: Pipeline = load(path)
        return kept
    train = task.parts["train"]
    started = time.perf_counter()
    estimator.fit(train.X, train.y)
    say(f"{METHODS[name]} trained in {time.perf_counter() - started:.0f} s")
    model = Pipeline([("encode", task.encoder), ("model", estimator)])
    save(model, path, {"schema": task.schema.to_json(), "seconds": time.perf_counter() - started})
    return model


def _measure(
    task: Task, settings: Settings, models: dict[str, Pipeline], held_out: Part, folder: Folder, say: Say
) -> dict[str, Any]:
    """Scores and audits of every model on the held-out part."""
    few = held_out.head(SCORE_ROWS)
    groups = task.groups(few)
    measured: dict[str, Any] = {}
    for name, model in models.items():

        def of_one(name: str = name, model: Pipeline = model) -> dict[str, Any]:
            result = scores(model, few.frame, few.y, groups, task.questions)
            audited = held_out.head(how_many(settings.audit_rows, 400, 60, task.fair_metric.d)).frame
            found = search(model, audited, task, settings)
            say(f"{METHODS[name]}: {found}")
            result["audit"] = describe(found, audited, task.schema)
            result["people"] = most_changed(model, few.frame, broadest(task), task.schema.labels)
            result["history"] = model[-1].history_.to_dict("list")
            result["rho"] = getattr(model[-1], "rho", None)
            return result

        measured[name] = folder.stage(f"measure-{name}", of_one)
    return {
        "models": measured,
        "rows": {name: len(part.y) for name, part in task.parts.items()},
        "held_out_inside": len(held_out.y),
        "left_out": task.left_out,
        "columns": [asdict(column) for column in task.schema.columns],
        "schema": task.schema.to_json(),
        "directions": directions(task.fair_metric, encoded_names(task.encoder), task.schema.sensitive),
        "proxies": list(task.proxies),
        "questions": [question.name for question in task.questions],
        "settings": asdict(settings),
    }


def search(model: Pipeline, frame: pd.DataFrame, task: Task, settings: Settings) -> Audit:
    """The audit of a Pipeline at the certified eps, so many people at a time that their candidates fit in memory."""
    d = task.fair_metric.d
    at_once = max(8, AUDIT_BYTES // (8 * d * (min(d, 400) + 100)))  # so many candidates each, float64
    parts = (frame.iloc[start : start + 4 * at_once] for start in range(0, len(frame), 4 * at_once))
    return audit(model, parts, task.fair_metric, settings.eps_certified, task.box(), keep=50, chunk=min(1024, at_once))


def describe(found: Audit, frame: pd.DataFrame, schema: Schema, k: int = 50) -> dict[str, Any]:
    """What the report needs of an audit: numbers, the distribution of d_Y, and the worst-treated people."""
    pairs = found.pairs(k)
    whole = {c.name for c in schema.used if c.kind == "number" and (frame[c.name].dropna() % 1 == 0).all()}
    people = []
    for row, line in pairs.iterrows():
        record = {str(name): show(value, name in whole) for name, value in frame.loc[[row]].iloc[0].items()}
        changed = {}
        for name, was in record.items():
            if f"{name} (worst)" in pairs.columns:
                would_be = show(line[f"{name} (worst)"], name in whole)
                same = was == would_be or was == "(missing)" or line[name] == line[f"{name} (worst)"]
                if not same:
                    changed[name] = [was, would_be]
        people.append(
            {
                "row": str(row),
                "d_x": float(line["d_X"]),
                "d_y": float(line["d_Y"]),
                "prediction": schema.labels[int(line["prediction"])],
                "prediction_worst": schema.labels[int(line["prediction_worst"])],
                "changed": changed,
                "record": record,
            }
        )
    quantiles = np.quantile(found.d_y, np.linspace(0, 1, 101))
    return {
        "r_low": found.r_low,
        "lower": found.lower,
        "eps": found.eps,
        "n": found.n,
        "confidence": found.confidence,
        "statement": str(found),
        "mean_d_y": float(found.d_y.mean()),
        "quantiles": quantiles.tolist(),
        "people": people,
    }


def directions(metric: FairMetric, names: Sequence[tuple[str, str]], sensitive: Sequence[str]) -> list[dict[str, Any]]:
    """What each sensitive direction is made of: the coordinates, and the coefficients of the inner models."""
    described: list[dict[str, Any]] = [{"name": name, "kind": "column", "coefficients": []} for name in sensitive]
    for model in metric.attribute_models:
        for j in range(model.directions.shape[1]):
            w = model.directions[:, j]
            largest = [i for i in np.argsort(-np.abs(w)) if abs(w[i]) > 1e-9][:15]
            suffix = f" ({j + 1} of {model.directions.shape[1]})" if model.directions.shape[1] > 1 else ""
            described.append(
                {
                    "name": model.name + suffix,
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


def _certify(task: Task, settings: Settings, model: Pipeline, held_out: Part, say: Say) -> dict[str, Any]:
    d = task.fair_metric.d
    rows = how_many(settings.certify_rows, 500, 100, d)
    wait = f"some minutes, with {d:,} features" if d > WIDE else "about a minute"
    say(f"certificate: tuning, then bounding the worst case of {min(rows, len(held_out.y))} people ({wait})")
    tuning = inside(task, task.parts["tuning"])
    gentle: dict[str, Any] = {"tune_rows": 16, "tune_steps": 60, "rounds": 3} if d > WIDE else {}
    try:
        found: Certificate = certify(
            model,
            held_out.head(rows).frame,
            task.fair_metric,
            settings.eps_certified,
            task.box(),
            tuning.head(64 if d > WIDE else 300).frame,
            x_train=task.parts["train"].frame,
            confidence=settings.confidence,
            **gentle,
        )
    except (ValueError, ArithmeticError, RuntimeError, MemoryError) as error:
        say(f"no certificate: {error}")
        return {"refused": str(error)}
    result: dict[str, Any] = json.loads(found.to_json())
    say(result["statement"])
    return result
