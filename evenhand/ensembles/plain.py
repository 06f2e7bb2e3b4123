"""The value of an ensemble without numba: all rows go down all trees at once, level by level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 200_000  # walkers: rows times trees


def evaluate(
    x: NDArray[np.float64],
    trees: tuple[NDArray[Any], ...],
    missing_left: NDArray[np.bool_] | None,
    total: NDArray[np.float64],
) -> None:
    """``kernels.evaluate``: adds every tree's value to ``total``, up to the order of a sum."""
    roots = len(trees[6])
    step = max(1, _AT_ONCE // max(roots, 1))
    for start in range(0, len(x) if roots else 0, step):
        total[start : start + step] += _of_rows(x[start : start + step], trees, missing_left, total.shape[1])


def _of_rows(
    x: NDArray[np.float64], trees: tuple[NDArray[Any], ...], missing_left: NDArray[np.bool_] | None, outputs: int
) -> NDArray[np.float64]:
    """A walker for each row and tree: its row, where its leaf counts, its node, and its weight behind soft splits."""
    feature, threshold, width, left, right, value, root, output = trees
    n = len(x)
    row, node = np.repeat(np.arange(n), len(root)), np.tile(root, n)
    place, weight = row * outputs + np.tile(output, n), np.ones(n * len(root))
    sums = np.zeros(n * outputs)
    while len(node):
        there = feature[node] < 0
        if there.any():
            sums += np.bincount(place[there], value[node[there]] * weight[there], n * outputs)
            row, node, place, weight = (each[~there] for each in (row, node, place, weight))
        v, t, w = x[row, feature[node]], threshold[node], width[node]
        leftwards, soft = v <= t, w > 0
        if missing_left is not None:
            missing = np.isnan(v)
            leftwards, soft = np.where(missing, missing_left[node], leftwards), soft & ~missing
        both = np.zeros(0, dtype=np.intp)
        if soft.any():
            share = (v - t + w) / np.where(soft, 2 * w, 1.0)  # that goes to the right
            leftwards = np.where(soft, share <= 0, leftwards)
            both = (soft & (share > 0) & (share < 1)).nonzero()[0]
            others = row[both], right[node[both]], place[both], weight[both] * share[both]
            weight[both] *= 1 - share[both]
            leftwards[both] = True
        node = np.where(leftwards, left[node], right[node])
        if len(both):
            together = zip((row, node, place, weight), others)
            row, node, place, weight = (np.concatenate(parts) for parts in together)
    return sums.reshape(n, outputs)
