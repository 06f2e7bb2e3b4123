"""The two scores of a sweep: how good a model is, and how unfair. Both are called as ``score(estimator, X, y)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import r2_score

from evenhand.audit import audit
from evenhand.domain import Box
from evenhand.estimators.inputs import data_bounds
from evenhand.evaluation import balanced_accuracy
from evenhand.fair_metrics.metric import FairMetric
from evenhand.judged import Judged
from evenhand.output_distances import OutputDistance, mean_squared_logits, squared_error


def accuracy(estimator: Any, X: Any, y: Any) -> float:
    """Balanced accuracy of a classifier, R2 of a regressor."""
    if is_classifier(estimator):
        return balanced_accuracy(y, estimator.predict(X))
    return float(r2_score(y, estimator.predict(X)))


@dataclass(frozen=True)
class SearchedUnfairness:
    """R(h) as the audit finds it, a lower bound: the chart of a sweep and the audit of its choice have one axis.

    The same eps, metric and bounds for every model of a sweep, whatever the model was trained with. Without
    ``fair_metric`` the fitted estimator's own is used, without ``bounds`` its own, or the range of the data; people
    outside the bounds are left out. ``rows`` limits the cost: the first so many rows of the validation data.
    ``relative`` divides by how differently strangers are treated, so that squeezing the outputs gains nothing; where
    strangers are treated alike that is undefined (NaN).
    """

    eps: float = 0.1
    fair_metric: FairMetric | None = None
    bounds: Any = None
    output_distance: OutputDistance | None = None  # by default the paper's, or the squared error of a regressor
    rows: int = 1000
    relative: bool = False

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        metric = self.fair_metric if self.fair_metric is not None else getattr(estimator, "fair_metric_", None)
        if metric is None:
            raise ValueError("this estimator has no fair_metric_; give SearchedUnfairness(fair_metric=...) one")
        x = X.iloc[: self.rows] if hasattr(X, "iloc") else np.asarray(X)[: self.rows]
        encoded = Judged.of(estimator).encode(x)
        if self.bounds is not None:
            box = Box.of(self.bounds, encoded.shape[1])
        else:  # free along the metric that measures, whatever the model was trained with
            drawn = getattr(estimator, "bounds_", None) or data_bounds(encoded)
            box = drawn.freed(metric.directions.cpu(), encoded)
        inside = box.contains(encoded).numpy()
        if not inside.any():
            raise ValueError(f"all {len(encoded)} validation rows lie outside the bounds; widen them")
        distance = self.output_distance or (mean_squared_logits if is_classifier(estimator) else squared_error)
        kept = x[inside]
        found = audit(estimator, kept, metric, self.eps, box, output_distance=distance, keep=1)
        if not self.relative:
            return found.r_low
        return found.relative.low if found.relative is not None else float("nan")
