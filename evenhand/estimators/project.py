"""Project: remove the sensitive directions from the inputs, then train plainly."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from evenhand.estimators.base import NeuralClassifier, parameters
from evenhand.estimators.fair import WithMetric
from evenhand.fair_metrics.metric import FairMetric
from evenhand.objectives.batch import Objective
from evenhand.objectives.erm import ERM


class Projection(nn.Module):
    """x with the sensitive directions removed, as the first layer of a model."""

    def __init__(self, fair_metric: FairMetric) -> None:
        super().__init__()
        self.fair_metric = fair_metric

    def forward(self, x: Tensor) -> Tensor:
        return self.fair_metric.project(x)


@parameters()
class ProjectClassifier(WithMetric, NeuralClassifier):
    """Plain training on projected inputs; new inputs are projected too.

    ``module_`` takes unprojected inputs: the projection is folded into its first linear layer where there is one.
    """

    def _objective(self, search_generator: torch.Generator) -> Objective:
        return ERM(self._loss)

    def _network(self, before: nn.Module | None, n_features: int, n_outputs: int, seed: int) -> nn.Module:
        if isinstance(before, nn.Sequential) and isinstance(before[0], Projection):
            before = before[1]
        return nn.Sequential(Projection(self.fair_metric_), super()._network(before, n_features, n_outputs, seed))

    def _keep(self, history: Any, objective: Objective) -> None:
        super()._keep(history, objective)
        net = list(self.module_.children())[1]
        if isinstance(net, nn.Sequential) and type(net[0]) is nn.Linear:
            with torch.no_grad():
                net[0].weight.copy_(self.fair_metric_.project(net[0].weight))  # W1 (I - Q Q^T) x = W1 x_projected
            self.module_ = net
