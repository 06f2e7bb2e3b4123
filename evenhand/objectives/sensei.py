"""SenSeI: the mean loss plus rho times the fair regularizer."""

from __future__ import annotations

from torch import Tensor, nn

from evenhand.objectives.batch import Batch, Loss, Objective, mean_loss
from evenhand.regularizer import FairRegularizer
from evenhand.search.mode import mode_free


class SenSeI(Objective):
    """E[loss] + rho * R(h), the paper's training problem.

    every: with every=4, R(h) is estimated on each fourth row of a batch. The search is most of the cost of a step, and
    a part of the rows estimates the same mean; class-balanced batches are in the order of their classes, so the part
    is balanced.
    """

    def __init__(self, regularizer: FairRegularizer, rho: float, loss: Loss | None = None, every: int = 1) -> None:
        super().__init__(loss)
        if every < 1:
            raise ValueError(f"every must be 1 (all rows of a batch) or more, got {every}")
        if not rho >= 0:
            raise ValueError(f"rho must be zero or positive, got {rho}; it weighs fairness against the loss")
        self.regularizer, self.rho, self.every = regularizer, float(rho), int(every)

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        if self.rho == 0:
            loss = self.plain(model, batch)
            self.last = {"loss": loss.detach()}
            return loss
        x, rows = batch.x, batch.rows
        if self.every > 1:
            x, rows = x[:: self.every], None if rows is None else rows[:: self.every]
        fair = self.regularizer.evaluate(model, x, rows)
        # One forward pass serves loss and regularizer unless train mode changes the output (dropout, BatchNorm).
        h_x = fair.h_x if self.every == 1 and mode_free(model) else model(batch.x)
        loss = mean_loss(self.loss(h_x, batch.y), batch.weight)
        self.last = {"loss": loss.detach(), **fair.numbers(self.regularizer.lam)}
        return loss + self.rho * fair.value
