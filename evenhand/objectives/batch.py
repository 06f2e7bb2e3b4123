"""What every objective is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from evenhand import ranks

Loss = Callable[[Tensor, Tensor], Tensor]  # (n, K), (n,) -> (n,)


class Batch(NamedTuple):
    """A mini-batch; ``rows`` are its positions in the training data, for objectives that look up more about them."""

    x: Tensor
    y: Tensor
    weight: Tensor | None = None
    rows: Tensor | None = None


class Objective(nn.Module):
    """Base of the objectives: the loss, and the numbers of the last call for the training history."""

    def __init__(self, loss: Loss | None = None) -> None:
        super().__init__()
        self.loss = loss if loss is not None else cross_entropy
        self.last: dict[str, Tensor] = {}

    def plain(self, model: nn.Module, batch: Batch) -> Tensor:
        """The weighted mean loss: what plain training, and a warm-up, minimises."""
        return mean_loss(self.loss(model(batch.x), batch.y), batch.weight)

    def groups(self) -> list[dict[str, Any]]:
        """Parameters of the objective's own that are to be minimised over with the model's, each group with its lr."""
        return []

    def __call__(self, model: Any, batch: Batch) -> Tensor:
        result: Tensor = super().__call__(model, batch)
        return result


def cross_entropy(h: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of each row, from logits."""
    return F.cross_entropy(h, y, reduction="none")


def squared_loss(h: Tensor, y: Tensor) -> Tensor:
    """Squared error of each row, for regression: (n, 1), (n,) -> (n,), or the sum over several numbers a row, (n, K)
    twice, as ``squared_error`` between two people is."""
    return (h - y).square().sum(-1) if y.ndim == 2 else (h.squeeze(-1) - y).square()


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    return values.mean() if weight is None else (of_each(values, len(weight)) * weight).sum() / weight.sum()


def of_each(values: Tensor, n: int) -> Tensor:
    """The loss of each of n rows: a mean over them would leave weights without effect."""
    if values.shape != (n,):
        raise ValueError(
            f"the loss must give one value for each row, ({n},), but gave {tuple(values.shape)}; leave the rows apart, "
            "for example nn.CrossEntropyLoss(reduction='none'), and add up what belongs to one row"
        )
    return values


def mean_loss(values: Tensor, weight: Tensor | None) -> Tensor:
    """The weighted mean over the batch; over several ranks, weights count against those of all ranks, so that the mean
    of these means, by numbers of rows, is that of the joint batch."""
    if weight is None or ranks.world() == 1:
        return weighted_mean(values, weight)
    return (of_each(values, len(weight)) * weight).mean() / ranks.mean_of_all(weight)
