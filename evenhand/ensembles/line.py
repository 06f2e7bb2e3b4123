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
RARE = 0.01  # of the people at either end of a column: what only they have moves no score any further


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

    The line is flat beyond the usual range of a column: a few extreme values, which move the loss little, would make
    possible people whose scores nobody has. Columns with missing values keep slope 0."""
    d, k = x.shape[1], y.shape[1]
    low, high = usual_range(x, weight)
    x = np.clip(x, low, high)
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


def usual_range(x: Array, weight: Array) -> tuple[Array, Array]:
    """Between which values of each column all but the rarest people lie, at either end: (d,), (d,). Where nearly all
    have the same value, from there to the median of the others on either side; 0 and 0 where all values are missing."""
    ends = [_usual(column[known], weight[known]) for column, known in zip(x.T, ~np.isnan(x.T))]
    low, high = np.array(ends).reshape(-1, 2).T
    return low, high


def _usual(values: Array, weight: Array) -> tuple[float, float]:
    order = np.argsort(values, kind="stable")
    v, share = values[order], np.cumsum(weight[order])
    if not len(v):
        return 0.0, 0.0

    def quantile(q: float, among: slice = slice(None)) -> float:
        """The first value at or below which lies a share q of what is among these."""
        start = share[among.start - 1] if among.start else 0.0
        part = share[among] - start
        return float(v[among][np.searchsorted(part, q * part[-1] * (1 - 1e-12))])

    low, high = quantile(RARE), quantile(1 - RARE)
    if low == high:
        below, above = (int(np.searchsorted(v, low, side=side)) for side in ("left", "right"))
        low = quantile(0.5, slice(0, below)) if below else low
        high = quantile(0.5, slice(above, len(v))) if above < len(v) else high
    return low, high
