"""Metric learners for data larger than memory: one pass for FACE, a few for the classifier metric."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from evenhand.fair_metrics.classifier import AttributeModel
from evenhand.fair_metrics.columns import Column, column_positions, coordinate_directions
from evenhand.fair_metrics.metric import FairMetric
from evenhand.variations import Variations


def face_stream(chunks: Iterable[Variations], k: int) -> FairMetric:
    """``face`` of all chunks together, from one pass and a (d, d) matrix: the scatter of versions about their means.

    >>> import numpy as np
    >>> swapped = Variations(np.array([[[0.0, 1.0], [2.0, 1.0]], [[1.0, 5.0], [-3.0, 5.0]]]), rows=[0, 1])
    >>> abs(face_stream([swapped, swapped], k=1).directions.ravel())
    tensor([1., 0.], dtype=torch.float64)
    """
    scatter, largest, dtype = None, 0.0, np.dtype(np.float64)
    for chunk in chunks:
        values = np.asarray(chunk.values)
        if len(values) == 0:
            continue
        if values.ndim != 3 or values.dtype.kind not in "fiu":
            raise ValueError(
                f"expected vectors (individuals, versions, features), got {values.dtype} of shape {values.shape}; "
                "encode texts first: variations.map(embed)"
            )
        if not np.isfinite(values).all():
            raise ValueError("the vectors hold NaN or infinite values; clean them first")
        if scatter is None:
            scatter = np.zeros((values.shape[2], values.shape[2]))
            dtype = values.dtype if values.dtype in (np.float32, np.float64) else dtype
        if values.shape[2] != len(scatter):
            raise ValueError(f"every chunk must have {len(scatter)} features; one has {values.shape[2]}")
        wide = values.astype(np.float64)
        largest = max(largest, float(np.abs(wide).max()))
        centred = (wide - wide.mean(axis=1, keepdims=True)).reshape(-1, values.shape[2])
        scatter += centred.T @ centred
    if scatter is None:
        raise ValueError("there is nobody with versions, so there is nothing to learn from; are the chunks empty?")
    d = len(scatter)
    if not 1 <= k < d:
        raise ValueError(f"k must be at least 1 and less than the {d} features, got {k}")
    squares, vectors = np.linalg.eigh(scatter)
    singular = np.sqrt(squares[::-1].clip(min=0))
    rank = int((singular > 1e-7 * max(float(singular[0]), largest)).sum())
    if k > rank:
        raise ValueError(
            f"k is {k}, but the versions differ in only {rank} directions; use k <= {rank}, or more chunks"
        )
    return FairMetric(vectors[:, ::-1][:, :k].astype(dtype))


@dataclass(frozen=True)
class StreamedRegression:
    """A logistic (or softmax) regression fitted chunk by chunk; the names are scikit-learn's."""

    coef_: np.ndarray  # (1 or C, number of columns used)
    intercept_: np.ndarray
    classes_: np.ndarray
    passes_: int


def from_classifier_stream(
    chunks: Iterable[Any],
    columns: Sequence[Column] = (),
    predict: Sequence[Column] | None = None,
    *,
    l2: float = 0.1,
    max_passes: int = 50,
) -> FairMetric:
    """``from_classifier`` for chunks of X (frames or arrays) that can be read again: a list, ``streaming.Repeated``.

    Each pass adds up the gradient and the Hessian of the mean loss plus l2/2 |w|^2 over the chunks, then takes one
    Newton step, so that memory does not grow with the rows and the result is that of the whole data.
    """
    if isinstance(chunks, Iterator):
        raise TypeError("the chunks are read several times; give a list, or streaming.Repeated(a function that starts)")
    first = next(iter(chunks), None)
    if first is None:
        raise ValueError("there are no chunks, so there is nothing to learn from")
    names = list(columns if predict is None else predict)
    models = [_fit(chunks, first, name, l2, max_passes) for name in names]
    parts = [coordinate_directions(first, columns).numpy()] if len(columns) else []
    parts += [model.directions for model in models]
    if not parts:
        raise ValueError("name at least one sensitive column in columns= or predict=")
    metric = FairMetric(torch.as_tensor(np.concatenate(parts, axis=1), dtype=torch.float32))
    metric.attribute_models = tuple(models)
    return metric


