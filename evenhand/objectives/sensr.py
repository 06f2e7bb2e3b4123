"""SenSR (Yurochkin, Bower & Sun 2020): train on the worst case of the loss itself."""

from __future__ import annotations

from torch import Tensor, nn

from evenhand.objectives.batch import Batch, Loss, Objective, mean_loss, of_each
from evenhand.regularizer import PricedSearch


class SenSR(Objective):
    """sup over P' with W_d(P, P') <= eps of E[loss]: the same search, the gain is the loss, trained on x' only."""

    def __init__(self, priced_search: PricedSearch, loss: Loss | None = None) -> None:
        super().__init__(loss)
        self.priced_search = priced_search

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        found = self.priced_search.find(
            model, lambda h: of_each(self.loss(h, batch.y), len(batch.y)), batch.x, batch.rows
        )
        x_worst = found.x_worst.to(batch.x.dtype).reshape(batch.x.shape)  # an image again
        value = mean_loss(self.loss(model(x_worst), batch.y), batch.weight)
        self.last = {"loss": value.detach(), "lam": self.priced_search.lam.clone(), "d_x": found.d_x.mean()}
        return value
