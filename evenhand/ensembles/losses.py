"""What is minimised, with its gradient and curvature in the scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Loss = Callable[[Array, Array], tuple[Array, Array, Array]]  # h (n, K), y (n, K) -> loss (n,), gradient, curvature


def balanced_log_loss(h: Array, y: Array) -> tuple[Array, Array, Array]:
    """Log loss of log-odds (n, 1), or of K logits against one-hot labels."""
    if h.shape[1] == 1:
        e = np.exp(-np.abs(h))
        p = np.where(h >= 0, 1.0, e) / (1 + e)
        loss = np.log1p(e) + np.maximum(np.where(y == 1, -h, h), 0.0)
        return loss[:, 0], p - y, p * (1 - p)
    e = np.exp(h - h.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    return -np.log(np.maximum((p * y).sum(1), 1e-300)), p - y, p * (1 - p)


def squared_loss(h: Array, y: Array) -> tuple[Array, Array, Array]:
    """Half the squared error."""
    return 0.5 * ((h - y) ** 2).sum(1), h - y, np.ones_like(h)
