"""SenSeI: the mean loss plus rho times the fair regularizer."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from evenhand import ranks
from evenhand.objectives.batch import Batch, Loss, Objective, mean_loss
from evenhand.regularizer import FairRegularizer
from evenhand.search.mode import mode_free


class SenSeI(Objective):
    """E[loss] + rho * R(h), the paper's training problem.

    every: with every=4, R(h) is estimated on each fourth row of a batch, in the order of the targets, so that every
    class counts as it does in the batch. The search is most of the cost of a step, and a part of the rows estimates
    the same mean; every=1 looks at all rows, as the paper does. In eval mode all rows are looked at.
    """

    def __init__(self, regularizer: FairRegularizer, rho: float, loss: Loss | None = None, every: int = 4) -> None:
        super().__init__(loss)
        given: Any = every
        if not isinstance(given, Integral) or int(given) < 1:
            raise ValueError(f"every must be 1 (all rows of a batch), 2 (each second) or more; got {every!r}")
        if not rho >= 0:
            raise ValueError(f"rho must be zero or positive, got {rho}; it weighs fairness against the loss")
        self.regularizer, self.rho, self.every = regularizer, float(rho), int(every)

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        if self.rho == 0:
            loss = self.plain(model, batch)
            self.last = {"loss": loss.detach()}
            return loss
        part, share = self._part(batch.y) if self.every > 1 and self.training else (None, 1.0)
        # One forward pass serves loss and regularizer unless train mode changes the output (dropout, BatchNorm).
        if mode_free(model) and (part is None or self.regularizer.at is None):
            fair = self.regularizer.evaluate(model, batch.x, batch.rows, part)
            h_x = fair.h_x
        else:
            x, rows = batch.x, batch.rows
            if part is not None:
                x, rows = x[part], None if rows is None else rows[part]
            fair, h_x = self.regularizer.evaluate(model, x, rows), model(batch.x)
        loss = mean_loss(self.loss(h_x, batch.y), batch.weight)
        self.last = {"loss": loss.detach(), **fair.numbers(self.regularizer.lam)}
        return loss + self.rho * share * fair.value

    def _part(self, y: Tensor) -> tuple[Tensor, float]:
        """The rows that are looked at, and how much the mean over them counts.

        Batches may come in any order, classes in turn for example: each class gives its share. Over several ranks the
        part is that of the joint batch, of which a rank may have more or less than of the rows.
        """
        joint, own = ranks.whole(y.flatten(1)[:, 0] if y.ndim > 1 else y)
        part = torch.argsort(joint, stable=True)[:: self.every].sort().values
        if ranks.world() == 1:
            return part, 1.0
        ours = (part[(part >= own.start) & (part < own.stop)] - own.start).to(y.device)
        return ours, len(ours) / len(part) * len(joint) / max(len(y), 1)
