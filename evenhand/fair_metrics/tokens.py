"""A metric of one token, for whole sequences: who is alike when every token may move by itself."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from evenhand.fair_metrics.metric import FairMetric

__all__ = ["TokenMetric", "per_token"]

Mask = str | int | None


def per_token(fair_metric: FairMetric, mask: Mask = "attention_mask") -> TokenMetric:
    """The metric of one token's vector (K,), applied to sequences of any length, (n, T, K): d_X is the sum over the
    tokens, and the free directions act on each token by itself.

    mask: which of the model's inputs, its name in a dict or its place in a tuple, says by 1 and 0, (n, T), which tokens
    are there. The others never move and never cost. None where all are; a single tensor has no mask.

    >>> import torch
    >>> one = FairMetric([[1.0], [0.0]])                       # of each token, the first number is sensitive
    >>> x = torch.zeros(1, 3, 2)                               # a sequence of three tokens
    >>> per_token(one)(x, x + torch.tensor([5.0, 2.0]))
    tensor([12.])
    """
    metric = TokenMetric.of(fair_metric.directions, fair_metric.factor, fair_metric.attribute_models)
    assert isinstance(metric, TokenMetric)
    metric.mask = mask
    return metric


class TokenMetric(FairMetric):
    """d_X(x, x') = sum over the tokens t of (x_t - x'_t)^T Sigma (x_t - x'_t), see ``per_token``.

    ``FairRegularizer`` takes it, with ``at=`` or ``vary=``; audits, certificates and estimators refuse it. A file holds
    the metric of one token: ``per_token(FairMetric.load(path))``.
    """

    mask: Mask = "attention_mask"

    def copied(self) -> TokenMetric:
        return per_token(self, self.mask)

    def cost(self, delta: Tensor) -> Tensor:
        """Squared fair length of each perturbation: (n, T, K) -> (n,)."""
        return super().cost(delta).sum(-1)

    def pairwise(self, x: Any, z: Any) -> Tensor:
        raise ValueError("a metric per token compares sequences of one length only, row by row: metric(x, x_other)")

    def check_width(self, x: Tensor) -> None:
        if x.ndim != 3 or x.shape[2] != self.d:
            raise ValueError(
                f"fair_metric is one per token, of sequences (n, T, {self.d}), but x has shape {tuple(x.shape)}; "
                "FairRegularizer takes it, with at= or vary=. Audits, certificates and estimators do not: audit the "
                "pooled layer, or versions of the texts"
            )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, of each token"
