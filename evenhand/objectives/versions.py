"""SenSeI where only the versions of somebody are similar: the worst case is one of them, and no search is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from evenhand import ranks
from evenhand.objectives.batch import Batch, Loss, Objective, mean_loss
from evenhand.output_distances import OutputDistance, mean_squared_logits


class WorstVersion(Objective):
    """E[loss] + rho * E[max over versions v' of d_Y(h(v), h(v'))].

    This is R(h) of a metric that is 0 between the versions of an individual and infinite otherwise: eps and lam do not
    matter.

    kinds: the versions of individuals, each (g, m, d), m >= 2; every kind counts the same. They need not be of the rows
        that are trained on, nor have a label. drawn: how many individuals of each kind a step looks at, each from a
        random version v. among: of how many random versions the worst is taken; 1 is counterfactual logit pairing.
    """

    def __init__(
        self,
        kinds: Sequence[NDArray[Any]],
        rho: float,
        loss: Loss | None = None,
        output_distance: OutputDistance = mean_squared_logits,
        generator: torch.Generator | None = None,
        *,
        drawn: int = 64,
        among: int = 4,
    ) -> None:
        super().__init__(loss)
        if not rho >= 0:
            raise ValueError(f"rho must be zero or positive, got {rho}; it weighs fairness against the loss")
        if not kinds or any(values.ndim != 3 or len(values) == 0 or values.shape[1] < 2 for values in kinds):
            shapes = [values.shape for values in kinds]
            raise ValueError(
                f"expected versions (individuals, two or more, features) of one kind or more, got {shapes}"
            )
        if drawn < 1 or among < 1:
            raise ValueError(f"drawn and among must be at least 1; got {drawn} and {among}")
        self.rho, self.output_distance, self.generator = float(rho), output_distance, generator
        self.drawn, self.among, self.kinds = drawn, among, len(kinds)
        for i, values in enumerate(kinds):  # not persistent: data are no part of the trained state
            self.register_buffer(f"values{i}", torch.as_tensor(values), persistent=False)

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        loss = mean_loss(self.loss(model(batch.x), batch.y), batch.weight)
        self.last = {"loss": loss.detach()}
        if self.rho == 0:
            return loss
        pairs = [self._worst_pairs(model, self.get_buffer(f"values{i}").to(batch.x.dtype)) for i in range(self.kinds)]
        h, h_worst = (model(torch.cat(each)) for each in zip(*pairs))
        d_y = self.output_distance(h, h_worst).mean()
        self.last |= {"d_y": d_y.detach()}
        return loss + self.rho * d_y

    @torch.no_grad()
    def _worst_pairs(self, model: nn.Module, values: Tensor) -> tuple[Tensor, Tensor]:
        """A version of each drawn individual, and the one of some others whose output is farthest from its."""
        g, m, d = values.shape
        who = self._random(g, self.drawn)
        v = values[who, self._random(m, self.drawn)]
        others = values[who[:, None], self._random(m, self.drawn, self.among)]
        if self.among == 1:
            return v, others[:, 0]
        h, h_others = model(v), model(others.reshape(-1, d))
        repeated = h.repeat_interleave(self.among, dim=0)
        worst = self.output_distance(repeated, h_others).reshape(self.drawn, self.among).argmax(dim=1)
        return v, others[torch.arange(self.drawn, device=worst.device), worst]

    def _random(self, below: int, *shape: int) -> Tensor:
        device = self.get_buffer("values0").device
        drawn = torch.randint(below, shape, generator=self.generator, device=ranks.home(self.generator, device))
        return drawn.to(device)
