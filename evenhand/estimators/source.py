"""Fitting an estimator on data larger than memory: a pass that looks at the data, then training on the stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from torch import Tensor

from evenhand import ranks
from evenhand.domain import Box, FreeBox
from evenhand.estimators.inputs import check_frame, learn_metric
from evenhand.fair_metrics.metric import FairMetric
from evenhand.training.loop import train
from evenhand.training.streams import Repeated, Stream, one_shot


@dataclass
class Seen:
    """What one pass over the batches found."""

    rows: int = 0
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    indicator: np.ndarray | None = None
    counts: dict[Any, int] = field(default_factory=dict)  # of the classes
    total: float = 0.0  # of numeric targets, and of their squares
    squares: float = 0.0


def fit_stream(estimator: Any, batches: Stream) -> None:
    """Train a NeuralEstimator on batches (X, y) that can be read again; see its ``fit_stream``."""
    if one_shot(batches):
        raise TypeError(
            "fit_stream reads the batches more than once: first to learn classes and ranges, then to train; give a "
            "list, a DataLoader, or streaming.Repeated(a function that starts the stream)"
        )
    if estimator.validation_fraction or estimator.patience is not None:
        raise ValueError("fit_stream takes no validation_fraction and no patience; use train() with validation=")
    classify = is_classifier(estimator)
    seen = _together(_look(estimator, batches, classify))
    assert seen.low is not None
    d = len(seen.low)
    seed = check_random_state(estimator.random_state).randint(2**31 - 1)
    learned_from = Repeated(lambda: (_values(X) for X, _ in batches))
    estimator.fair_metric_ = learn_metric(estimator.fair_metric, learned_from, d).to(estimator.device, torch.float32)
    estimator.bounds_ = _bounds(estimator.bounds, seen, estimator.fair_metric_, learned_from)
    if classify:
        estimator.classes_ = np.unique(np.array(list(seen.counts)))
        outputs, mean, scale = len(estimator.classes_), 0.0, 1.0
        if outputs < 2:
            raise ValueError(f"a classifier needs two classes or more; the batches hold {outputs}")
    else:
        outputs, mean = 1, seen.total / seen.rows
        scale = max(seen.squares / seen.rows - mean**2, 0.0) ** 0.5 or 1.0
    estimator.module_ = estimator._new_module(d, outputs, seed).to(estimator.device, torch.float32)
    objective = estimator._objective(torch.Generator(estimator.device).manual_seed(seed + 1)).to(estimator.device)
    weights = _class_weights(estimator, seen) if classify else None

    def tensors() -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        for X, y in batches:
            x = torch.as_tensor(_values(X))
            if weights is None:
                yield x, torch.as_tensor((np.asarray(y, dtype=np.float64) - mean) / scale, dtype=torch.float32), None
                continue
            codes = torch.as_tensor(np.searchsorted(estimator.classes_, np.asarray(y)))
            yield x, codes, weights[codes]

    history = train(
        estimator.module_,
        objective,
        Repeated(tensors),
        steps=estimator.steps,
        batch_size=estimator.batch_size,
        lr=estimator.lr,
        warm_up=estimator.warm_up,
        generator=torch.Generator(estimator.device).manual_seed(seed),
        progress=estimator.progress,
        **estimator._checkpointing(),
    )
    estimator._keep(history, objective)
    if not classify:
        from evenhand.estimators.regressor import _rescaled

        estimator.module_ = _rescaled(estimator.module_, scale, mean)


def _look(estimator: Any, batches: Stream, classify: bool) -> Seen:
    """One pass: the classes or the scale of the target, each column's range; every batch is checked."""
    seen = Seen()
    for item in batches:
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise TypeError(f"a stream must give (X, y) for each batch; got {type(item).__name__}")
        X, y = item
        check_frame(X)
        X = X.numpy() if isinstance(X, Tensor) else X
        values = validate_data(estimator, X, dtype=np.float32, reset=seen.rows == 0)
        target = np.asarray(y)
        if target.shape != (len(values),):
            raise ValueError(f"each batch needs one target per row; got X {values.shape} and y {target.shape}")
        low, high = values.min(axis=0), values.max(axis=0)
        indicator = ((values == 0) | (values == 1)).all(axis=0)
        if seen.low is None or seen.high is None or seen.indicator is None:
            seen.low, seen.high, seen.indicator = low, high, indicator
        seen.low, seen.high = np.minimum(seen.low, low), np.maximum(seen.high, high)
        seen.indicator = seen.indicator & indicator
        seen.rows += len(values)
        if classify:
            for label, count in zip(*np.unique(target, return_counts=True)):
                seen.counts[label] = seen.counts.get(label, 0) + int(count)
        else:
            wide = target.astype(np.float64)
            if not np.isfinite(wide).all():
                raise ValueError("the targets hold NaN or infinite values; clean them first")
            seen.total, seen.squares = seen.total + float(wide.sum()), seen.squares + float((wide**2).sum())
    if seen.rows == 0:
        raise ValueError("the stream gave no batch; is its file or loader empty?")
    return seen


