"""Which weight of fairness: tried on validation data, measured against the best model without fairness."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import r2_score
from sklearn.model_selection import PredefinedSplit

from evenhand.evaluation import balanced_accuracy
from evenhand.frontier import SearchedUnfairness, frontier
from evenhand.headline import percent
from evenhand.workflow.baselines import sensei
from evenhand.workflow.folder import Folder
from evenhand.workflow.prepare import Task
from evenhand.workflow.settings import Settings
from evenhand.workflow.trained import NAMES, WITHOUT_FAIRNESS, Trained

Say = Callable[[str], None]
SWEEP_ROWS = 150
SWEEP_TRAIN = 200_000  # rho is chosen on so many rows of a larger table: less memory, the same choice
SCORE_ROWS = 20_000
CHANCE = 1 / 3  # among SWEEP_ROWS people twice the deviation of such a ratio: so large a difference may be chance


def best_without_fairness(models: Mapping[str, Trained], task: Task) -> dict[str, Any]:
    """The most accurate of the models that nobody asked to be fair, on validation data: what people would use."""
    part = task.parts["validation"].head(SCORE_ROWS)
    found = {
        name: accuracy_of(part.y, models[name].codes(part.frame), task.schema.regression)
        for name in WITHOUT_FAIRNESS
        if name in models
    }
    best = max(found, key=lambda name: found[name])
    return {"name": best, "accuracy": found[best], "each": found}


def accuracy_of(y: NDArray[Any], predicted: NDArray[Any], regression: bool) -> float:
    """Balanced accuracy, or R2 of a quantity."""
    return float(r2_score(y, predicted)) if regression else balanced_accuracy(y, predicted)


def choose_rho(
    task: Task, settings: Settings, reference: Mapping[str, Any], folder: Folder, say: Say, jobs: int
) -> dict[str, Any]:
    """Train for every kind and rho, score on the validation part, choose by the rule of ``pick``: ``chosen`` among all,
    ``other`` the best of the kind that was not chosen, for comparison."""
    tried = [(kind, rho) for kind, weights in settings.weights.items() for rho in weights]
    if len(tried) == 1:
        ((kind, rho),) = tried
        why = f"rho = {rho:g} was given; no other value was tried."
        return {"table": [], "chosen": {"rho": rho, "kind": kind, "why": why, "within": None}, "other": None}

    def make() -> dict[str, Any]:
        say(f"trade-off: {len(tried)} values of rho, judged on validation data")
        table = [row for kind in settings.weights for row in _sweep(task, settings, folder, jobs, kind)]
        rule = (reference, settings.max_accuracy_loss, task.schema.regression)
        chosen = pick(table, *rule)
        rest = [row for row in table if row["kind"] != chosen["kind"]]
        return {"table": table, "chosen": chosen, "other": pick(rest, *rule) if _known(rest) else None}

    result: dict[str, Any] = folder.stage("sweep", make)
    return result


def pick(
    table: Sequence[Mapping[str, Any]], reference: Mapping[str, Any], max_loss: float, regression: bool
) -> dict[str, Any]:
    """The least unfair setting that loses at most max_loss against the best model without fairness, or a larger weight
    that is as fair within CHANCE; where none loses so little, the most accurate one, and that is said."""
    known = _known(table)
    if not known:
        raise ValueError("no model of the sweep has both scores defined; there is nothing to choose from")
    score = "R2" if regression else "balanced accuracy"
    floor = reference["accuracy"] - max_loss
    allowed = [row for row in known if row["accuracy"] >= floor]
    best = f"{NAMES[reference['name']].lower()} ({score} {reference['accuracy']:.3f})"
    if allowed:
        least = min(allowed, key=lambda r: (r["unfairness"], -r["accuracy"]))
        as_fair = [r for r in allowed if r["unfairness"] <= (1 + CHANCE) * least["unfairness"]]
        row = max((r for r in as_fair if r["kind"] == least["kind"]), key=lambda r: float(r["rho"]))
        first = f"the least unfair of the {len(allowed)} of {len(table)} weights that lose at most {max_loss:g}"
        if len(allowed) == len(table) > 1:
            first = f"the least unfair of the {len(table)} weights tried, none of which loses more than {max_loss:g}"
        elif len(allowed) == 1:
            first = f"the only one of {len(table)} weights that loses at most {max_loss:g}"
        if row is not least:
            first = f"as fair, but for chance, as the smaller {least['rho']:g}, {first}"
        why = f"rho = {row['rho']:g} is {first} against the best model without fairness, {best}"
    else:
        row = max(known, key=lambda r: (r["accuracy"], -r["unfairness"]))
        why = (
            f"No weight of fairness comes within {max_loss:g} of the best model without fairness, {best}; "
            f"rho = {row['rho']:g} is the most accurate of the {len(table)} tried"
        )
    if len({r["kind"] for r in table}) > 1:
        why = f"{why}; it is the weight of {'boosted trees' if row['kind'] == 'trees' else 'a network'}"
    why += (
        f": {score} {row['accuracy']:.3f}, and similar people can be treated as differently as "
        f"{percent(row['unfairness'])} of how strangers are, on validation data."
    )
    return {"rho": float(row["rho"]), "kind": row["kind"], "why": why, "within": bool(allowed)}


def _known(table: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in table if row["accuracy"] is not None and np.isfinite(row["unfairness"])]


def _sweep(task: Task, settings: Settings, folder: Folder, jobs: int, kind: str) -> list[dict[str, Any]]:
    train, validation = task.parts["train"].head(SWEEP_TRAIN), task.parts["validation"].head(SCORE_ROWS)
    y = np.concatenate([train.y, validation.y])
    d = task.view.fair_metric.d
    # Networks are judged where they were trained: what gives people away runs over its range, beyond single columns.
    bounds = None if settings.model == "network" else task.view.box
    found = frontier(
        sensei(task, settings, 0.0, kind),
        pd.concat([task.view.encode(train), task.view.encode(validation)]),
        y if task.schema.regression else task.schema.own(y),
        rho=list(settings.weights[kind]),
        scores={
            "unfairness": SearchedUnfairness(
                eps=settings.eps_certified, bounds=bounds, rows=_sweep_rows(settings, d), relative=True
            )
        },
        cv=PredefinedSplit(np.r_[np.full(len(train.y), -1), np.zeros(len(validation.y), dtype=int)]),
        n_jobs=jobs,
        directory=folder.path / "stages" / "frontier",
        chain=1,  # each from the start, as the model of the report will be
        progress=False,
    )
    records = found.table[["rho", "accuracy", "unfairness", "front"]].to_dict("records")
    return [{"kind": kind, **{str(name): value for name, value in record.items()}} for record in records]


def _sweep_rows(settings: Settings, d: int) -> int:
    """People whose worst case is searched for each weight; fewer in wide tables, and no more than in the audit."""
    return min(settings.audit_rows or SWEEP_ROWS, max(40, min(SWEEP_ROWS, 100 * SWEEP_ROWS // d)))
