"""The exact maximum over a finite set of candidates: no gradient, any model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from evenhand.fair_metrics.metric import FairMetric
from evenhand.search.mode import eval_mode
from evenhand.search.worst_cases import Bounds, Gain, WorstCases, box
from evenhand.variations import Variations


class CandidateSearch:
    """Try every version of each individual and keep the one with the largest gain - lam * d_X.

    ``variations.rows`` are positions in the x of the call; rows without variations keep themselves (gain of h(x), no
    distance). ``same_individual=True`` (the default) treats the versions as the same person, d_X = 0, as
    counterfactuals are meant; False prices them by the fair metric.
    """

    def __init__(self, variations: Variations, *, same_individual: bool = True) -> None:
        if variations.values.ndim != 3:
            raise ValueError(f"candidates must be vectors, values (g, m, d); got shape {variations.values.shape}")
        self.variations, self.same_individual = variations, same_individual

    def __call__(
        self,
        model: Callable[[Tensor], Any],
        gain: Gain,
        x: Tensor,
        fair_metric: FairMetric,
        lam: Tensor | float,
        bounds: Bounds = None,
        generator: torch.Generator | None = None,
    ) -> WorstCases:
        fair_metric = fair_metric.matching(x)
        rows = torch.as_tensor(self.variations.rows, device=x.device)
        values = torch.as_tensor(self.variations.values, dtype=x.dtype, device=x.device)
        if len(rows) and int(rows.max()) >= len(x):
            raise ValueError(
                f"variations speak of row {int(rows.max())} but x has {len(x)} rows; select the rows first"
            )
        limits = box(bounds, x)
        with torch.no_grad(), eval_mode(model):
            best_gain = gain(torch.as_tensor(model(x), device=x.device))
            x_worst, d_x, best = x.clone(), torch.zeros_like(best_gain), best_gain.clone()
            for j in range(values.shape[1]):
                candidate = x.clone()
                candidate[rows] = values[:, j]
                reached = gain(torch.as_tensor(model(candidate), device=x.device))
                price = torch.zeros_like(d_x) if self.same_individual else fair_metric(x, candidate)
                objective = reached - torch.where(price > 0, lam * price, price)
                better = objective > best
                if limits is not None:
                    better &= ((candidate >= limits[0]) & (candidate <= limits[1])).all(dim=1)
                best = torch.where(better, objective, best)
                best_gain, d_x = torch.where(better, reached, best_gain), torch.where(better, price, d_x)
                x_worst[better] = candidate[better]
        return WorstCases(x_worst, d_x, best_gain)
