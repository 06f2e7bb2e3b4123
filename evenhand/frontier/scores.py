"""The two scores of a sweep: how good a model is, and how unfair. Both are called as ``score(estimator, X, y)``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.metrics import r2_score

from evenhand.estimators.inputs import data_bounds
from evenhand.evaluation import balanced_accuracy
from evenhand.fair_metrics.metric import FairMetric
from evenhand.output_distances import OutputDistance, mean_squared_logits, squared_error
from evenhand.search.gradient import GradientSearch
from evenhand.search.worst_cases import DistanceGain


def accuracy(estimator: Any, X: Any, y: Any) -> float:
    """Balanced accuracy of a classifier, R2 of a regressor."""
    if is_classifier(estimator):
        return balanced_accuracy(y, estimator.predict(X))
    return float(r2_score(y, estimator.predict(X)))


@dataclass(frozen=True)
class SearchedUnfairness:
    """The largest mean d_Y that a search finds within a mean fair distance of eps: a lower bound on R(h).

    The same eps, metric, bounds and search for every model of a sweep, whatever the model was trained with. Without
    ``fair_metric`` the fitted estimator's own is used, without ``bounds`` its own, or the range of the data.
    ``rows`` limits the cost: the first so many rows of the validation data.
    """

    eps: float = 0.1
    fair_metric: FairMetric | None = None
    bounds: Any = None
    output_distance: OutputDistance | None = None  # by default the paper's, or the squared error of a regressor
    search: GradientSearch = field(default_factory=lambda: GradientSearch(subspace_steps=10, full_steps=10, starts=4))
    rows: int = 1000
    prices: int = 8  # values of lam that are tried

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        metric = self.fair_metric if self.fair_metric is not None else getattr(estimator, "fair_metric_", None)
        if metric is None:
            raise ValueError("this estimator has no fair_metric_; give SearchedUnfairness(fair_metric=...) one")
        model = estimator.module_
        p = next(model.parameters())
        x = torch.as_tensor(np.asarray(X, dtype=np.float32)[: self.rows], dtype=p.dtype, device=p.device)
        bounds = self.bounds
        if bounds is None:  # free along the metric that measures, whatever the model was trained with
            drawn = getattr(estimator, "bounds_", None) or data_bounds(x)
            bounds = drawn.freed(metric.directions.cpu(), x.cpu())
        distance = self.output_distance or (mean_squared_logits if is_classifier(estimator) else squared_error)
        return self.value(model, x, metric, bounds, distance)

    def value(self, model: Any, x: torch.Tensor, metric: FairMetric, bounds: Any, distance: OutputDistance) -> float:
        """max over the prices lam tried of mean d_Y, among searches whose mean d_X stays within eps."""
        with torch.no_grad():
            gain = DistanceGain(model(x), distance)

        def found(lam: float) -> tuple[float, float]:
            generator = torch.Generator(x.device).manual_seed(0)
            result = self.search(model, gain, x, metric, lam, bounds, generator)
            return float(result.d_x.mean()), float(result.gain.mean())

        best = found(float("inf"))[1]  # moves that cost nothing are always within eps
        if self.eps == 0:
            return best
        low, high = -6.0, 6.0  # log10 of lam; the larger the price, the shorter the way
        for _ in range(self.prices):
            middle = (low + high) / 2
            d_x, d_y = found(10.0**middle)
            if d_x <= self.eps:
                best, high = max(best, d_y), middle
            else:
                best, low = max(best, d_y * self.eps / d_x), middle  # so large a share of the rows may move
        return best
