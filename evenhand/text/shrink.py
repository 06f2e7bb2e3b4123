"""Features that count less along directions in which versions of the same text differ more than texts do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.text.directions import scatter
from evenhand.variations import Variations

__all__ = ["Shrinkage"]

LEAST = 1e-4  # a direction that would shrink by less is left as it is


@dataclass(frozen=True)
class Shrinkage:
    """x -> x with its part along each of `directions` (d, r), orthonormal, multiplied by `factors` (r,).

    Projecting directions out (the paper's Project) is the same with factors of 0, all or nothing. Here a factor is
    1 / sqrt(1 + strength * v / t): v is the variance between versions of the same text along the direction, t the one
    between texts. So directions that only tell who a text is about nearly vanish, those that tell more are kept, and
    tokens which are not in the list are muted along with those that are.
    """

    directions: NDArray[np.float32]
    factors: NDArray[np.float32]

    @classmethod
    def none(cls, d: int) -> Shrinkage:
        """Everything stays as it is."""
        return cls(np.zeros((d, 0), np.float32), np.zeros(0, np.float32))

    @classmethod
    def learned(cls, versions: Sequence[Variations], x: NDArray[Any], strength: float) -> Shrinkage:
        """From vectors of versions (g, m, d), of one kind or several, and of texts (n, d)."""
        d = x.shape[1]
        every = [some for some in versions if len(some)]
        if not every or strength == 0:
            return cls.none(d)
        squares = sum(scatter(some) for some in every)
        variance, directions = np.linalg.eigh(squares)
        along = (x - x.mean(axis=0)).astype(np.float64) @ directions
        between = np.einsum("nd,nd->d", along, along) / len(x)
        ratio = variance.clip(min=0) / between.clip(min=1e-9)
        factors = 1 / np.sqrt(1 + strength * ratio)
        kept = factors < 1 - LEAST
        return cls(directions[:, kept].astype(np.float32), factors[kept].astype(np.float32))

    def __call__(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """(..., d) -> (..., d)."""
        if len(self.factors) == 0:
            return np.asarray(x, dtype=np.float32)
        return np.asarray(x + ((x @ self.directions) * (self.factors - 1)) @ self.directions.T, dtype=np.float32)

    def to(self, other: Shrinkage) -> NDArray[np.float64]:
        """The matrix M (d, d) with self(x) @ M = other(x): a network on other's features is one on these."""
        d = len(self.directions)
        return np.linalg.solve(self(np.eye(d)).astype(np.float64), other(np.eye(d)).astype(np.float64))
