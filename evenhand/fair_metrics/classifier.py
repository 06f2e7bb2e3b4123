"""Sensitive coordinates and the directions that give them away: columns + regression coefficients (Adult)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge

from evenhand.fair_metrics.columns import Column, column_names, column_positions, coordinate_directions, width
from evenhand.fair_metrics.metric import FairMetric


@dataclass(frozen=True)
class AttributeModel:
    """The inner model that predicts one sensitive attribute, and the directions it contributed."""

    name: str
    estimator: Any  # fitted LogisticRegression or Ridge
    used: tuple[int, ...]  # positions of the columns it was fitted on
    directions: np.ndarray  # (d, number of directions), zero at the columns that were left out

    def __str__(self) -> str:
        kind, k = type(self.estimator).__name__, self.directions.shape[1]
        return f"{self.name}: {kind} on {len(self.used)} columns, {k} directions"


def from_classifier(
    X: Any,
    columns: Sequence[Column] = (),
    predict: Sequence[Column] | Mapping[str, Any] | None = None,
    *,
    classifier: Any = None,
    regressor: Any = None,
    l2: float = 0.1,
    both_weight_columns: bool = False,
) -> FairMetric:
    """The metric of the paper's Adult experiment: sensitive columns and what predicts them cost nothing.

    ``columns`` are free by themselves. Each attribute of ``predict`` adds the coefficients of a model that predicts it
    from the other columns: logistic regression for a binary attribute, softmax regression for several categories,
    ridge regression for a number. ``predict`` names columns of X, or maps a name to the attribute's values when it
    lives outside X; None predicts every one of ``columns``. The inner models minimise the mean loss plus
    l2/2 |w|^2, with the paper's l2; ``classifier`` and ``regressor`` replace them (any scikit-learn estimator with
    ``coef_``). The fitted models are in ``metric.attribute_models``.

    ``both_weight_columns`` keeps, for a binary attribute, the two weight columns that a softmax regression would have,
    as in the authors' code, where the second one is residue of the optimiser: see docs/differences-from-paper.md.
    """
    values = _finite_array(X)
    attributes = _attributes(X, values, columns if predict is None else predict)
    n = len(values)
    classifier = classifier if classifier is not None else LogisticRegression(C=1 / (l2 * n), max_iter=2000)
    regressor = regressor if regressor is not None else Ridge(alpha=l2 * n)
    models = [_fit(values, name, target, left_out, classifier, regressor) for name, target, left_out in attributes]
    parts = [coordinate_directions(X, columns).numpy()] if len(columns) else []
    parts += [model.directions for model in models]
    if both_weight_columns:
        parts += [_residue(model) for model in models if model.directions.shape[1] == 1]
    if not parts:
        raise ValueError("name at least one sensitive column in columns= or predict=")
    metric = FairMetric(torch.as_tensor(np.concatenate(parts, axis=1), dtype=torch.float32))
    metric.attribute_models = tuple(models)
    return metric


def _finite_array(X: Any) -> np.ndarray:
    width(X)
    try:
        values = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the metric is learned from numbers; encode the categorical columns first ({error})"
        ) from error
    if values.shape[0] == 0:
        raise ValueError("X has no rows; the metric cannot be learned from an empty frame")
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values).all(axis=0))
        names = column_names(X)
        raise ValueError(f"X holds NaN or infinite values in column(s) {[names[i] if names else int(i) for i in bad]}")
    return values


def _attributes(
    X: Any, values: np.ndarray, predict: Sequence[Column] | Mapping[str, Any]
) -> list[tuple[str, np.ndarray, list[int]]]:
    """(name, target, positions to leave out) of each attribute to predict."""
    if isinstance(predict, Mapping):
        return [(str(name), _target(name, given, len(values)), []) for name, given in predict.items()]
    found = []
    for column in [predict] if isinstance(predict, str | int) else predict:
        positions = column_positions(X, [column])
        block = values[:, positions]
        if block.shape[1] > 1:  # a one-hot block: the attribute is its category, an all-zero row a category of its own
            target = np.where(block.any(axis=1), block.argmax(axis=1), -1)
        else:
            target = block[:, 0]
        found.append((str(column), target, positions))
    return found


def _target(name: str, given: Any, n: int) -> np.ndarray:
    target = np.asarray(given)
    if target.shape != (n,):
        raise ValueError(f"sensitive attribute {name!r} must have one value per row, ({n},); got {target.shape}")
    missing = np.array([v is None or v != v for v in target.tolist()])
    if missing.any():
        rows = np.flatnonzero(missing)
        raise ValueError(
            f"sensitive attribute {name!r} is missing in {missing.sum()} of {n} rows (first: {rows[:5].tolist()}); "
            "drop these rows or give the attribute a category of its own"
        )
    return target


def _fit(
    values: np.ndarray, name: str, target: np.ndarray, left_out: list[int], classifier: Any, regressor: Any
) -> AttributeModel:
    used = [i for i in range(values.shape[1]) if i not in set(left_out)]
    distinct = np.unique(target)
    if len(distinct) < 2:
        raise ValueError(f"sensitive attribute {name!r} has the single value {distinct[0]!r}: nothing to predict")
    if not used:
        raise ValueError(f"no column is left to predict {name!r} from")
    numeric = np.issubdtype(target.dtype, np.floating) and (
        len(distinct) > 20 or not np.all(distinct == distinct.round())
    )
    inner = clone(regressor if numeric else classifier)
    if target.dtype == object:
        target = target.astype(str)
    inner.fit(values[:, used], target)
    coefficients = np.atleast_2d(inner.coef_)
    directions = np.zeros((values.shape[1], len(coefficients)))
    directions[used] = coefficients.T
    return AttributeModel(name, inner, tuple(used), directions)


def _residue(model: AttributeModel) -> np.ndarray:
    """The fourth direction of the authors' code.

    Both weight columns (w0, w1) of a softmax regression are projected out there. Their difference is the logistic
    direction; their sum gets no gradient from the data, so it is what is left of the random initial weights.
    """
    residue = np.zeros((model.directions.shape[0], 1))
    residue[list(model.used), 0] = np.random.default_rng(0).normal(size=len(model.used))
    return residue
