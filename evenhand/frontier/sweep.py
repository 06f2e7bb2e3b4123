"""frontier(): train a sweep of models in parallel, and resume it after a kill."""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid, StratifiedKFold, check_cv
from sklearn.utils import check_consistent_length
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import nn

from evenhand.estimators.base import mlp
from evenhand.fair_metrics.metric import FairMetric
from evenhand.frames import plain_table
from evenhand.frontier.scores import SearchedUnfairness, accuracy
from evenhand.frontier.store import Store, fingerprint
from evenhand.frontier.trade_off import Frontier

Weights = Mapping[str, torch.Tensor]
Score = Callable[[Any, Any, Any], float]  # fitted estimator, X, y -> number


class Task(NamedTuple):
    """One model: its parameters, its fold, and the key under which it is kept."""

    params: dict[str, Any]
    fold: int
    key: str


def frontier(
    estimator: Any,
    X: Any,
    y: Any,
    rho: Sequence[float] | None = None,
    *,
    params: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]] | None = None,
    scores: Mapping[str, Score] | None = None,
    cv: Any = 3,
    n_jobs: int | None = None,
    directory: str | os.PathLike[str] | None = None,
    chain: int = 4,
    warm_share: float = 0.5,
    fit_params: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> Frontier:
    """Train the estimator for every rho (or every combination of ``params``) on every fold, and score it there.

    scores: name -> function of (fitted estimator, X, y) of the held-out fold. "accuracy" (larger is better) and
        "unfairness" (smaller is better) span the front and have defaults: balanced accuracy, and the searched R(h) at
        the estimator's eps, the same for all models. Others are reported beside them.
    cv: number of folds (stratified and shuffled), or any splitter of scikit-learn.
    n_jobs: processes, as in joblib, one thread each. A backend registered with joblib (Dask, Ray, Spark) takes the
        work with ``joblib.parallel_config("dask")``, unchanged.
    directory: where each finished model is kept, scores and weights; a sweep that was stopped, even by a kill, goes
        on from there; models in flight go on from their last twentieth, if random_state is given.
    chain: so many neighbours in the sweep start one from another, from small rho to large, with ``warm_share`` of the
        steps; each chain begins anew. 1 trains every model from its own start. The models do not depend on n_jobs.
    fit_params: what else ``fit`` is given, by name, one for each row of X: ``{"sensitive_features": frame}``.

    >>> from evenhand import SenSeIClassifier
    >>> from evenhand.datasets import synthetic
    >>> X, y = synthetic(200)
    >>> found = frontier(SenSeIClassifier(steps=20, random_state=0), X, y, rho=[0, 5], cv=2, progress=False)
    >>> found.table["rho"].tolist()
    [0, 5]
    """
    if chain < 1 or not 0 < warm_share <= 1:
        raise ValueError(f"chain must be 1 or more and warm_share in (0, 1]; got {chain} and {warm_share}")
    X, beside = _table(X, "X"), {name: _table(values, name) for name, values in (fit_params or {}).items()}
    check_consistent_length(X, y, *beside.values())
    settings = _settings(estimator, rho, params)
    every_score: dict[str, Score] = {"accuracy": accuracy, **(scores or {})}
    if "unfairness" not in every_score:
        every_score["unfairness"] = _default_unfairness(estimator)
    splits = _splits(cv, estimator, X, y)
    names = sorted({name for setting in settings for name in setting})
    unfixed = getattr(estimator, "random_state", 0) is None
    given = [estimator, X, np.asarray(y), every_score, chain, warm_share]
    common = fingerprint([*given, beside] if beside else given)
    store = Store(directory)
    chains = []
    for fold, (train_rows, _) in enumerate(splits):
        for start in range(0, len(settings), chain):
            part = settings[start : start + chain]
            keys = [fingerprint([common, part[: i + 1], fold, train_rows]) for i in range(len(part))]
            chains.append([Task(setting, fold, key) for setting, key in zip(part, keys)])
    if unfixed and directory is not None and progress:
        sys.stderr.write("random_state is None: models trained after a resumption differ by chance\n")
    jobs = (
        delayed(train_chain)(estimator, X, y, beside, tasks, splits[tasks[0].fold], every_score, store, warm_share)
        for tasks in chains
    )
    records: list[dict[str, Any]] = []
    report = _Progress(sum(len(tasks) for tasks in chains), progress)
    for finished in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs):
        records += finished
        report(records)
    frame = pd.DataFrame([{**r["params"], "fold": r["fold"], **r["scores"], "seconds": r["seconds"]} for r in records])
    place = {repr(setting): i for i, setting in enumerate(settings)}
    order = sorted(range(len(records)), key=lambda i: (place[repr(records[i]["params"])], records[i]["fold"]))
    frame = frame.iloc[order].reset_index(drop=True)
    return Frontier(frame, tuple(names), tuple(every_score), estimator)


