"""A sum of decision trees whose splits may be soft, as flat arrays.

A split sends x to the right with weight g(x_j) = clip((x_j - threshold + width) / (2 width), 0, 1) and to the left
with the rest; width 0 is the usual hard split, x_j <= threshold to the left. A tree's value is the sum of its leaves,
each weighted by the product of the splits on its path: a continuous function where the widths are positive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

DEEPEST = 250  # splits on a path: the kernels' stacks hold no more
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """h(x) = base + sum of trees, (n, d) -> (n, K); node i is a leaf where ``feature[i]`` is -1."""

    feature: Ints  # (nodes,)
    threshold: Floats  # (nodes,)
    width: Floats  # (nodes,) half the length of the ramp
    left: Ints
    right: Ints
    value: Floats  # (nodes,) what a leaf adds
    missing_left: NDArray[np.bool_]  # (nodes,) where a missing value goes
    root: Ints  # (trees,)
    output: Ints  # (trees,) to which of the K outputs a tree adds
    base: Floats  # (K,)
    d: int

    @property
    def trees(self) -> int:
        return len(self.root)

    @property
    def outputs(self) -> int:
        """K."""
        return len(self.base)

    def __call__(self, x: ArrayLike) -> Floats:
        from evenhand.frames import numbers  # at use: pandas takes long to import

        rows = np.ascontiguousarray(numbers(x, "x"))
        if rows.ndim != 2 or rows.shape[1] != self.d:
            raise ValueError(f"the ensemble was read for {self.d} features but x has shape {rows.shape}")
        total = np.repeat(self.base[None], len(rows), 0)
        from evenhand.ensembles import kernels, plain

        if kernels.COMPILES:
            kernels.evaluate(rows, self.arrays(), self.missing_left, total)  # type: ignore[no-untyped-call]
        else:
            plain.evaluate(rows, self.arrays(), self.missing_left, total)
        return total

    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """What the compiled kernels take, in their order."""
        return (
            self.feature,
            self.threshold,
            self.width,
            self.left,
            self.right,
            self.value,
            self.root,
            self.output,
        )

    @property
    def depth(self) -> int:
        """The most splits on a path."""
        at, levels = self.root, 0
        while len(inner := at[self.feature[at] >= 0]):
            at, levels = np.concatenate([self.left[inner], self.right[inner]]), levels + 1
        return levels

    def scaled(self, slope: float, shift: ArrayLike = 0.0) -> TreeEnsemble:
        """slope * h(x) + shift."""
        base = slope * self.base + np.broadcast_to(np.asarray(shift, dtype=np.float64), self.base.shape)
        return replace(self, value=slope * self.value, base=base)

    def softened(self, width: ArrayLike, binary: dict[int, tuple[float, float]] | None = None) -> TreeEnsemble:
        """Soft splits of half-width ``width[j]`` in column j. Columns with only two values (low, high) change evenly
        between them: at both the ensemble gives what it gave before."""
        inner = self.feature >= 0
        column = np.where(inner, self.feature, 0)
        soft = np.where(inner, np.asarray(width, dtype=np.float64)[column], 0.0)
        threshold = self.threshold.copy()
        for j, (low, high) in (binary or {}).items():
            cut = inner & (self.feature == j) & (threshold >= low) & (threshold < high)
            threshold[cut], soft[cut] = (low + high) / 2, (high - low) / 2
        return replace(self, threshold=threshold, width=soft)

    def ramped(self, width: Floats) -> TreeEnsemble:
        """The first trees' roots as ramps of these half-widths."""
        wide = self.width.copy()
        wide[self.root[: len(width)]] = width
        return replace(self, width=wide)

    def jumps(self) -> list[Floats] | None:
        """The thresholds of each column at which the output may jump; None where all splits are ramps."""
        hard = (self.feature >= 0) & (self.width == 0)
        return [np.unique(self.threshold[hard & (self.feature == j)]) for j in range(self.d)] if hard.any() else None

    def thresholds(self) -> list[Floats]:
        """The places of each column where something changes: thresholds, and both ends of ramps."""
        found = []
        for j in range(self.d):
            here = self.feature == j
            t, w = self.threshold[here], self.width[here]
            found.append(np.unique(np.concatenate([t, t - w, t + w])))
        return found
