"""The frontier of accuracy and fairness by optuna, for those who search more than rho with it.

    from evenhand.integrations.optuna import FrontierObjective

    study = optuna.create_study(directions=["maximize", "minimize"])
    study.optimize(FrontierObjective(SenSeIClassifier(), X, y, X_validation, y_validation, rho=(0.1, 100)), n_trials=20)

``evenhand.frontier`` sweeps rho by itself, needs no further library and can be resumed; optuna is for more dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from evenhand.audit import audit
from evenhand.evaluation import balanced_accuracy

Suggest = Callable[[Any], Any]  # a trial -> the value of one parameter


class FrontierObjective:
    """A trial is a model: its accuracy and a lower bound of its R(h), both on the validation rows.

    rho: the range of rho, searched on a logarithmic scale. suggest: other parameters, each a function of the trial, for
    example ``{"lr": lambda trial: trial.suggest_float("lr", 1e-4, 1e-2, log=True)}``. eps: at which models are judged,
    by default the estimator's. bounds: the possible people when models are judged, by default the range of training and
    validation rows together. score: (labels, predictions) -> a number, better larger.
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
    ) -> None:
        low, high = rho
        if not 0 < low <= high:
            raise ValueError(f"rho must be a range (low, high) of positive numbers, got {rho}")
        self.estimator, self.train, self.validation = estimator, (X, y), (X_validation, y_validation)
        self.rho, self.suggest, self.score = (low, high), dict(suggest or {}), score
        self.eps = float(eps if eps is not None else estimator.eps)
        self.bounds = bounds if bounds is not None else _range(X, X_validation)

    def __call__(self, trial: Any) -> tuple[float, float]:
        chosen = {"rho": trial.suggest_float("rho", *self.rho, log=True)}
        chosen |= {name: value(trial) for name, value in self.suggest.items()}
        model = clone(self.estimator).set_params(**chosen).fit(*self.train)
        x, y = self.validation
        found = audit(model, x, model.fair_metric_, self.eps, self.bounds, per_person=False)
        return float(self.score(y, model.predict(x))), found.r_low


def _range(*tables: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rows = np.concatenate([np.asarray(table, dtype=np.float64) for table in tables])
    return rows.min(0), rows.max(0)
