"""d_Y: how far apart two outputs of the model are. Plain functions (n, K), (n, K) -> (n,)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

OutputDistance = Callable[[Tensor, Tensor], Tensor]


def mean_squared_logits(h: Tensor, h_other: Tensor) -> Tensor:
    """The paper's d_Y: (1/K) |h(x) - h(x')|^2 on the K logits."""
    return (h - h_other).square().mean(-1)


def squared_error(h: Tensor, h_other: Tensor) -> Tensor:
    """For regression: the squared difference of the predictions (K = 1)."""
    return (h - h_other).square().sum(-1)


def absolute_probability(h: Tensor, h_other: Tensor) -> Tensor:
    """|p - p'| of the second of two classes, from logits (n, 2)."""
    return (_positive_probability(h) - _positive_probability(h_other)).abs()


def total_variation(h: Tensor, h_other: Tensor) -> Tensor:
    """Total variation between the class probabilities, from logits (n, K); lies in [0, 1]."""
    return 0.5 * (h.softmax(-1) - h_other.softmax(-1)).abs().sum(-1)


def _positive_probability(h: Tensor) -> Tensor:
    if h.shape[-1] != 2:
        raise ValueError(f"absolute_probability needs two logits per row, got {h.shape[-1]}; use total_variation")
    return torch.sigmoid(h[..., 1] - h[..., 0])
