"""The models of a run: what people would do otherwise, and the fair one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import Pipeline

from evenhand.estimators import (
    ERMClassifier,
    ProjectClassifier,
    SenSeIBoostingClassifier,
    SenSeIBoostingRegressor,
    SenSeIClassifier,
    SenSeIRegressor,
    SenSRClassifier,
)
from evenhand.estimators.calibration import calibrate
from evenhand.files import ModelFileError, load, save
from evenhand.tables.errors import TableError
from evenhand.training.checkpoints import CheckpointError, remove
from evenhand.workflow.folder import Folder
from evenhand.workflow.prepare import Task
from evenhand.workflow.seen import Seen
from evenhand.workflow.settings import Settings
from evenhand.workflow.trained import NAMES, Ours, Trained, Trees
from evenhand.workflow.views import View

Say = Callable[[str], None]
BASELINE_ROWS = 200_000  # a larger table's other models learn from so many rows
PATIENCE, VALIDATION = 10, 0.1  # early stopping of plain networks: they must not overfit to look bad


def view_of(name: str, task: Task) -> View:
    """What each model sees: comparisons with and without the sensitive columns, the fair ones what was asked for."""
    if name in ("plain", "boosted"):
        return task.views["seeing"]
    return task.views["blind"] if name in ("blind", "boosted_blind") else task.view


def sensei(task: Task, settings: Settings, rho: float, kind: str) -> Any:
    """The estimator of a fair model, "network" or "trees"."""
    if kind == "trees":
        boosting = SenSeIBoostingRegressor if task.schema.regression else SenSeIBoostingClassifier
        return boosting(
            task.view.fair_metric,
            rho=rho,
            eps=settings.eps_certified,  # the ramps of its splits are as wide as people are similar
            bounds=task.view.box,
            trees=settings.trees,
            learning_rate=20 / max(settings.trees, 100),  # many trees, small steps
            random_state=settings.seed,
        )
    network = SenSeIRegressor if task.schema.regression else SenSeIClassifier
    return network(task.view.fair_metric, rho=rho, eps=settings.eps, **_common(settings))


def names_of(task: Task, settings: Settings) -> list[str]:
    """The comparisons of this run, without the fair model."""
    names = ["plain", "blind", "boosted", "boosted_blind"]
    if not task.schema.regression:
        names += ["project"] + (["sensr"] if settings.sensr else [])
    return names


def train_one(
    name: str, task: Task, settings: Settings, folder: Folder, say: Say, rho: float = 0.0, kind: str = "network"
) -> Trained:
    """One model on the train part, calibrated on the validation part; read if it is there."""
    view = view_of(name, task)
    if name.startswith("boosted"):
        return _trees(name, task, settings, view, say)
    path = folder.path / "stages" / f"{name}.evenhand"
    if path.exists():
        return Ours(name, _read(path), view)
    estimator = _estimator(name, task, settings, rho, kind)
    train = task.parts["train"] if name.startswith("fair") else task.parts["train"].head(BASELINE_ROWS)
    began = time.perf_counter()
    y = train.y if task.schema.regression else task.schema.own(train.y)
    checkpoint = folder.path / "stages" / f"{name}.checkpoint"
    _fit(estimator, view.encode(train), y, checkpoint)
    if not task.schema.regression:
        validation = task.parts["validation"].head(BASELINE_ROWS)
        calibrate(estimator, view.encode(validation), task.schema.own(validation.y), settings.threshold)
    estimator.fair_metric_ = view.fair_metric  # plain training has no use for it; those who judge the file do
    estimator.bounds_ = view.box
    say(f"{NAMES[name]} trained in {time.perf_counter() - began:.0f} s")
    model = Pipeline([("encode", view.encoder), ("model", estimator)])
    save(model, path, {"schema": view.schema.to_json(), "seen": remembered(task, view).to_json()})
    remove(checkpoint)
    return Ours(name, model, view)


def _fit(estimator: Any, X: Any, y: Any, checkpoint: Path) -> None:
    """Fit, going on from where a killed run of the same fit was."""
    if hasattr(estimator, "checkpoint_to"):  # boosted trees are fitted in one go
        estimator.checkpoint_to(checkpoint)
    try:
        estimator.fit(X, y)
    except CheckpointError as error:
        raise TableError(
            f"{error}. Delete {checkpoint} and run the same command again: only this model is trained anew"
        ) from error


def remembered(task: Task, view: View) -> Seen:
    """The rows that the models of this run have learned from, in any way."""
    import pandas as pd

    used = pd.concat([task.parts[name].frame[view.columns] for name in ("train", "tuning", "validation")])
    return Seen.of(used, task.parts["held_out"].frame[view.columns])


def _read(path: Any) -> Pipeline:
    try:
        kept: Pipeline = load(path)
        return kept
    except ModelFileError as error:
        raise TableError(
            f"{error}. Delete {path} and run the same command again: only this model is trained anew"
        ) from error


def _estimator(name: str, task: Task, settings: Settings, rho: float, kind: str) -> Any:
    common, metric = _common(settings), view_of(name, task).fair_metric
    early: dict[str, Any] = {"validation_fraction": VALIDATION, "patience": PATIENCE}
    if name.startswith("fair"):
        return sensei(task, settings, rho, kind)
    if task.schema.regression:
        return SenSeIRegressor(metric, rho=0.0, eps=settings.eps, **common, **early)
    if name == "project":
        return ProjectClassifier(metric, **common, **early)
    if name == "sensr":
        return SenSRClassifier(metric, eps=settings.sensr_eps, **common)
    return ERMClassifier(**common, **early)


def _trees(name: str, task: Task, settings: Settings, view: View, say: Say) -> Trees:
    train = task.parts["train"].head(BASELINE_ROWS)
    began = time.perf_counter()
    common: dict[str, Any] = {"random_state": settings.seed, "early_stopping": True, "max_iter": settings.trees}
    if task.schema.regression:
        trees = HistGradientBoostingRegressor(**common)
    else:
        trees = HistGradientBoostingClassifier(class_weight="balanced", **common)
    trees.fit(view.encode(train), train.y)
    say(f"{NAMES[name]} trained in {time.perf_counter() - began:.0f} s")
    model = Pipeline([("encode", view.encoder), ("model", trees)])
    return Trees.calibrated(name, model, view, task.parts["validation"].head(BASELINE_ROWS), settings.threshold)


def _common(settings: Settings) -> dict[str, Any]:
    return {
        "hidden": settings.hidden,
        "steps": settings.steps,
        "batch_size": settings.batch_size,
        "lr": settings.lr,
        "random_state": settings.seed,
    }
