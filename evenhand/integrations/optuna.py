"""The frontier of accuracy and fairness by optuna, for those who search more than rho with it.

    from evenhand.integrations.optuna import FrontierObjective

    study = optuna.create_study(directions=["maximize", "minimize"])
    study.optimize(FrontierObjective(SenSeIClassifier(), X, y, X_validation, y_validation, rho=(0.1, 100)), n_trials=20)

``evenhand.frontier`` sweeps rho by itself, needs no further library and can be resumed; optuna is for more dimensions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from evenhand.audit import audit
from evenhand.evaluation import balanced_accuracy
from evenhand.frames import numbers, plain_table
from evenhand.regularizer import not_negative, number

Suggest = Callable[[Any], Any]  # a trial -> the value of one parameter


class FrontierObjective:
    """A trial is a model: its accuracy and a lower bound of its R(h), both on the validation rows.

    estimator: one with a rho, or a Pipeline that ends in one. rho: the range of rho, searched on a logarithmic scale.
    suggest: other parameters, each a function of the trial, for example
    ``{"lr": lambda trial: trial.suggest_float("lr", 1e-4, 1e-2, log=True)}``; of a Pipeline under the names that its
    ``set_params`` knows. eps: at which models are judged, by default the estimator's. bounds: the possible people when
    models are judged, by default the range of training and validation rows together, as the estimator sees them.
    score: (labels, predictions) -> a number, better larger. sensitive_features: of the training rows, for ``fit``.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        X_validation: Any,
        y_validation: Any,
        *,
        rho: tuple[float, float] = (0.1, 100.0),
        suggest: Mapping[str, Suggest] | None = None,
        eps: float | None = None,
        bounds: Any = None,
        score: Callable[[Any, Any], float] = balanced_accuracy,
        sensitive_features: Any = None,
    ) -> None:
        self.prefix, last = _last_step(estimator)
        self.estimator, self.score, self.suggest, self.bounds = estimator, score, dict(suggest or {}), bounds
        self.train, self.validation = (plain_table(X), y), (plain_table(X_validation, "X_validation"), y_validation)
        self.rho = _positive_range(rho)
        eps = eps if eps is not None else getattr(last, "eps", None)
        if eps is None:
            raise ValueError(f"eps is needed, at which models are judged: {type(last).__name__} has none of its own")
        self.eps = not_negative("eps", eps, "the mean fair distance at which models are judged")
        self.given = {} if sensitive_features is None else {f"{self.prefix}sensitive_features": sensitive_features}
        if self.given and "sensitive_features" not in inspect.signature(last.fit).parameters:
            raise ValueError(f"{type(last).__name__} is not fitted with sensitive_features; leave them out")

    def __call__(self, trial: Any) -> tuple[float, float]:
        chosen = {f"{self.prefix}rho": trial.suggest_float("rho", *self.rho, log=True)}
        chosen |= {name: value(trial) for name, value in self.suggest.items()}
        model = clone(self.estimator).set_params(**chosen).fit(*self.train, **self.given)
        x, y = self.validation
        bounds = self.bounds if self.bounds is not None else self._range(model)
        found = audit(model, x, _last_step(model)[1].fair_metric_, self.eps, bounds, per_person=False)
        return float(self.score(y, model.predict(x))), found.r_low

    def _range(self, model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of the columns that the estimator is given."""
        tables = [self.train[0], self.validation[0]]
        if isinstance(model, Pipeline) and len(model) > 1:
            tables = [model[:-1].transform(table) for table in tables]
        rows = np.concatenate([numbers(table, "X") for table in tables])
        return rows.min(0), rows.max(0)


def _last_step(estimator: Any) -> tuple[str, Any]:
    """What goes before the parameters of the estimator at the end of a Pipeline, and that estimator."""
    prefix, last = "", estimator
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    if not hasattr(last, "get_params") or "rho" not in last.get_params(deep=False):
        raise TypeError(
            f"estimator must be one with a rho, such as SenSeIClassifier(), or a Pipeline that ends in one; got "
            f"{type(last).__name__}"
        )
    return prefix, last


def _positive_range(rho: Any) -> tuple[float, float]:
    low, high = map(number, rho) if isinstance(rho, tuple | list) and len(rho) == 2 else (np.nan, np.nan)
    if not 0 < low <= high < np.inf:
        raise ValueError(f"rho must be a range (low, high) of positive numbers, such as (0.1, 100); got {rho!r}")
    return low, high
