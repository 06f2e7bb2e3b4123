"""SenSeI: the mean loss plus rho times the fair regularizer."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from evenhand import ranks
from evenhand.objectives.batch import Batch, Loss, Objective, mean_loss
from evenhand.regularizer import Evaluated, FairRegularizer, not_negative, number
from evenhand.search.graphs import not_compiled
from evenhand.search.mode import mode_free
from evenhand.search.model_view import ModelView


class SenSeI(Objective):
    """E[loss] + rho * R(h), the paper's training problem.

    every: with every=4, R(h) is estimated on each fourth row of a batch, in the order of the targets, so that every
    class counts as it does in the batch. The search is most of the cost of a step, and a part of the rows estimates
    the same mean; every=1 looks at all rows, as the paper does. In eval mode all rows are looked at.

    free: the share of rho that is laid on R(h) at eps = 0, which is about differences that cost nothing; 0 is the
    paper's. R(h) at eps > 0 asks two things at once, that free differences do not matter and that nothing else matters
    much; with free=0.98 the first is asked for strictly and the second mildly. It is estimated on half as many rows.
    With eps = 0 both are one, and where no difference is free all of rho is on R(h).
    """

    def __init__(
        self, regularizer: FairRegularizer, rho: float, loss: Loss | None = None, every: int = 4, free: float = 0.0
    ) -> None:
        super().__init__(loss)
        given: Any = every
        if not isinstance(given, Integral) or int(given) < 1:
            raise ValueError(f"every must be 1 (all rows of a batch), 2 (each second) or more; got {every!r}")
        if not 0 <= number(free) <= 1:
            raise ValueError(
                f"free must be a number in [0, 1], the share of rho on what costs nothing, got {free!r}; give 0 for "
                "the paper's objective"
            )
        self.regularizer, self.every = regularizer, int(every)
        self.rho = not_negative("rho", rho, "which weighs fairness against the loss")
        one = regularizer.eps == 0 or regularizer.fair_metric.directions.shape[1] == 0
        self.free = 0.0 if one else number(free)
        self.of_free = regularizer.of_free() if self.free > 0 else None

    @not_compiled
    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        if self.rho == 0:
            loss = self.plain(model, batch)
            self.last = {"loss": loss.detach()}
            return loss
        every = self.every if self.training else 1
        part, share = self._part(batch.y, every)
        # One forward pass serves loss and regularizer unless train mode changes the output (dropout, BatchNorm).
        once = mode_free(model) and (part is None or self.regularizer.at is None)
        view = self.regularizer.look(model, batch.x) if once else None
        fair = self._evaluate(self.regularizer, model, batch, view, part)
        h = fair.h_x if once else model(batch.x.clone())  # which the model may overwrite
        loss = mean_loss(self.loss(h, batch.y), batch.weight)
        self.last = {"loss": loss.detach(), **fair.numbers(self.regularizer.lam)}
        value: Tensor = loss + self.rho * (1 - self.free) * share * fair.value
        if self.of_free is not None:
            part, share = self._part(batch.y, 2 * every if self.training else 1)
            free = self._evaluate(self.of_free, model, batch, view, part).value
            self.last["free"] = free.detach()
            value = value + self.rho * self.free * share * free
        return value

    def _evaluate(
        self, regularizer: FairRegularizer, model: nn.Module, batch: Batch, view: ModelView | None, part: Tensor | None
    ) -> Evaluated:
        if view is not None:
            return regularizer.evaluate_from(view, batch.rows, part)
        if part is None:
            return regularizer.evaluate(model, batch.x, batch.rows)
        return regularizer.evaluate(model, batch.x[part], None if batch.rows is None else batch.rows[part])

    def _part(self, y: Tensor, every: int) -> tuple[Tensor | None, float]:
        """The rows that are looked at, None for all, and how much the mean over them counts.

        Batches may come in any order, classes in turn for example: each class gives its share. Over several ranks the
        part is that of the joint batch, of which a rank may have more or less than of the rows.
        """
        if every == 1:
            return None, 1.0
        joint, own = ranks.whole(y.flatten(1)[:, 0] if y.ndim > 1 else y)
        part = torch.argsort(joint, stable=True)[::every].sort().values
        if ranks.world() == 1:
            return part, 1.0
        ours = (part[(part >= own.start) & (part < own.stop)] - own.start).to(y.device)
        return ours, len(ours) / len(part) * len(joint) / max(len(y), 1)
