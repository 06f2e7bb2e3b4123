"""The main directions in which versions differ, learned from versions of several kinds at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.variations import Variations

__all__ = ["main_directions", "scatter"]

CHUNK = 1 << 22  # numbers that are widened at a time: a copy of all versions would fill the memory
LEAST = 1e-6  # of the largest difference, or of the largest number: below, a direction is rounding


def scatter(versions: Variations) -> NDArray[np.float64]:
    """The mean square of how a version lies off the mean of its individual: (g, m, d) -> (d, d)."""
    values = np.asarray(versions.values)
    squares: NDArray[np.float64] = np.zeros((values.shape[2],) * 2)
    for some in np.array_split(values, max(1, values.size // CHUNK)):
        part = some.astype(np.float64)
        away = (part - part.mean(axis=1, keepdims=True)).reshape(-1, len(squares))
        squares += away.T @ away
    squares /= max(1, values.shape[0] * values.shape[1])
    return squares


def main_directions(kinds: Sequence[Variations], k: int) -> NDArray[np.float32]:
    """The k directions in which versions differ most, orthonormal (d, k); every kind counts the same.

    Of one kind these are the directions of FACE. There are fewer of them where versions differ in fewer, as few tokens
    in few sentences do, and never as many as features.

    >>> pair = Variations(np.array([[[0.0, 1.0, 0.0], [2.0, 1.0, 0.0]]]), rows=[0])
    >>> main_directions([pair], k=2).round(6).T.tolist()
    [[1.0, 0.0, 0.0]]
    """
    every = [some for some in kinds if len(some)]
    eigenvalues, vectors = np.linalg.eigh(sum(scatter(some) for some in every))
    lengths = np.sqrt(eigenvalues[::-1].clip(min=0))
    counts = [some.values.shape[0] * some.values.shape[1] for some in every]
    largest = max(float(np.abs(some.values).max()) / np.sqrt(n) for some, n in zip(every, counts))
    rank = int((lengths > LEAST * max(float(lengths[0]), largest)).sum())
    chosen: NDArray[Any] = vectors[:, ::-1][:, : min(k, rank, len(vectors) - 1)]
    signs = np.where(chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])] < 0, -1.0, 1.0)
    return (chosen * signs).astype(np.float32)