def train_chain(
    estimator: Any,
    X: Any,
    y: Any,
    beside: Mapping[str, Any],
    tasks: list[Task],
    split: tuple[np.ndarray, np.ndarray],
    scores: Mapping[str, Score],
    store: Store,
    warm_share: float,
) -> list[dict[str, Any]]:
    """The models of one chain, one after the other, each kept as soon as it is scored."""
    train, held_out = ((_rows(X, rows), np.asarray(y)[rows]) for rows in split)
    records: list[dict[str, Any]] = []
    previous: tuple[Weights, float | None] | None = None
    with one_thread():
        for task in tasks:
            record = store.load(task.key)
            if record is None:
                model = clone(estimator).set_params(**task.params)
                _warm_start(model, previous, *train, warm_share)
                _survives(model, store.checkpoint(task.key))
                started = time.process_time()
                model.fit(*train, **{name: _rows(values, split[0]) for name, values in beside.items()})
                module, lam = getattr(model, "module_", None), getattr(model, "lam_", None)
                values = {name: float(score(model, *held_out)) for name, score in scores.items()}
                seconds = time.process_time() - started
                record = {"fold": task.fold, "scores": values, "seconds": round(seconds, 3), "lam": lam}
                store.save(task.key, {**record, "params": task.params}, module)
                weights = None if module is None else module.state_dict()
            else:
                weights = store.load_weights(task.key)
            previous = None if weights is None else (weights, record["lam"])
            records.append({**record, "params": task.params})
    return records


def _survives(model: Any, checkpoint: Path | None) -> None:
    """Let a model that can go on from where it was killed; one without a seed would be another run."""
    fixed = getattr(model, "random_state", None) is not None
    if checkpoint is not None and fixed and hasattr(model, "checkpoint_to"):
        model.checkpoint_to(checkpoint)


def _warm_start(
    model: Any, previous: tuple[Weights, float | None] | None, X: Any, y: np.ndarray, warm_share: float
) -> None:
    """Let the model start from the weights and lam of the chain's previous one, with fewer steps.

    Regressors start anew: the weights of their module are in the unit of the targets, those in training are not.
    """
    known = model.get_params(deep=False)
    if previous is None or not is_classifier(model) or not {"module", "steps", "hidden"} <= set(known):
        return
    weights, lam = previous
    n_features, n_outputs, own = np.shape(X)[1], len(np.unique(y)), known["module"]
    if own is None:
        module: nn.Module = mlp(n_features, known["hidden"], n_outputs)
    else:
        module = copy.deepcopy(own) if isinstance(own, nn.Module) else own(n_features, n_outputs)
    try:
        module.load_state_dict(weights)
    except RuntimeError:
        return  # the sweep changes the network itself
    model.set_params(module=module, steps=max(1, round(warm_share * known["steps"])))
    if lam is not None and "lam" in known:
        model.set_params(lam=lam)
    if "quiet_start" in known:
        model.set_params(quiet_start=False)  # a start of its own: it would undo the warm one


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread in this process: the sweep itself is parallel."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


def _settings(estimator: Any, rho: Sequence[float] | None, params: Any) -> list[dict[str, Any]]:
    """The parameters of each model, rho growing."""
    if (rho is None) == (params is None):
        raise ValueError("give either rho=[...] or params={name: [...]}")
    if rho is not None:
        settings: list[dict[str, Any]] = [{"rho": value} for value in sorted(rho)]
    else:
        settings = list(ParameterGrid(params)) if isinstance(params, Mapping) else [dict(p) for p in params]
    if not settings:
        raise ValueError("the sweep is empty: name at least one value")
    known = estimator.get_params()
    unknown = sorted({name for setting in settings for name in setting} - set(known))
    if unknown:
        raise ValueError(
            f"{type(estimator).__name__} has no parameter {unknown[0]!r}; it has {', '.join(sorted(known))}"
        )
    distinct = {repr(setting): setting for setting in settings}
    return list(distinct.values())


def _default_unfairness(estimator: Any) -> Score:
    if "fair_metric" not in estimator.get_params():
        raise ValueError(
            f"{type(estimator).__name__} has no fair metric of its own; say what is unfair: "
            'scores={"unfairness": SearchedUnfairness(eps, fair_metric)} or any function of (estimator, X, y)'
        )
    return SearchedUnfairness(
        eps=float(getattr(estimator, "eps", 0.1)),
        fair_metric=estimator.fair_metric if isinstance(estimator.fair_metric, FairMetric) else None,
        output_distance=getattr(estimator, "output_distance", None),
    )


def _splits(cv: Any, estimator: Any, X: Any, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    if isinstance(cv, int) and is_classifier(estimator):
        cv = StratifiedKFold(cv, shuffle=True, random_state=0)
    return list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y))


def _table(X: Any, name: str) -> Any:
    """What the estimators take, as something of which rows can be taken."""
    X = plain_table(X, name)
    return X if hasattr(X, "shape") else np.asarray(X)


def _rows(X: Any, rows: np.ndarray) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


class _Progress:
    """A line to stderr whenever a chain is finished."""

    def __init__(self, total: int, shown: bool) -> None:
        self.total, self.shown, self.started = total, shown, time.monotonic()

    def __call__(self, records: list[dict[str, Any]]) -> None:
        if not self.shown:
            return
        done, passed = len(records), time.monotonic() - self.started
        left = passed / done * (self.total - done)
        end = "\n" if done == self.total or not sys.stderr.isatty() else "\r"
        sys.stderr.write(f"{done} of {self.total} models, {passed:.0f} s, about {left:.0f} s left {end}")
        sys.stderr.flush()
