"""Checks and preparations at the door of the estimators: frames, metrics, bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric


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


def data_bounds(x: Tensor, fair_metric: FairMetric | None = None) -> Box:
    """The range of each column, two values for columns that hold only zeros and ones; the directions along which the
    metric lets people move freely run over the range of their own coordinate, whatever the single columns say."""
    low, high = x.amin(dim=0), x.amax(dim=0)
    indicator = ((x == 0) | (x == 1)).all(dim=0)
    box = Box(
        torch.where(indicator, 0.0, low).cpu(),
        torch.where(indicator, 1.0, high).cpu(),
        binary=indicator.nonzero()[:, 0].tolist(),
    )
    return box if fair_metric is None else box.freed(fair_metric.directions.cpu(), x.cpu())


def given_bounds(bounds: Any, x: Tensor, names: list[str] | None) -> Box:
    """The user's bounds; training rows outside them are an error that counts them and names the columns."""
    box = Box.of(bounds, x.shape[1])
    people = x.detach().to(device="cpu", dtype=torch.float64)
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
