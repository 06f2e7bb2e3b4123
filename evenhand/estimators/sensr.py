"""SenSR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from evenhand.estimators.base import ModuleFactory, NeuralClassifier, NeuralEstimator
from evenhand.estimators.regressor import NeuralRegressor
from evenhand.fair_metrics.metric import FairMetric
from evenhand.objectives.batch import Loss, Objective, squared_loss
from evenhand.objectives.sensr import SenSR
from evenhand.regularizer import LamRule, PricedSearch, ratio_rule
from evenhand.search.worst_cases import Search


class SenSRMethod(NeuralEstimator):
    """Parameters and objective of SenSR, for classes and for numbers."""

    _loss: Loss | None = None

    def __init__(
        self,
        fair_metric: FairMetric | Callable[[Any], FairMetric] | None = None,
        hidden: tuple[int, ...] = (100,),
        eps: float = 0.1,
        bounds: Any = "data",
        random_state: Any = None,
        *,
        module: nn.Module | ModuleFactory | None = None,
        search: Search | None = None,
        lam: float = 2.0,
        lam_rule: LamRule | None = None,
        warm_up: float = 0.0,
        quiet_start: bool = False,
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
        rule = self.lam_rule if self.lam_rule is not None else ratio_rule()
        priced_search = PricedSearch(
            self.fair_metric_, self.eps, self.bounds_, self.search, rule, self.lam, search_generator
        )
        return SenSR(priced_search, self._loss)


class SenSRClassifier(SenSRMethod, NeuralClassifier):
    """Distributionally robust training: the loss on the worst case of each individual (Yurochkin et al. 2020).

    eps is its only trade-off parameter; the other parameters are those of ``SenSeIClassifier``.
    """


class SenSRRegressor(SenSRMethod, NeuralRegressor):
    """SenSR for numbers: the squared error on the worst case of each individual; parameters of ``SenSRClassifier``."""

    _loss = staticmethod(squared_loss)