def _fit(chunks: Iterable[Any], first: Any, name: Column, l2: float, max_passes: int) -> AttributeModel:
    left_out = column_positions(first, [name])
    d = np.shape(first)[1]
    used = [i for i in range(d) if i not in set(left_out)]
    if not used:
        raise ValueError(f"no column is left to predict {name!r} from")

    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for chunk in chunks:
            values = np.asarray(chunk, dtype=np.float64)
            if not np.isfinite(values).all():
                raise ValueError(f"a chunk holds NaN or infinite values; clean them before predicting {name!r}")
            block = values[:, left_out]
            one_hot = np.where(block.any(axis=1), block.argmax(axis=1), -1) if len(left_out) > 1 else block[:, 0]
            yield np.concatenate([values[:, used], np.ones((len(values), 1))], axis=1), one_hot

    seen = np.unique(np.concatenate([np.unique(target) for _, target in pieces()]))
    if len(seen) < 2:
        raise ValueError(f"sensitive attribute {name!r} has the single value {seen[0]!r}: nothing to predict")
    if len(seen) > 50:
        raise ValueError(f"sensitive attribute {name!r} has {len(seen)} values; streaming predicts categories only")
    weights, passes = _newton(pieces, seen, len(used), l2, max_passes)
    if len(seen) == 2:  # scikit-learn's single row: the second class against the first
        weights = weights[1:] - weights[:1]
    directions = np.zeros((d, len(weights)))
    directions[used] = weights[:, :-1].T
    model = StreamedRegression(weights[:, :-1], weights[:, -1], seen, passes)
    return AttributeModel(str(name), model, tuple(used), directions)


def _newton(pieces: Any, classes: np.ndarray, d: int, l2: float, max_passes: int) -> tuple[np.ndarray, int]:
    """Weights (C, d + 1) of a softmax regression. For two classes the first is held at zero: logistic regression."""
    c, free = len(classes), len(classes) if len(classes) > 2 else 1
    penalty = np.tile(np.append(np.full(d, l2), 0.0), free)
    move: Any = np.zeros(free * (d + 1))
    w, kept, loss_kept = move, move, np.inf
    passes = 0
    while passes < max_passes:
        passes += 1
        loss, slope, curvature, n = 0.0, np.zeros((free, d + 1)), np.zeros((free, d + 1, free, d + 1)), 0
        full = np.concatenate([np.zeros((c - free, d + 1)), w.reshape(free, d + 1)])
        for x, target in pieces():
            logits = x @ full.T
            logits -= logits.max(axis=1, keepdims=True)
            p = np.exp(logits)
            total = p.sum(axis=1, keepdims=True)
            place = np.searchsorted(classes, target)
            loss += float((np.log(total[:, 0]) - logits[np.arange(len(x)), place]).sum())
            p = (p / total)[:, c - free :]
            error = p - (place[:, None] == np.arange(c - free, c))
            slope += error.T @ x
            for i in range(free):
                for j in range(i, free):
                    block = x.T @ ((p[:, i] * ((i == j) - p[:, j]))[:, None] * x)
                    curvature[i, :, j] += block
                    if i != j:
                        curvature[j, :, i] += block
            n += len(x)
        loss = loss / n + 0.5 * float(penalty @ w**2)
        if loss > loss_kept + 1e-12 * abs(loss_kept):  # too far: half the way
            move = move / 2
            w = kept + move
            continue
        gradient = slope.ravel() / n + penalty * w
        kept, loss_kept = w, loss
        if np.abs(gradient).max() < 1e-9:
            break
        size = free * (d + 1)
        hessian = curvature.reshape(size, size) / n + np.diag(penalty)
        move = -np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
        w = kept + move
        if np.abs(move).max() < 1e-10 * (1 + np.abs(kept).max()):
            break
    else:
        warnings.warn(f"the regression still improves after {max_passes} passes; raise max_passes", stacklevel=4)
    return np.concatenate([np.zeros((c - free, d + 1)), kept.reshape(free, d + 1)]), passes
