"""Checks and preparations at the door of the estimators: frames, metrics, bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from evenhand.fair_metrics.metric import FairMetric
from evenhand.search.worst_cases import box


def check_frame(X: Any) -> None:
    """For frames: name the columns that are not numbers, or that hold NaN or infinity."""
    frame = X if isinstance(X, pd.DataFrame) else X.to_pandas() if type(X).__module__.startswith("polars") else None
    if frame is None:
        return
    text = [
        str(name)
        for name, kind in zip(frame.columns, frame.dtypes)
        if not pd.api.types.is_numeric_dtype(kind)
        and not (kind.kind == "O" and all(isinstance(v, int | float | np.number) for v in frame[name]))
    ]
    if text:
        raise ValueError(
            f"column(s) {', '.join(map(repr, text))} are not numbers; encode them first, for example with "
            f"make_column_transformer((OneHotEncoder(sparse_output=False), {text}), remainder='passthrough')"
        )
    bad = [
        str(name)
        for name in frame.columns
        if not np.isfinite(frame[name].to_numpy(dtype=np.float64, na_value=np.nan)).all()
    ]
    if bad and len(frame):
        raise ValueError(
            f"Input X contains NaN or infinity in column(s) {', '.join(map(repr, bad))}; "
            "impute or drop them first, for example with sklearn.impute.SimpleImputer"
        )


def learn_metric(fair_metric: FairMetric | Callable[[Any], FairMetric] | None, X: Any, n_features: int) -> FairMetric:
    """The metric to train with: Euclidean if none is given, learned from X if a learner is."""
    if fair_metric is None:
        return FairMetric.euclidean(n_features)
    metric = fair_metric if isinstance(fair_metric, FairMetric) else fair_metric(X)
    if not isinstance(metric, FairMetric):
        raise TypeError(
            f"fair_metric must be a FairMetric or a function of X that returns one; got {type(metric).__name__}"
        )
    if metric.d != n_features:
        raise ValueError(
            f"fair_metric was built for {metric.d} features but X has {n_features}; "
            "build the metric on the encoded columns that the model sees"
        )
    kept = FairMetric.euclidean(n_features)  # a copy: moving it to another device must not move the user's
    kept.directions, kept.factor = metric.directions, metric.factor
    kept.attribute_models = metric.attribute_models
    return kept


def data_bounds(x: Tensor) -> tuple[Tensor, Tensor]:
    """The range of each column; 0..1 for columns that hold only zeros and ones."""
    low, high = x.amin(dim=0), x.amax(dim=0)
    indicator = ((x == 0) | (x == 1)).all(dim=0)
    return torch.where(indicator, 0.0, low), torch.where(indicator, 1.0, high)


def given_bounds(bounds: Any, x: Tensor, names: list[str] | None) -> tuple[Tensor, Tensor]:
    """The user's bounds; training rows outside them are an error that counts them and names the columns."""
    limits = box(bounds, x)
    assert limits is not None
    outside = (x < limits[0]) | (x > limits[1])
    if outside.any():
        columns = [names[i] if names else i for i in outside.any(dim=0).nonzero()[:, 0].tolist()]
        raise ValueError(
            f"bounds exclude {int(outside.any(dim=1).sum())} of {len(x)} training rows, in column(s) {columns[:10]}; "
            "widen the bounds, or use bounds='data' for the range of the training data"
        )
    return limits
