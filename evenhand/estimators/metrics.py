"""Fair metrics as scikit-learn estimators: in a grid, refitted in every fold, or as a step in front of any model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.estimators.base import parameters
from evenhand.estimators.inputs import checked_sensitive, checked_weight, named, select_rows, tensor_of
from evenhand.fair_metrics.classifier import from_classifier, from_classifier_stream
from evenhand.fair_metrics.columns import Column, from_columns
from evenhand.fair_metrics.metric import FairMetric
from evenhand.frames import checked_table


class MetricLearner(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """``fit`` learns ``fair_metric_``, ``transform`` removes its sensitive directions from X: the paper's Project, in
    front of any model. As ``fair_metric=`` of a classifier its parameters can be searched: ``fair_metric__l2``.
    """

    def fit(self, X: Any, y: Any = None, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Learn the metric from X, and from sensitive features that are no columns of X; y is not used."""
        X = checked_table(X)
        values = validate_data(self, X, dtype=np.float64)
        table = X if hasattr(X, "columns") else values  # with its names where it has them
        weight = checked_weight(sample_weight, len(values))
        kept = np.ones(len(values), dtype=bool) if weight is None else weight > 0
        if not kept.all():
            table, sensitive_features = select_rows(table, kept), checked_sensitive(sensitive_features, kept)
        taught = {} if sensitive_features is None else named(sensitive_features)
        self.fair_metric_ = self._learn(table, taught, None if weight is None else weight[kept])
        return self

    def fit_stream(self, chunks: Iterable[Any]) -> Self:
        """Learn the metric from chunks of X, frames or arrays, that can be read again; see ``fit_stream`` of models."""
        first = next(iter(chunks), None)
        if first is None:
            raise ValueError("there are no chunks, so there is nothing to learn from")
        validate_data(self, checked_table(first), dtype=np.float64)
        self.fair_metric_ = self._learn_stream(chunks, first)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """X without its part along the sensitive directions."""
        check_is_fitted(self, "fair_metric_")
        values = validate_data(self, checked_table(X), dtype=np.float64, reset=False)
        x = tensor_of(values)
        projected: np.ndarray = self.fair_metric_.matching(x).project(x).numpy()
        return projected

    def _learn(self, X: Any, taught: dict[str, np.ndarray], weight: np.ndarray | None) -> FairMetric:
        raise NotImplementedError

    def _learn_stream(self, chunks: Iterable[Any], first: Any) -> FairMetric:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@parameters()
class ColumnsMetric(MetricLearner):
    """Changing the given columns of X costs nothing; see ``fair_metrics.from_columns``. Columns have names only where X
    is a frame; inside scikit-learn's bagging and AdaBoost it is an array, and they are given by position.
    """

    columns: Sequence[Column] = field(default=(), kw_only=False)

    def _learn(self, X: Any, taught: dict[str, np.ndarray], weight: np.ndarray | None) -> FairMetric:
        if taught:
            raise ValueError("ColumnsMetric learns from no sensitive_features; use ClassifierMetric")
        return from_columns(X, self.columns) if len(self.columns) else FairMetric.euclidean(X.shape[1])

    def _learn_stream(self, chunks: Iterable[Any], first: Any) -> FairMetric:
        return self._learn(first, {}, None)  # the columns are all that it takes


@parameters()
class ClassifierMetric(MetricLearner):
    """Sensitive columns, and the directions by which a regression predicts sensitive attributes, cost nothing; see
    ``fair_metrics.from_classifier``. The attributes are columns of X (``attributes``, by default ``columns``) and the
    ``sensitive_features`` given to ``fit``. By position where names get lost, see ``ColumnsMetric``.
    """

    columns: Sequence[Column] = field(default=(), kw_only=False)
    attributes: Sequence[Column] | None = None
    l2: float | Sequence[float] | None = None
    classifier: Any = None
    regressor: Any = None

    def _learn(self, X: Any, taught: dict[str, np.ndarray], weight: np.ndarray | None) -> FairMetric:
        inner = {"l2": self.l2, "classifier": self.classifier, "regressor": self.regressor, "sample_weight": weight}
        own = self.columns if self.attributes is None else self.attributes
        parts = [from_classifier(X, self.columns, own, **inner)] if len(self.columns) or len(own) else []
        parts += [from_classifier(X, predict=taught, **inner)] if taught else []
        if not parts:
            return FairMetric.euclidean(X.shape[1])
        if len(parts) == 1:
            return parts[0]
        joint = FairMetric(torch.cat([part.directions for part in parts], dim=1))
        joint.attribute_models = tuple(model for part in parts for model in part.attribute_models)
        return joint

    def _learn_stream(self, chunks: Iterable[Any], first: Any) -> FairMetric:
        if self.classifier is not None or self.regressor is not None:
            raise ValueError(
                "classifier= and regressor= learn from a table in memory, and a stream is none; leave them out"
            )
        own = self.columns if self.attributes is None else self.attributes
        if not len(self.columns) and not len(own):
            return FairMetric.euclidean(first.shape[1])
        return from_classifier_stream(chunks, self.columns, own, l2=self.l2)