def _together(mine: Seen) -> Seen:
    """What all ranks have seen, each in its own stream."""
    if ranks.world() == 1:
        return mine
    labels = [[getattr(label, "item", lambda label=label: label)(), count] for label, count in mine.counts.items()]
    told = {name: value if not hasattr(value, "tolist") else value.tolist() for name, value in vars(mine).items()}
    everyone = [json.loads(text) for text in ranks.gather_text(json.dumps(told | {"counts": labels}))]
    if len({len(one["low"]) for one in everyone}) > 1:
        raise ValueError(
            f"the streams of the ranks have {[len(one['low']) for one in everyone]} columns; give one kind"
        )
    joint = Seen(
        rows=sum(one["rows"] for one in everyone),
        low=np.min([one["low"] for one in everyone], axis=0).astype(np.float32),
        high=np.max([one["high"] for one in everyone], axis=0).astype(np.float32),
        indicator=np.all([one["indicator"] for one in everyone], axis=0),
        total=sum(one["total"] for one in everyone),
        squares=sum(one["squares"] for one in everyone),
    )
    for one in everyone:
        for label, count in one["counts"]:
            joint.counts[label] = joint.counts.get(label, 0) + count
    return joint


def _bounds(given: Any, seen: Seen, fair_metric: FairMetric, chunks: Stream) -> Box | None:
    """What ``data_bounds`` and ``given_bounds`` say of all batches together; free directions take one more pass."""
    assert seen.low is not None
    assert seen.indicator is not None
    if given is None:
        return None
    if isinstance(given, str):
        if given != "data":
            raise ValueError(f"bounds must be 'data', None or (low, high); got {given!r}")
        low, high = np.where(seen.indicator, 0.0, seen.low), np.where(seen.indicator, 1.0, seen.high)
        box = Box(low, high, binary=np.flatnonzero(seen.indicator).tolist())
        free = box.freed(fair_metric.directions.cpu(), torch.zeros(1, len(low)))
        if not isinstance(free, FreeBox):
            return box
        z_low, z_high = free.free_low + torch.inf, free.free_high - torch.inf
        for chunk in chunks:
            z = torch.as_tensor(chunk, dtype=torch.float64) @ free.free
            z_low, z_high = z_low.minimum(z.amin(0)), z_high.maximum(z.amax(0))
        ends = np.array(ranks.gather([*z_low.tolist(), *z_high.tolist()])).reshape(-1, 2, len(z_low))
        return FreeBox(box, free.free, ends[:, 0].min(0), ends[:, 1].max(0))
    box = Box.of(given, len(seen.low))
    outside = np.flatnonzero((seen.low < box.low.numpy() - 1e-6) | (seen.high > box.high.numpy() + 1e-6)).tolist()
    if outside:
        raise ValueError(f"bounds exclude training rows, in column(s) {outside[:10]}; widen them, or use bounds='data'")
    return box


def _class_weights(estimator: Any, seen: Seen) -> Tensor:
    """Weights that let every class count equally, as the balanced batches of ``fit`` do."""
    counts = np.array([seen.counts[label] for label in estimator.classes_], dtype=np.float64)
    return torch.as_tensor(seen.rows / (len(counts) * counts), dtype=torch.float32)


def _values(X: Any) -> np.ndarray:
    return np.ascontiguousarray(X.numpy() if isinstance(X, Tensor) else X, dtype=np.float32)
