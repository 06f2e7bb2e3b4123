"""SenSeI, the method of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn

from evenhand.estimators.base import ModuleFactory, NeuralClassifier
from evenhand.fair_metrics.metric import FairMetric
from evenhand.objectives.batch import Objective
from evenhand.objectives.certified import certified_fine_tune
from evenhand.objectives.sensei import SenSeI
from evenhand.output_distances import OutputDistance, mean_squared_logits
from evenhand.regularizer import FairRegularizer, LamRule, gradient_rule
from evenhand.search.worst_cases import Search


class SenSeIClassifier(NeuralClassifier):
    """A classifier that treats similar people similarly: loss + rho * R(h).

    fair_metric: who is similar; a ``FairMetric``, a function of X that learns one (refitted in every fold of a
        cross-validation), or None for the Euclidean distance. hidden: widths of the hidden layers, or ``module`` for a
        network of one's own. rho weighs fairness against accuracy; eps is the mean fair distance within which people
        count as similar. bounds: the box that inputs live in, by default the range of the training data; None is the
        paper's unbounded space. lam and lam_rule: the dual variable's start and its rule, by default Algorithm 1.
        quiet_start: the first layer starts small and without a response to the sensitive directions, so that training
        need not unlearn random weights, which rare columns would keep; False is the paper's start, and a ``module`` of
        one's own starts as it is.
    Fitted: ``module_`` (gives logits), ``classes_``, ``fair_metric_``, ``bounds_``, ``lam_``, ``history_``.
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
        output_distance: OutputDistance = mean_squared_logits,
        lam: float = 0.1,
        lam_rule: LamRule | None = None,
        warm_up: float = 0.0,
        quiet_start: bool = True,
        certified: float | None = None,
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
        self.output_distance = output_distance
        self.lam = lam
        self.lam_rule = lam_rule
        self.warm_up = warm_up
        self.quiet_start = quiet_start
        self.certified = certified
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.progress = progress

    def _fit(self, X: Any, x: Tensor, y: Tensor, n_outputs: int, weight: Tensor | None, balanced: bool) -> Self:
        self.__dict__.pop("multipliers_", None)  # those of an earlier fit belong to other weights
        super()._fit(X, x, y, n_outputs, weight, balanced)
        if self.certified is not None:
            if weight is not None or self.bounds_ is None:
                raise ValueError("certified fine-tuning needs bounds and takes no sample_weight; leave certified=None")
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            self.multipliers_ = certified_fine_tune(
                self.module_,
                x,
                y,
                self.fair_metric_,
                self.eps,
                self.bounds_,
                rho_c=self.certified,
                batch_size=self.batch_size,
                balanced=balanced,
                generator=torch.Generator().manual_seed(seed),
                progress=self.progress,
            )
        return self

    def _objective(self, search_generator: torch.Generator) -> Objective:
        regularizer = FairRegularizer(
            self.fair_metric_,
            eps=self.eps,
            bounds=self.bounds_,
            output_distance=self.output_distance,
            search=self.search,
            lam_rule=self.lam_rule if self.lam_rule is not None else gradient_rule(self.lr * self.rho),
            lam=self.lam,
            generator=search_generator,
        )
        return SenSeI(regularizer, self.rho)
