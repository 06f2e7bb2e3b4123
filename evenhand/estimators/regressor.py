"""SenSeI for numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, validate_data
from torch import nn

from evenhand.estimators.base import ModuleFactory, NeuralEstimator, select_rows
from evenhand.estimators.inputs import check_frame
from evenhand.fair_metrics.metric import FairMetric
from evenhand.objectives.batch import Objective, squared_loss
from evenhand.objectives.sensei import SenSeI
from evenhand.output_distances import squared_error
from evenhand.regularizer import FairRegularizer, LamRule, gradient_rule
from evenhand.search.worst_cases import Search


class NeuralRegressor(RegressorMixin, NeuralEstimator):  # type: ignore[misc]
    """Regression: targets are standardised for training, ``module_`` gives predictions in the original unit, (n, 1)."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on X (numbers; frame or array) and numeric targets."""
        check_frame(X)
        values, target = validate_data(self, X, y, dtype=np.float32, order="C", y_numeric=True)
        target = target.astype(np.float64)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, values, dtype=np.float64)
        if weight is not None:
            kept = weight > 0
            X, values, target, weight = select_rows(X, kept), values[kept], target[kept], weight[kept]
        mean = np.average(target, weights=weight)
        scale = np.sqrt(np.average((target - mean) ** 2, weights=weight)) or 1.0
        x = torch.as_tensor(values, device=self.device)
        standard = torch.as_tensor((target - mean) / scale, dtype=torch.float32, device=self.device)
        w = None if weight is None else torch.as_tensor(weight, device=self.device)
        self._fit(X, x, standard, 1, w, balanced=False)
        self.module_ = _rescaled(self.module_, float(scale), float(mean))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The predicted number of each row."""
        return self._outputs(X)[:, 0]


class SenSeIRegressor(NeuralRegressor):
    """A regressor that treats similar people similarly: squared error + rho * R(h).

    Targets are standardised for training, so that rho means the same whatever their unit; ``module_`` gives
    predictions in the original unit, (n, 1). Parameters as for ``SenSeIClassifier``.
    """

    def __init__(
        self,
        fair_metric: FairMetric | Callable[[Any], FairMetric] | None = None,
        hidden: tuple[int, ...] = (100,),
        rho: float = 5.0,
        eps: float = 0.1,
        bounds: Any = "data",
        random_state: Any = None,
        *,
        module: nn.Module | ModuleFactory | None = None,
        search: Search | None = None,
        lam: float = 0.1,
        lam_rule: LamRule | None = None,
        warm_up: float = 0.0,
        quiet_start: bool = True,
        steps: int = 1000,
        batch_size: int = 500,
        lr: float = 2e-3,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        device: str = "cpu",
        progress: bool = False,
    ) -> None:
        self.fair_metric = fair_metric
        self.hidden = hidden
        self.rho = rho
        self.eps = eps
        self.bounds = bounds
        self.random_state = random_state
        self.module = module
        self.search = search
        self.lam = lam
        self.lam_rule = lam_rule
        self.warm_up = warm_up
        self.quiet_start = quiet_start
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.progress = progress

    def _objective(self, search_generator: torch.Generator) -> Objective:
        regularizer = FairRegularizer(
            self.fair_metric_,
            eps=self.eps,
            bounds=self.bounds_,
            output_distance=squared_error,
            search=self.search,
            lam_rule=self.lam_rule if self.lam_rule is not None else gradient_rule(self.lr * self.rho),
            lam=self.lam,
            generator=search_generator,
        )
        return SenSeI(regularizer, self.rho, squared_loss)


def _rescaled(module: nn.Module, scale: float, mean: float) -> nn.Module:
    """The module with its output in the original unit: folded into the last linear layer where there is one."""
    last = module[-1] if isinstance(module, nn.Sequential) else None
    with torch.no_grad():
        if isinstance(last, nn.Linear) and last.bias is not None:
            last.weight.mul_(scale)
            last.bias.mul_(scale).add_(mean)
            return module
        p = next(module.parameters())
        affine = nn.Linear(1, 1, device=p.device, dtype=p.dtype)
        affine.weight.fill_(scale)
        affine.bias.fill_(mean)
        return nn.Sequential(module, affine).eval()
