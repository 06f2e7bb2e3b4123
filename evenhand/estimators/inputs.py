"""Checks and preparations at the door of the estimators: frames, metrics, bounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from inspect import signature
from numbers import Real
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from evenhand.domain import Box, FreeBox
from evenhand.fair_metrics.classifier import from_classifier
from evenhand.fair_metrics.columns import column_names
from evenhand.fair_metrics.metric import FairMetric, free_share
from evenhand.frames import attribute_values, numbers, plain_table
from evenhand.search.worst_cases import pair
from evenhand.training.streams import Repeated

LOOKED_AT = 5000  # rows of which the share that is free is taken
ALL_FREE = 0.9  # of the difference between people: above it a fair model has hardly anything left to decide by


def weights_by_class(estimator: Any) -> Tensor:
    """The weights of a table class: weight, in the order of ``classes_``; a class that is not there has weight one."""
    given, classes = dict(estimator.class_weight), estimator.classes_.tolist()
    strangers = [label for label in given if label not in classes]
    if strangers and not all(label in given for label in classes):  # a fold without one of the classes is no mistake
        raise ValueError(
            f"class_weight names {strangers}, but the classes are {classes}; write them as y has them, in the same type"
        )
    each = [float(weight) if isinstance(weight := given.get(label, 1.0), Real) else -1.0 for label in classes]
    if not all(0 <= weight < float("inf") for weight in each):
        raise ValueError(f"class_weight must give every class a weight, zero or more; got {given!r}")
    return torch.tensor(each)


def checked_weight(sample_weight: Any, n: int) -> np.ndarray | None:
    """Weights (n,), zero or more, of n rows; None if there are none."""
    if sample_weight is None:
        return None
    given = numbers(sample_weight, "sample_weight")
    if given.ndim == 0:
        given = np.full(n, given)
    weight: np.ndarray = _check_sample_weight(given, np.empty((n, 0)), dtype=np.float64)
    if (weight < 0).any():
        raise ValueError("sample_weight must not be negative")
    return weight


def tensor_of(values: np.ndarray, device: str = "cpu") -> Tensor:
    """The array as a tensor, copied only where it may not be written to."""
    return torch.as_tensor(values if values.flags.writeable else values.copy()).to(device)


def names_of(estimator: Any) -> list[str] | None:
    """The names of the columns that an estimator was given, if they had some."""
    return [str(name) for name in getattr(estimator, "feature_names_in_", ())] or None


def select_rows(X: Any, kept: np.ndarray) -> Any:
    """The rows of a frame or array where ``kept`` is true."""
    if hasattr(X, "loc"):
        return X.loc[kept]
    return X.filter(kept) if hasattr(X, "filter") else np.asarray(X)[kept]


def checked_sensitive(sensitive_features: Any, kept: np.ndarray) -> Any:
    """Sensitive features of the rows that are ``kept``, in the form in which they were given: one for each row (n,)."""
    if sensitive_features is None:
        return None
    if isinstance(sensitive_features, Mapping):
        try:
            return {name: checked_sensitive(values, kept) for name, values in sensitive_features.items()}
        except ValueError as error:
            raise ValueError(
                f"{error}; in a cross-validation give a frame, since a table of name: values is not split"
            ) from error
    given = plain_table(sensitive_features, "sensitive_features")
    n = given.shape[0] if hasattr(given, "shape") else len(given)
    if n != len(kept):
        raise ValueError(f"sensitive_features has {n} rows but X has {len(kept)}; it needs one for each")
    return given if kept.all() else select_rows(given, kept)


def learn_metric(
    fair_metric: Any, X: Any, d: int, sensitive_features: Any = None, sample_weight: np.ndarray | None = None
) -> FairMetric:
    """The metric to train with on d features: one that is given, or learned from X, or Euclidean.

    A learner is a function of X, or an object with ``fit`` and ``fair_metric_`` (see estimators/metrics.py). With
    sensitive features it is taught from them too: ``learner(X, sensitive_features)``; without a learner each of them
    adds the direction by which a regression predicts it, and nothing else is free. A learner that takes
    ``sample_weight`` is given that too.
    """
    taught = () if sensitive_features is None else (sensitive_features,)
    if isinstance(fair_metric, FairMetric):
        if taught:
            raise ValueError(
                "sensitive_features teach a metric, but fair_metric is one already; give a learner, or leave them out"
            )
        metric = fair_metric
    elif fair_metric is None:
        metric = FairMetric.euclidean(d)
        if taught:
            metric = from_classifier(X, predict=named(*taught), sample_weight=sample_weight)
    elif hasattr(fair_metric, "fit"):
        learner = clone(fair_metric)
        if isinstance(X, Repeated) and not hasattr(learner, "fit_stream"):
            raise TypeError(
                f"{type(learner).__name__} learns from a table in memory, and a stream is none; give a FairMetric, a "
                "ClassifierMetric, or a function of the chunks of X, see fair_metrics.from_classifier_stream"
            )
        weighted = _weights_for(learner.fit, sample_weight)
        learned = learner.fit_stream(X) if isinstance(X, Repeated) else learner.fit(X, None, *taught, **weighted)
        metric = learned.fair_metric_
    elif not callable(fair_metric):
        raise TypeError(
            f"fair_metric must be a FairMetric or a learner of one, got {fair_metric!r}; to make columns sensitive, "
            "write ClassifierMetric(['sex'])"
        )
    else:
        metric = fair_metric(X, *taught, **_weights_for(fair_metric, sample_weight))
    if not isinstance(metric, FairMetric):
        raise TypeError(
            f"fair_metric must be a FairMetric or a function of X that returns one; got {type(metric).__name__}"
        )
    if metric.d != d:
        raise ValueError(
            f"fair_metric was built for {metric.d} features but X has {d}; "
            "build the metric on the encoded columns that the model sees"
        )
    if metric is not fair_metric and not isinstance(X, Repeated):
        _tell_if_all_is_free(metric, X)
    return metric.copied()  # moving it to another device must not move the user's


def _weights_for(learn: Callable[..., Any], sample_weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """The weights, if there are some, by name for what takes them."""
    if sample_weight is None or "sample_weight" not in signature(learn).parameters:
        return {}
    return {"sample_weight": sample_weight}


def _tell_if_all_is_free(metric: FairMetric, X: Any) -> None:
    """A warning where a learned metric makes nearly all of the difference between people free, each column in its own
    unit: directions learned from many groups may span everything, and the only fair model is then a constant."""
    values = numbers(X, "X")
    values = values[:: -(-len(values) // LOOKED_AT)]
    missing = np.isnan(values)
    values = np.where(missing, np.where(missing, 0.0, values).sum(0) / np.maximum((~missing).sum(0), 1), values)
    spread = values.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    directions = metric.directions.detach().cpu().double() / torch.as_tensor(scale)[:, None]
    share = free_share(FairMetric(directions), values / scale) if directions.shape[1] else 0.0
    if share > ALL_FREE:
        warnings.warn(
            f"the learned fair_metric makes {share:.0%} of the difference between people free, along "
            f"{directions.shape[1]} directions of {metric.d} columns: little but a constant model is fair. Let fewer "
            "attributes or groups teach it, numbers as numbers, or give it more columns",
            UserWarning,
            stacklevel=2,
        )


def named(sensitive_features: Any) -> dict[str, np.ndarray]:
    """Sensitive features as name -> values: from a frame, a table, name -> values, or one or several columns."""
    if isinstance(sensitive_features, Mapping):
        return {str(name): attribute_values(values) for name, values in sensitive_features.items()}
    given = plain_table(sensitive_features)
    names = column_names(given)
    if names is not None:
        return {name: attribute_values(given[column]) for name, column in zip(names, given.columns)}
    values = attribute_values(given)
    if values.ndim == 1:
        return {str(getattr(given, "name", None) or "sensitive"): values}
    return {f"sensitive {j}": column for j, column in enumerate(values.T)}


def data_bounds(x: Tensor, fair_metric: FairMetric | None = None, before: Box | None = None) -> Box:
    """The range of each column, two values for columns that hold only zeros and ones; the directions along which the
    metric lets people move freely run over the range of their own coordinate, whatever the single columns say.

    before: the domain of earlier rows, which belong to it as these do.
    """
    low, high = x.amin(dim=0).cpu().double(), x.amax(dim=0).cpu().double()
    indicator = ((x == 0) | (x == 1)).all(dim=0).cpu()
    if before is not None:
        columns = before.box if isinstance(before, FreeBox) else before
        low, high, indicator = low.minimum(columns.low), high.maximum(columns.high), indicator & columns.two_valued
    box = Box(
        torch.where(indicator, 0.0, low),
        torch.where(indicator, 1.0, high),
        binary=indicator.nonzero()[:, 0].tolist(),
    )
    free = box if fair_metric is None else box.freed(fair_metric.directions.cpu(), x.cpu())
    if before is None or not isinstance(free, FreeBox):
        return free
    if isinstance(before, FreeBox) and torch.equal(before.free, free.free):
        z_low, z_high = before.free_low, before.free_high
    else:  # a sensitive column was binary until now
        z_low, z_high = -before.support(-free.free.T), before.support(free.free.T)
    return FreeBox(box, free.free, free.free_low.minimum(z_low), free.free_high.maximum(z_high))


def checked_bounds(bounds: Any, x: Tensor, names: list[str] | None, of_data: Callable[[], Box]) -> Box | None:
    """What ``bounds=`` says: no bounds, by the word 'data' those that the data have, or a set that holds every row."""
    if bounds is None:
        return None
    if isinstance(bounds, str):
        check_bounds_word(bounds)
        return of_data()
    return given_bounds(bounds, x, names)


def check_bounds_word(bounds: str) -> None:
    if bounds != "data":
        raise ValueError(f"bounds must be 'data', None, a Box or (low, high); got {bounds!r}")


def given_bounds(bounds: Any, x: Tensor, names: list[str] | None) -> Box:
    """The user's bounds; training rows outside them are an error that counts them and names the columns. What is
    missing of a row can be anything possible."""
    box = Box.of(bounds if isinstance(bounds, Box) else pair(bounds), x.shape[1])
    people = x.detach().cpu().to(torch.float64)
    missing = people.isnan()
    if missing.any():
        people = people.where(~missing, box.round(people.where(~missing, (box.low + box.high) / 2)))
    outside = ~box.contains(people)
    if outside.any():
        off = ((people < box.low) | (people > box.high)).any(dim=0).nonzero()[:, 0].tolist()
        columns = [names[i] if names else i for i in off][:10]
        where = f"column(s) {columns}" if columns else "their binary, one-hot or free columns"
        raise ValueError(
            f"bounds exclude {int(outside.sum())} of {len(x)} training rows, in {where}; "
            "widen the bounds, or use bounds='data' for the range of the training data"
        )
    return box
