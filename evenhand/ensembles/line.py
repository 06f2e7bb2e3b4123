"""A fair straight line to start from, written as trees: what is straight in the data needs no staircase.

A split whose ramp reaches over the whole range of its column is a straight line there, so that a line is a sum of such
stumps: searches, bounds, files and exports see trees and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.ensembles.losses import Loss
from evenhand.ensembles.read import Tree

Array = NDArray[np.float64]
STEPS = 8, 20  # of Newton's method: for one output, and for several, of which the curvature is only bounded
SMALL = 1e-3  # of the scores' spread: a column that moves them by less is left out


class Line(NamedTuple):
    """base + sum of slope[j] * (x_j - middle[j]), for each of K outputs; flat beyond the range of each column."""

    slope: Array  # (d, K)
    base: Array  # (K,)
    low: Array  # (d,)
    high: Array
    middle: Array

    def stumps(self) -> tuple[list[Tree], list[int], Array]:
        """A stump for each column and output that matters, to which output it adds, and half the width of its ramp.
        A missing value counts as the nearer end of the column."""
        trees, output, width = [], [], []
        for j, c in np.argwhere(self.slope != 0):
            low, high, middle = self.low[j], self.high[j], self.middle[j]
            ends = self.slope[j, c] * (np.array([low, high]) - middle)
            trees.append(
                Tree(
                    np.array([j, -1, -1]),
                    np.array([(low + high) / 2, 0.0, 0.0]),
                    np.array([1, 0, 0]),
                    np.array([2, 0, 0]),
                    np.array([0.0, *ends]),
                    np.full(3, middle - low <= high - middle),
                )
            )
            output.append(int(c))
            width.append((high - low) / 2)
        return trees, output, np.array(width)


def fair_line(
    x: Array, loss: Loss, y: Array, weight: Array, base: Array, worst: Array, rho: float, l2: float, worth: Array
) -> Line:
    """Minimises the loss + rho * w' worst w / variance of the scores + ridge: worst is the quadratic form whose value
    at the slopes w is how much the score of a person changes within what they are similar to.

    Columns with missing values keep slope 0."""
    d, k = x.shape[1], y.shape[1]
    low, high = (np.nan_to_num(f.reduce(x, axis=0)) for f in (np.fmin, np.fmax))
    usable = np.flatnonzero(~np.isnan(x).any(0) & (high > low))
    middle = np.average(np.nan_to_num(x), axis=0, weights=weight)
    z = x[:, usable] - middle[usable]
    spread = (z * weight[:, None]).T @ z / weight.sum()
    q, dear = worst[np.ix_(usable, usable)], 1 / worth[usable] - 1
    w, b = np.zeros((len(usable), k)), base.copy()
    for _ in range(STEPS[0] if k == 1 else STEPS[1]):
        _, slope, bend = loss(b + z @ w, y)
        variance = float((w * (spread @ w)).sum())
        fade = 1 / max(variance, 1.0)
        unfair = float((w * (q @ w)).sum())
        regain = rho * weight.sum() * 2 * unfair * fade**2 * (variance > 1) * spread @ w
        step = np.zeros_like(w)
        for c in range(k):
            bent = np.maximum(bend[:, c], 1e-9) * weight * (1.0 if k == 1 else 2.0)
            held = 2 * rho * weight.sum() * fade * q + np.diag(l2 * spread.diagonal() + 1e-9)
            bends = (z * bent[:, None]).T @ z
            held += np.diag(dear * (bends + held).diagonal())
            g = z.T @ (slope[:, c] * weight) + held @ w[:, c] - regain[:, c]
            step[:, c] = np.linalg.solve(bends + held, g)
            b[c] -= (slope[:, c] @ weight) / bent.sum()
        w -= step
    slopes = np.zeros((d, k))
    moves = np.abs(w) * np.sqrt(spread.diagonal())[:, None]
    slopes[usable] = np.where(moves > SMALL * float((w * (spread @ w)).sum()) ** 0.5, w, 0.0)
    return Line(slopes, b, low, high, middle)
