"""R(h) and its dual variable: the term that makes a model treat similar people similarly.

    R(h) = inf over lam >= 0 of  lam*eps + E[ sup over x' of d_Y(h(x), h(x')) - lam*d_X(x, x') ]      (Theorem 2.3)

Read this file first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from evenhand import ranks
from evenhand.fair_metrics.metric import FairMetric
from evenhand.output_distances import OutputDistance, mean_squared_logits
from evenhand.search.first_layer import ModelView
from evenhand.search.gradient import GradientSearch
from evenhand.search.mode import eval_mode, gradients_allowed
from evenhand.search.worst_cases import Bounds, DistanceGain, Gain, Model, Search, WorstCases

LamRule = Callable[[Tensor, Tensor, float], Tensor]  # lam, mean d_X, eps -> new lam


@dataclass(frozen=True)
class gradient_rule:
    """Algorithm 1: lam <- max(0, lam - step * (eps - mean d_X)); the paper's step is eta * rho."""

    step: float

    def __call__(self, lam: Tensor, mean_d_x: Tensor, eps: float) -> Tensor:
        return (lam - self.step * (eps - mean_d_x)).clamp(min=0)  # project onto lam >= 0


@dataclass(frozen=True)
class ratio_rule:
    """The rule of the authors' earlier code: lam + (max(d, eps) / min(d, eps)) * (d - eps), kept within [low, high]."""

    low: float = 1e-5
    high: float = 10.0

    def __call__(self, lam: Tensor, mean_d_x: Tensor, eps: float) -> Tensor:
        large, small = mean_d_x.clamp(min=eps), mean_d_x.clamp(min=1e-12, max=max(eps, 1e-12))
        return (lam + large / small * (mean_d_x - eps)).clamp(self.low, self.high)


class PricedSearch(nn.Module):
    """A search and the price lam it pays: what SenSeI and SenSR share.

    lam is a buffer: saved in ``state_dict``, moved by ``.to``. It follows ``lam_rule`` in train mode and rests in eval
    mode, like the statistics of BatchNorm. With eps = 0 only moves that cost nothing are allowed and lam rests too.
    Under ``torch.distributed`` the mean fair distance is that of all ranks, so that every rank holds the same lam.
    """

    lam: Tensor

    def __init__(
        self,
        fair_metric: FairMetric,
        eps: float = 0.1,
        bounds: Bounds = None,
        search: Search | None = None,
        lam_rule: LamRule | None = None,
        lam: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not eps >= 0:
            raise ValueError(
                f"eps must be zero or positive, got {eps}; it is the mean fair distance an adversary may use"
            )
        if not lam >= 0:
            raise ValueError(f"lam must be zero or positive, got {lam}")
        self.fair_metric, self.eps, self.bounds = fair_metric, float(eps), bounds
        self.search: Search = search if search is not None else GradientSearch()
        self.lam_rule = lam_rule if lam_rule is not None else gradient_rule(0.01)
        self.generator = generator
        self.register_buffer("lam", torch.tensor(float(lam)))

    def find(self, model: Model, gain: Gain, x: Tensor, rows: Tensor | None = None) -> WorstCases:
        """Steps 1 and 2 of Algorithm 1: the worst case of each row at the present lam, then the step of lam.

        rows: which rows of the data x holds, for a search that must know whom it looks at.
        """
        price = self.lam if self.eps > 0 else float("inf")
        share = ranks.share_of(len(x)) if self.training else ranks.drawing(len(x))
        with ranks.joint_draws(share):
            found = self.search(
                ranks.underlying(model), gain, x, self.fair_metric, price, self.bounds, self.generator, rows
            )
        if self.training and self.eps > 0 and share.total:
            mean_d_x = ranks.mean_of_all(found.d_x).to(self.lam)
            self.lam.copy_(self.lam_rule(self.lam, mean_d_x, self.eps))
        return found

    def extra_repr(self) -> str:
        return f"eps={self.eps}, lam={self.lam.item():.4g}"


class Evaluated(NamedTuple):
    """The regularizer on a batch, and what it is made of."""

    value: Tensor  # lam*eps + mean(d_Y - lam*d_X)
    d_y: Tensor  # mean d_Y(h(x), h(x'))
    d_x: Tensor  # mean d_X(x, x')
    h_x: Tensor  # (n, K) in eval mode, with gradients
    found: WorstCases


class FairRegularizer(PricedSearch):
    """The scalar to add to any loss: ``loss + rho * fair(model, x)``.

    >>> model = torch.nn.Linear(2, 2)
    >>> fair = FairRegularizer(FairMetric([[1.0], [0.0]]), eps=0.1, bounds=(0.0, 1.0))
    >>> x = torch.rand(8, 2)
    >>> bool(fair(model, x) >= 0)
    True

    The value is the dual objective lam*eps + mean(d_Y - lam*d_X) at the present lam; its gradient with respect to the
    model is that of step 3 of Algorithm 1. Both outputs are taken in eval mode, so dropout is no unfairness and
    BatchNorm statistics do not move. Under DistributedDataParallel, which averages over the ranks, the gradient is that
    of the joint batch, whether the ranks hold equally many rows or not.
    """

    def __init__(
        self,
        fair_metric: FairMetric,
        eps: float = 0.1,
        bounds: Bounds = None,
        output_distance: OutputDistance = mean_squared_logits,
        search: Search | None = None,
        lam_rule: LamRule | None = None,
        lam: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(fair_metric, eps, bounds, search, lam_rule, lam, generator)
        self.output_distance = output_distance

    def forward(self, model: Model, x: Tensor, rows: Tensor | None = None) -> Tensor:
        value = self.evaluate(model, x, rows).value
        if ranks.world() == 1 or not self.training:
            return value
        share = ranks.share_of(len(x))
        return value * (share.own * ranks.world() / max(share.total, 1))

    def evaluate(self, model: Model, x: Tensor, rows: Tensor | None = None) -> Evaluated:
        """The dual value and what it is made of; h(x) is computed once, for the search and for the value.

        rows: (n,) which rows of the data the batch holds; ``CandidateSearch`` needs them in mini-batches.
        """
        model = ranks.underlying(model)
        with eval_mode(model):
            at_x = self.search.at(model, x) if isinstance(self.search, GradientSearch) else ModelView(model, x, None)
            h_x = at_x.h_x()
            gain = DistanceGain(_outside(h_x), self.output_distance)
            found = self.find(model if at_x.cut is None else at_x, gain, x, rows)
            d_y = self.output_distance(h_x, at_x.h_worst(found, self.fair_metric.directions))
        d_y, d_x = (each.mean() if len(x) else each.sum() for each in (d_y, found.d_x))  # a rank may have no rows
        value = d_y if self.eps == 0 else d_y + self.lam * (self.eps - d_x)
        return Evaluated(value, d_y, d_x, h_x, found)


def _outside(h_x: Tensor) -> Tensor:
    """h(x) as a constant that the search may use also under inference mode."""
    with gradients_allowed():
        return h_x.detach().clone() if h_x.is_inference() else h_x.detach()
