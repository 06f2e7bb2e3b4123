"""The two-dimensional task of Figure 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["synthetic"]


def synthetic(
    n: int = 1000, seed: int = 0, *, bias: float = 1.0, steepness: float = 6.0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points (n, 2) whose labels are biased along a direction which should not matter.

    Points on a horizontal line are similar individuals, so the direction [1, 0] costs nothing; only the height may
    decide. Points are uniform in the square [-1, 1] x [-1, 1], and the labels are drawn with

        P(y = 1 | x) = 1 / (1 + exp(-steepness * (x[1] + bias * x[0])))

    so a plain classifier learns a boundary tilted to the slope -bias, 45 degrees by default, while a fair one is
    horizontal. `steepness` is the inverse of the noise: with 6 and bias 1 about one label in ten is on the wrong side.

    >>> X, y = synthetic(1000, seed=0)
    >>> X.shape, y.shape
    ((1000, 2), (1000,))
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    probability = 1.0 / (1.0 + np.exp(-steepness * (X[:, 1] + bias * X[:, 0])))
    return X, (rng.uniform(size=n) < probability).astype(np.int64)
