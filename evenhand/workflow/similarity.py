"""Who counts as similar: what gives a sensitive attribute away is learned, tried on other rows, and measured."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from evenhand.fair_metrics.classifier import AttributeModel, from_classifier, telling, tells_more
from evenhand.fair_metrics.metric import MUCH_FREE, FairMetric, check_free_share, free_share
from evenhand.fair_metrics.strengths import STRENGTHS
from evenhand.tables.errors import TableError

METRIC_ROWS = 50_000  # enough to learn the directions
TEACHING_GROUP = 20  # a group with fewer rows teaches nothing; it counts with the other small ones
SMALL = "(small groups)"


@dataclass(frozen=True)
class Proxy:
    """What predicts one sensitive attribute: models with directions (d, k) of the encoded columns, the most regularised
    first, and how well they do.

    ``explained``: share of the uncertainty about the attribute that the other columns take away, on rows that the
    directions were not learned on; ``surely`` whether that is more than chance (two standard errors).
    """

    name: str
    models: tuple[AttributeModel, ...]
    explained: float
    surely: bool


def teaches(attribute: pd.Series) -> bool:
    """Whether there are two groups, or numbers, to learn the difference between."""
    return len(np.unique(_teaching(_attribute(attribute, attribute))[0])) > 1


def learn_proxy(
    name: str, X: pd.DataFrame, attribute: pd.Series, others: Sequence[int], X_new: pd.DataFrame, new: pd.Series
) -> Proxy:
    """The directions that predict the attribute from the columns ``others`` of X, tried on X_new."""
    X, attribute = X.iloc[:METRIC_ROWS], attribute.iloc[:METRIC_ROWS]
    target, wanted = _attribute(attribute, attribute), _attribute(new, attribute)
    known = np.ones(len(wanted), dtype=bool)
    target, teaching = _teaching(target)
    if target.dtype.kind != "f":
        X, known = X[teaching], np.isin(wanted, np.unique(target))
    d = X.shape[1]
    if len(np.unique(target)) < 2:
        raise TableError(
            f"{name!r} has a single group of {_enough(len(attribute))} rows or more: nothing can be learned about it"
        )
    models: list[AttributeModel] = []
    shares: list[tuple[float, bool]] = []
    rows = X.to_numpy(dtype=np.float64)
    for strength in STRENGTHS:
        inner = from_classifier(X.iloc[:, list(others)], (), {name: target}, l2=strength).attribute_models[0]
        lifted = np.zeros((d, inner.directions.shape[1]))
        lifted[list(others)] = inner.directions
        model = telling(AttributeModel(name, inner.estimator, tuple(others), lifted), rows, target)
        explained, surely = _evidence(inner.estimator, X_new.iloc[known, list(others)], wanted[known], target)
        if models and not (surely and tells_more(models[0], model, rows, target)):
            break  # what the rows at hand say without regularisation need not hold for others
        models.append(model)
        shares.append((explained, surely))
    return Proxy(name, tuple(models), max(share for share, _ in shares), shares[0][1])


def few_enough(proxies: Sequence[Proxy], free: Sequence[int], X: pd.DataFrame) -> list[Proxy]:
    """The proxies, each with its most regularised model alone where all would make too much of X free, beyond what is
    ``free`` by itself."""
    others = np.array(X.iloc[:METRIC_ROWS], dtype=np.float64)
    others[:, list(free)] = 0.0
    share = free_share(metric_of(X.shape[1], free, proxies), others)
    return [replace(one, models=one.models[:1]) if share > MUCH_FREE else one for one in proxies]


def metric_of(d: int, free: Sequence[int], proxies: Sequence[Proxy]) -> FairMetric:
    """Free are the coordinates and what the proxies found; Euclidean where there is nothing free."""
    models = tuple(model for proxy in proxies for model in proxy.models)
    directions = np.concatenate([np.eye(d)[:, list(free)], *(model.directions for model in models)], axis=1)
    if not directions.any():
        return FairMetric.euclidean(d)
    metric = FairMetric(torch.as_tensor(directions, dtype=torch.float32))
    metric.attribute_models = models
    return metric


def check_free(metric: FairMetric, X: pd.DataFrame) -> tuple[float, str | None]:
    """The share of the difference between people that costs nothing, and a warning where it is much; a metric under
    which nearly everybody is alike is refused."""
    rows = np.array(X.iloc[:METRIC_ROWS], dtype=np.float64)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            share = check_free_share(metric, rows)
        except ValueError as error:
            raise TableError(f"who counts as similar: {error}", "proxy") from error
    words = [str(one.message) for one in said if "free directions" in str(one.message)]
    return share, words[0] if words else None


def _attribute(values: pd.Series, teaching: pd.Series) -> NDArray[Any]:
    """The attribute as the inner model learns it: a number, or its groups with the small ones together."""
    if values.dtype.kind == "f":
        return values.fillna(teaching.median()).to_numpy(dtype=np.float64)
    counts = teaching.value_counts()
    large = [str(value) for value in counts[counts >= _enough(len(teaching))].index]
    texts = values.astype(str).to_numpy()
    return np.where(np.isin(texts, large), texts, SMALL).astype(str)


def _teaching(target: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values to learn from, and which rows they are: small groups only where together they are large enough."""
    teaching = np.ones(len(target), dtype=bool)
    if target.dtype.kind != "f" and (target == SMALL).sum() < _enough(len(target)):
        teaching = target != SMALL
    return target[teaching], teaching


def _enough(n: int) -> int:
    """Rows from which on a group teaches; fewer where there are few people at all."""
    return min(TEACHING_GROUP, max(2, n // 20))


def _evidence(inner: Any, X: pd.DataFrame, wanted: NDArray[Any], target: NDArray[Any]) -> tuple[float, bool]:
    """How much less one is wrong about the attribute by looking at the other columns: share, and whether for sure."""
    if len(wanted) < 20:
        return float("nan"), False
    if target.dtype.kind == "f" and not hasattr(inner, "predict_proba"):
        without, with_model = np.square(wanted - target.mean()), np.square(wanted - inner.predict(X.to_numpy()))
    else:
        wanted, target = wanted.astype(inner.classes_.dtype), target.astype(inner.classes_.dtype)
        codes = np.searchsorted(inner.classes_, wanted)
        share = np.bincount(np.searchsorted(inner.classes_, target), minlength=len(inner.classes_)) / len(target)
        p = inner.predict_proba(X.to_numpy())[np.arange(len(wanted)), codes]
        without, with_model = -np.log(share[codes].clip(1e-12)), -np.log(p.clip(1e-12))
    gain = without - with_model
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return float(gain.mean() / max(without.mean(), 1e-12)), bool(gain.mean() > 2 * error)
