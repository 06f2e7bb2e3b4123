"""SenSTIR (Bower et al. 2021): rankings that treat similar items similarly.

A scoring model ranks the items of a query by the Plackett-Luce policy: items are drawn one after the other, with
probability proportional to exp(score). Training maximises the expected NDCG of the policy and adds rho * R(h) with
the same search as for classifiers. Fair distance and output distance of a query are means over its items, so the
worst case of a query is made of the worst cases of its items. (The paper also lets items of two queries be matched in
any order, which only matters for a search among other queries, not for perturbations of one.)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from evenhand import ranks
from evenhand.objectives.batch import Batch, Objective
from evenhand.regularizer import FairRegularizer
from evenhand.search.mode import mode_free

FAR_BELOW = -1e9  # the score of a place without an item


class SenSTIR(Objective):
    """1 - E[NDCG under the policy] + rho * R(h), on batches of queries.

    ``batch.x`` is (queries, items, d) and ``batch.y`` the relevance (queries, items), NaN where there is no item.
    The value is the mean over ``samples`` drawn rankings; its gradient is REINFORCE's with their mean as baseline.
    """

    def __init__(
        self,
        regularizer: FairRegularizer | None,
        rho: float,
        samples: int = 16,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(None)
        if not rho >= 0 or samples < 2:
            raise ValueError(f"rho must be zero or positive and samples 2 or more; got {rho} and {samples}")
        self.regularizer, self.rho, self.samples, self.generator = regularizer, float(rho), samples, generator

    def plain(self, model: nn.Module, batch: Batch) -> Tensor:
        there = ~batch.y.isnan()
        return self._loss(model(batch.x[there]), batch.y, there)

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        there = ~batch.y.isnan()
        items = batch.x[there]
        if self.rho == 0 or self.regularizer is None:
            loss = self._loss(model(items), batch.y, there)
            self.last = {"loss": loss.detach()}
            return loss
        fair = self.regularizer.evaluate(model, items)
        loss = self._loss(fair.h_x if mode_free(model) else model(items), batch.y, there)
        self.last = {"loss": loss.detach(), **fair.numbers(self.regularizer.lam)}
        return loss + self.rho * fair.value

    def _loss(self, h: Tensor, y: Tensor, there: Tensor) -> Tensor:
        scores = torch.full_like(y, FAR_BELOW, dtype=h.dtype).masked_scatter(there, h[:, 0])
        return policy_loss(scores, y, self.samples, self.generator)


def policy_loss(scores: Tensor, y: Tensor, samples: int, generator: torch.Generator | None = None) -> Tensor:
    """1 - E[NDCG] of the Plackett-Luce policy, (q, m), (q, m) -> scalar, from drawn rankings.

    The value is that of the draws, the gradient that of the expectation: mean of (NDCG - baseline) * grad log P.
    """
    there = ~y.isnan()
    home = ranks.home(generator, y.device)
    uniform = torch.rand((samples, *y.shape), generator=generator, device=home, dtype=scores.dtype).to(y.device)
    noise = -torch.log(-torch.log(uniform.clamp(1e-20, 1 - 1e-7)))  # Gumbel: sorting by score + noise draws from PL
    ranking = (scores.detach() + noise).argsort(dim=-1, descending=True)  # (s, q, m)
    gain = torch.where(there, torch.exp2(torch.nan_to_num(y)) - 1, 0.0).to(scores.dtype)
    discount = 1 / torch.log2(2 + torch.arange(y.shape[1], device=y.device, dtype=scores.dtype))
    ideal = gain.sort(dim=-1, descending=True).values @ discount
    reached = gain.expand(samples, -1, -1).gather(2, ranking) @ discount
    value = torch.where(ideal > 0, reached / ideal.clamp(min=1e-12), 1.0)  # nothing relevant: every order is ideal
    log_p = log_probability(scores.expand(samples, -1, -1).gather(2, ranking))
    advantage = (value - value.mean(dim=0, keepdim=True)) * samples / (samples - 1)
    surrogate = -(advantage * log_p).mean()
    return 1 - value.mean() + surrogate - surrogate.detach()


def log_probability(ranked: Tensor) -> Tensor:
    """log P of a ranking under Plackett-Luce, from the scores in ranked order (..., m) -> (...)."""
    rest = torch.logcumsumexp(ranked.flip(-1), dim=-1).flip(-1)  # log of the sum over what is still to be drawn
    return torch.where(ranked > FAR_BELOW / 2, ranked - rest, 0.0).sum(dim=-1)
