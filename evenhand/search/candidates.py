"""The exact maximum over a finite set of candidates: no gradient, any model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.search.mode import eval_mode
from evenhand.search.worst_cases import Bounds, Gain, WorstCases
from evenhand.variations import Variations, check_variations


class CandidateSearch:
    """Try every version of each individual and keep the one with the largest gain - lam * d_X.

    ``variations.rows`` are rows of the data; a call on a part of them says which with ``rows``, otherwise x is the
    data. Rows without variations keep themselves (gain of h(x), no distance). ``same_individual=True`` (the default)
    treats the versions as the same person, d_X = 0, as counterfactuals are meant; False prices them by the fair metric.
    """

    def __init__(self, variations: Variations, *, same_individual: bool = True) -> None:
        check_variations(variations)
        if variations.values.ndim != 3:
            raise ValueError(f"candidates must be vectors, values (g, m, d); got shape {variations.values.shape}")
        self.variations, self.same_individual = variations, same_individual
        self._place = np.full(int(variations.rows.max(initial=-1)) + 1, -1)  # of each row of the data, -1: has none
        self._place[variations.rows] = np.arange(len(variations))

    def of(self, x: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Which rows of the batch have versions, (g,), and their versions (g, m, d)."""
        if rows is None and len(self._place) > len(x):
            raise ValueError(
                f"variations speak of row {len(self._place) - 1} but x has {len(x)} rows; "
                "say which rows of the data x holds: rows="
            )
        asked = np.arange(len(x)) if rows is None else rows.detach().cpu().numpy()
        if asked.shape != (len(x),):
            raise ValueError(f"rows must name one row of the data for each of the {len(x)} of x; got {asked.shape}")
        inside = (asked >= 0) & (asked < len(self._place))
        place = np.where(inside, self._place[np.where(inside, asked, 0)] if len(self._place) else -1, -1)
        here = np.flatnonzero(place >= 0)
        values = torch.as_tensor(self.variations.values[place[here]], dtype=x.dtype, device=x.device)
        theirs = torch.as_tensor(here, device=x.device)
        self._check_originals(x[theirs], values[:, 0])
        return theirs, values

    def select(self, rows: Tensor) -> CandidateSearch:
        """The search for data that hold these rows, in this order."""
        return CandidateSearch(self.variations.select(rows.cpu().numpy()), same_individual=self.same_individual)

    def points(self, x: Tensor, rows: Tensor | None = None) -> Tensor:
        """All versions of everybody, themselves where they have none: (n, d) -> (n, m, d)."""
        theirs, values = self.of(x, rows)
        points = x[:, None].repeat(1, self.variations.values.shape[1], 1)
        points[theirs] = values
        return points

    def _check_originals(self, x: Tensor, original: Tensor) -> None:
        """Version 0 of a person is that person: else the versions of a stranger would be judged."""
        if original.shape != x.shape:
            raise ValueError(f"versions have {original.shape[1]} features but x has {x.shape[1]}")
        near = torch.finfo(x.dtype).eps ** 0.5 * original.abs().amax(1, keepdim=True)
        strangers = int(((x - original).abs() > near).any(1).sum())
        if strangers:
            raise ValueError(
                f"{strangers} of {len(x)} rows differ from version 0 of their variations, which is the original; "
                "encode both alike, and say with rows= which rows of the data x holds"
            )

    def __call__(
        self,
        model: Callable[[Tensor], Any],
        gain: Gain,
        x: Tensor,
        fair_metric: FairMetric,
        lam: Tensor | float,
        bounds: Bounds = None,
        generator: torch.Generator | None = None,
        rows: Tensor | None = None,
    ) -> WorstCases:
        fair_metric = fair_metric.matching(x)
        theirs, values = self.of(x, rows)
        domain = None if bounds is None else Box.of(bounds, x.shape[1])
        with torch.no_grad(), eval_mode(model):
            best_gain = gain(torch.as_tensor(model(x.clone()), device=x.device))  # it may overwrite the copy
            x_worst, d_x, best = x.clone(), torch.zeros_like(best_gain), best_gain.clone()
            for j in range(values.shape[1]):
                candidate = x.clone()
                candidate[theirs] = values[:, j]
                reached = gain(torch.as_tensor(model(candidate.clone()), device=x.device))
                price = torch.zeros_like(d_x) if self.same_individual else fair_metric(x, candidate)
                objective = reached - torch.where(price > 0, lam * price, price)
                better = objective > best
                if domain is not None:
                    better &= domain.contains(candidate.to(device="cpu", dtype=torch.float64)).to(x.device)
                best = torch.where(better, objective, best)
                best_gain, d_x = torch.where(better, reached, best_gain), torch.where(better, price, d_x)
                x_worst[better] = candidate[better]
        return WorstCases(x_worst, d_x, best_gain)
