"""CoCL (Romanov et al. 2019): covariance constrained loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from evenhand.objectives.batch import Batch, Loss, Objective, weighted_mean


class CoCL(Objective):
    """E[loss] + rho * mean over the classes k of | Cov(P(true class), embedding | y = k) |.

    embedding: (n, m), anything known about the training rows that the prediction must not vary with: group indicators,
        or embeddings of the names as in the paper; found by ``batch.rows``. A batch without row numbers is evaluated
        by its loss alone.
    """

    embedding: Tensor

    def __init__(self, embedding: Any, rho: float, loss: Loss | None = None) -> None:
        super().__init__(loss)
        if not rho >= 0:
            raise ValueError(f"rho must be zero or positive, got {rho}; it weighs the covariance against the loss")
        matrix = torch.as_tensor(embedding)
        matrix = matrix[:, None] if matrix.ndim == 1 else matrix
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise ValueError(
                f"embedding must be a matrix (n, m), a row for each training row; got {tuple(matrix.shape)}"
            )
        if not torch.isfinite(matrix).all():
            raise ValueError("embedding holds NaN or infinite values; give unknown rows the mean, or leave them out")
        self.rho = float(rho)
        self.register_buffer("embedding", matrix, persistent=False)

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        h = model(batch.x)
        loss = weighted_mean(self.loss(h, batch.y), batch.weight)
        self.last = {"loss": loss.detach()}
        if batch.rows is None or self.rho == 0:
            return loss
        p = h.softmax(dim=-1).gather(1, batch.y[:, None])[:, 0]
        penalty = covariance_by_class(p, self.embedding[batch.rows].to(p.dtype), batch.y, h.shape[1])
        self.last |= {"covariance": penalty.detach()}
        return loss + self.rho * penalty


def covariance_by_class(p: Tensor, embedding: Tensor, y: Tensor, n_classes: int) -> Tensor:
    """Mean over the classes present of the length of Cov(p, embedding | y = k): (n,), (n, m), (n,) -> scalar."""
    member = torch.nn.functional.one_hot(y, n_classes).to(p.dtype)  # (n, K)
    count = member.sum(dim=0).clamp(min=1)
    e_mean = (member.T @ embedding) / count[:, None]
    # Cov = E[p (e - mean e)]: centring one side is enough.
    covariance = member.T @ (p[:, None] * (embedding - e_mean[y])) / count[:, None]  # (K, m)
    # The square root is flat at 0 from one side only: the shift keeps its gradient finite.
    length = (covariance.square().sum(dim=1) + 1e-12).sqrt() - 1e-6
    return length[member.sum(dim=0) > 0].mean()
