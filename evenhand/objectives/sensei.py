"""SenSeI: the mean loss plus rho times the fair regularizer."""

from __future__ import annotations

from torch import Tensor, nn

from evenhand.objectives.batch import Batch, Loss, Objective, weighted_mean
from evenhand.regularizer import FairRegularizer
from evenhand.search.mode import mode_free


class SenSeI(Objective):
    """E[loss] + rho * R(h), the paper's training problem."""

    def __init__(self, regularizer: FairRegularizer, rho: float, loss: Loss | None = None) -> None:
        super().__init__(loss)
        if not rho >= 0:
            raise ValueError(f"rho must be zero or positive, got {rho}; it weighs fairness against the loss")
        self.regularizer, self.rho = regularizer, float(rho)

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        h_x = model(batch.x)
        loss = weighted_mean(self.loss(h_x, batch.y), batch.weight)
        if self.rho == 0:
            self.last = {"loss": loss.detach()}
            return loss
        # One forward pass serves loss and regularizer unless train mode changes the output (dropout, BatchNorm).
        fair, mean_d_y, found = self.regularizer.value(model, batch.x, h_x if mode_free(model) else None)
        self.last = {
            "loss": loss.detach(),
            "regularizer": fair.detach(),
            "lam": self.regularizer.lam.clone(),
            "d_x": found.d_x.mean(),
            "d_y": mean_d_y.detach(),
        }
        return loss + self.rho * fair
