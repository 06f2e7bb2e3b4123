"""SenSeI: the mean loss plus rho times the fair regularizer."""

from __future__ import annotations

from numbers import Integral

import torch
from torch import Tensor, nn

from evenhand import ranks
from evenhand.objectives.batch import Batch, Loss, Objective, mean_loss
from evenhand.regularizer import FairRegularizer
from evenhand.search.mode import mode_free


class SenSeI(Objective):
    """E[loss] + rho * R(h), the paper's training problem.

    every: with every=2, R(h) is estimated on each second row of a batch, in the order of the targets, so that every
    class counts as it does in the batch. The search is most of the cost of a step, and a part of the rows estimates
    the same mean; every=1 looks at all rows, as the paper does. In eval mode all rows are looked at.
    """

    def __init__(self, regularizer: FairRegularizer, rho: float, loss: Loss | None = None, every: int = 2) -> None:
        super().__init__(loss)
        if not isinstance(every, Integral) or every < 1:
            raise ValueError(f"every must be 1 (all rows of a batch), 2 (each second) or more; got {every!r}")
        if not rho >= 0:
            raise ValueError(f"rho must be zero or positive, got {rho}; it weighs fairness against the loss")
        self.regularizer, self.rho, self.every = regularizer, float(rho), int(every)

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        if self.rho == 0:
            loss = self.plain(model, batch)
            self.last = {"loss": loss.detach()}
            return loss
        looked_at, others, share = self._parts(batch) if self.every > 1 and self.training else (batch, None, 1.0)
        fair = self.regularizer.evaluate(model, looked_at.x, looked_at.rows)
        # One forward pass serves loss and regularizer unless train mode changes the output (dropout, BatchNorm).
        if not mode_free(model):
            loss = self.plain(model, batch)
        elif others is None or len(others.y) == 0:
            loss = mean_loss(self.loss(fair.h_x, looked_at.y), looked_at.weight)
        else:
            values = torch.cat([self.loss(fair.h_x, looked_at.y), self.loss(model(others.x), others.y)])
            loss = mean_loss(values, _both(looked_at.weight, others.weight))
        self.last = {"loss": loss.detach(), **fair.numbers(self.regularizer.lam)}
        return loss + self.rho * share * fair.value

    def _parts(self, batch: Batch) -> tuple[Batch, Batch, float]:
        """The rows that are looked at, the others, and how much the mean over the first counts.

        Batches may come in any order, classes in turn for example: each class gives its share. Over several ranks the
        part is that of the joint batch, of which a rank may have more or less than of the rows.
        """
        y, own = ranks.whole(batch.y if batch.y.ndim == 1 else batch.y[:, 0])
        chosen = torch.zeros(len(y), dtype=torch.bool, device=y.device)
        chosen[torch.argsort(y, stable=True)[:: self.every]] = True
        ours = chosen[own].to(batch.y.device)
        looked_at, others = (
            Batch(*(None if column is None else column[rows] for column in batch)) for rows in (ours, ~ours)
        )
        if ranks.world() == 1 or len(ours) == 0:
            return looked_at, others, 1.0
        return looked_at, others, (int(ours.sum()) / int(chosen.sum())) / (len(ours) / len(y))


def _both(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return None if one is None or other is None else torch.cat([one, other])
