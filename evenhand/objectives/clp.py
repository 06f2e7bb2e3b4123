"""CLP (Garg et al. 2019): counterfactual logit pairing."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from evenhand import ranks
from evenhand.objectives.batch import Batch, Loss, Objective, weighted_mean
from evenhand.output_distances import OutputDistance, mean_squared_logits
from evenhand.variations import Variations


class CLP(Objective):
    """E[loss] + rho * E[d_Y(h(x), h(a random other version of x))], the second mean over the rows that have versions.

    variations: the versions of the training rows, feature vectors (g, m, d) with m >= 2; `rows` counts as `batch.rows`
        does. A batch without row numbers, or with nobody who has versions, adds nothing to the loss.
    """

    values: Tensor
    place: Tensor

    def __init__(
        self,
        variations: Variations,
        rho: float,
        loss: Loss | None = None,
        output_distance: OutputDistance = mean_squared_logits,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(loss)
        if not rho >= 0:
            raise ValueError(f"rho must be zero or positive, got {rho}; it weighs fairness against the loss")
        values, rows = checked(variations)
        self.rho, self.output_distance, self.generator = float(rho), output_distance, generator
        # Not persistent: the data are no part of the trained state and would be copied with every snapshot of it.
        self.register_buffer("values", torch.as_tensor(values), persistent=False)
        self.register_buffer("place", torch.full((int(rows.max()) + 2,), -1), persistent=False)
        self.place[torch.as_tensor(rows)] = torch.arange(len(rows))  # the last place stays -1, for all rows beyond

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        h_x = model(batch.x)
        loss = weighted_mean(self.loss(h_x, batch.y), batch.weight)
        self.last = {"loss": loss.detach()}
        if batch.rows is None or self.rho == 0:
            return loss
        place = self.place[batch.rows.clamp(max=len(self.place) - 1)]
        having = (place >= 0).nonzero()[:, 0]
        if len(having) == 0:
            return loss
        there = ranks.home(self.generator, self.values.device)
        version = torch.randint(1, self.values.shape[1], having.shape, generator=self.generator, device=there)
        h_other = model(self.values[place[having], version.to(self.values.device)].to(batch.x.dtype))
        weight = None if batch.weight is None else batch.weight[having]
        d_y = weighted_mean(self.output_distance(h_x[having], h_other), weight)
        self.last |= {"d_y": d_y.detach()}
        return loss + self.rho * d_y


def checked(variations: Variations) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The vectors and row numbers of variations that can be paired, or a clear error."""
    values = np.asarray(variations.values)
    if len(values) == 0:
        raise ValueError("there is nobody with versions, so there is nothing to pair; use plain training (ERM) instead")
    if values.ndim != 3 or values.dtype.kind not in "fiu":
        raise ValueError(
            f"expected vectors (individuals, versions, features), got {values.dtype} of shape {values.shape}; "
            "encode texts first: variations.map(embed)"
        )
    if values.shape[1] < 2:
        raise ValueError("each individual needs at least one version beside the original, got only version 0")
    if not np.isfinite(values).all():
        raise ValueError("variations hold NaN or infinite values; clean them first")
    return values, variations.rows
