"""Baseline: empirical risk minimisation."""

from __future__ import annotations

from torch import Tensor, nn

from evenhand.objectives.batch import Batch, Objective


class ERM(Objective):
    """The mean loss."""

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        value = self.plain(model, batch)
        self.last = {"loss": value.detach()}
        return value
