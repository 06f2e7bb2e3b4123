"""The parameters of the methods that search for worst cases, and SenSeI's and SenSR's objectives."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import torch

from evenhand.devices import device_of_float64
from evenhand.estimators.base import Metric, NeuralEstimator, parameters
from evenhand.estimators.source import Source
from evenhand.objectives.batch import Objective
from evenhand.objectives.sensei import SenSeI
from evenhand.objectives.sensr import SenSR
from evenhand.output_distances import OutputDistance, mean_squared_logits
from evenhand.regularizer import FairRegularizer, LamRule, PricedSearch, gradient_rule, ratio_rule
from evenhand.search.gradient import GradientSearch
from evenhand.search.worst_cases import Search

# The paper's two stages in few steps. Adam's full stage tries every column by the same step, where one step along the
# slope follows the steepest: rare columns then keep their weights (measured in docs/reproduction.md).
TRAINING_SEARCH = GradientSearch(subspace_step=1.0, subspace_steps=4, full_step=0.05, full_steps=4, line_search=False)


@parameters()
class WithMetric(NeuralEstimator):
    """fair_metric: who is similar; a ``FairMetric``, a learner of one (a function of X, or an object with ``fit`` such
    as ``ClassifierMetric``, refitted in every fold of a cross-validation), or None for the Euclidean distance. Then no
    column is sensitive, all of rho presses on small differences of any kind, and what is left to decide by are columns
    of few values, which lie far apart: with the default rho such a model may decide by sex. Name what must not matter.
    """

    fair_metric: Metric = field(default=None, kw_only=False)


@parameters()
class Searching(WithMetric):
    """eps: the mean fair distance within which people count as similar. bounds: the set of possible people, a ``Box``
    or (low, high), by default drawn from the training data; None is the paper's unbounded space. search: how worst
    cases are looked for. lam and lam_rule: the dual variable's start and its rule. warm_up: the share of the steps that
    are plain training. quiet_start: the first layer starts small and without a response to the sensitive directions,
    so that training need not unlearn random weights, which rare columns would keep; False is the paper's start, and a
    ``module`` of one's own starts as it is.
    """

    eps: float = 0.1
    bounds: Any = "data"
    search: Search | None = None
    lam: float = 0.1
    lam_rule: LamRule | None = None
    warm_up: float = 0.0
    quiet_start: bool = True


@parameters()
class SenSeIMethod(Searching):
    """rho weighs fairness against accuracy: loss + rho * R(h). free: the share of rho that is laid on R(h) at eps = 0,
    on differences that cost nothing, so that these are ruled out strictly and all others held mildly; 0 is the paper's.
    output_distance: d_Y. every: worst cases are looked for of each fourth row of a batch (every=4), which costs less
    and estimates the same R(h); every=1 is the paper's, all rows. certified: if given, the trained network is
    fine-tuned with so much weight on an upper bound of R(h), for a certificate.
    """

    rho: float = 20.0
    free: float = 0.98
    steps: int = 1150  # longer training gains accuracy and loses consistency, see docs/reproduction.md
    output_distance: OutputDistance = mean_squared_logits
    every: int = 4
    certified: float | None = None

    def _objective(self, search_generator: torch.Generator) -> Objective:
        regularizer = FairRegularizer(
            self.fair_metric_,
            eps=self.eps,
            bounds=self.bounds_,
            output_distance=self.output_distance,
            search=self.search if self.search is not None else TRAINING_SEARCH,
            lam_rule=self.lam_rule if self.lam_rule is not None else gradient_rule(self.lr * self.rho),
            lam=self.lam,
            generator=search_generator,
        )
        return SenSeI(regularizer, self.rho, self._loss, self.every, self.free)

    def _fine_tune(self, source: Source, seed: int) -> None:
        if self.certified is None:
            return
        if self.bounds_ is None:
            raise ValueError("certified fine-tuning needs bounds, within which R(h) is finite; or leave certified=None")
        from evenhand.training.certified import certified_fine_tune  # and with it the bounds: only who asks waits

        rows = source.rows(0.0, None, torch.Generator(self.device).manual_seed(seed))
        home = device_of_float64(self.device)  # of which bounds are made
        x, y = (part.to(home) for part in rows.data) if len(rows.data) == 2 else (rows.data[0], None)
        self.multipliers_ = certified_fine_tune(
            self.module_.to(home),
            x,
            y,
            self.fair_metric_.copied().to(home),
            self.eps,
            self.bounds_,
            rho_c=self.certified,
            loss=self._loss,
            generator=torch.Generator(home).manual_seed(seed + 2),
            batch_size=self.batch_size,
            progress=self._progress(),
            **rows.settings,
            **self._checkpointing(".certified"),
        )
        self.module_.to(self.device)


@parameters()
class SenSRMethod(Searching):
    """eps is SenSR's only trade-off parameter."""

    lam: float = 2.0
    quiet_start: bool = False

    def _objective(self, search_generator: torch.Generator) -> Objective:
        rule = self.lam_rule if self.lam_rule is not None else ratio_rule()
        priced_search = PricedSearch(
            self.fair_metric_, self.eps, self.bounds_, self.search, rule, self.lam, search_generator
        )
        return SenSR(priced_search, self._loss)
