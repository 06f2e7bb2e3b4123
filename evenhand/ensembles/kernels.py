"""The compiled kernels: values, ranges and worst cases of trees. numba where it is installed; plain Python, the same
results and far slower, where it is not (values: see plain.py). Imported where they are used, because numba takes a
second to load."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

try:
    import numba
except (ImportError, AttributeError):  # not there, or something else answers to the name of what it needs
    numba = None  # type: ignore[assignment]

COMPILES = numba is not None
SLACK = 1e-9  # relative, for the rounding of sums


def compiled(function: F) -> F:
    """The function as machine code, compiled at its first call and kept on disk."""
    made: Any = function if numba is None else numba.njit(cache=True)(function)
    return made  # type: ignore[no-any-return]


@compiled
def tree_at(point, at, trees, stack, weights, missing_left=None):
    """The value of one tree at a point; a stack of (node, weight) holds the branches that soft splits open. Where
    missing values go is asked only of those who may have some."""
    feature, threshold, width, left, right, value, root, _ = trees
    total = 0.0
    stack[0], weights[0], top = root[at], 1.0, 1
    while top > 0:
        top -= 1
        node, weight = stack[top], weights[top]
        while feature[node] >= 0:
            v, w = point[feature[node]], width[node]
            if missing_left is not None and np.isnan(v):
                node = left[node] if missing_left[node] else right[node]
            elif w > 0:
                g = (v - threshold[node] + w) / (2 * w)
                if 0 < g < 1:
                    stack[top], weights[top] = right[node], weight * g
                    top += 1
                    node, weight = left[node], weight * (1 - g)
                else:
                    node = left[node] if g <= 0 else right[node]
            else:
                node = left[node] if v <= threshold[node] else right[node]
        total += weight * value[node]
    return total


@compiled
def evaluate(x, trees, missing_left, total):
    """Adds every tree's value to ``total``."""
    root, output = trees[6], trees[7]
    stack, weights = np.empty(4096, np.int32), np.empty(4096)
    for i in range(x.shape[0]):
        for t in range(root.shape[0]):
            total[i, output[t]] += tree_at(x[i], t, trees, stack, weights, missing_left)


@compiled
def range_of_trees(lo, hi, trees, base, low_out, high_out, spread, pull, fall, rise):
    """Smallest and largest value of each output over the box, trees apart; for each column how much its open splits
    matter (``spread``), with the mean place of them (``pull``); and bounds of each output's partial derivatives from
    the soft splits, ``fall`` <= dh_k/dx_j <= ``rise``, (K, d, bins): bin b speaks of that part of column j's side of
    the box. The ramps that do not reach into a bin add nothing there.

    Each tree is walked once in post-order with an explicit stack, on which the range of the path's weight travels.
    """
    feature, threshold, width, left, right, value, root, output = trees
    stack = np.empty(512, np.int32)
    state = np.empty(512, np.int8)
    least, most = np.empty(512), np.empty(512)
    bottom = np.empty(512)
    top_of = np.empty(512)
    bins = rise.shape[2]
    fall[:] = 0.0
    rise[:] = 0.0
    for k in range(base.shape[0]):
        low_out[k] = base[k]
        high_out[k] = base[k]
    for j in range(lo.shape[0]):
        spread[j] = 0.0
        pull[j] = 0.0
    for t in range(root.shape[0]):
        size, values = 0, 0
        stack[0], state[0], size = root[t], 0, 1
        least[0], most[0] = 1.0, 1.0
        while size > 0:
            node, now = stack[size - 1], state[size - 1]
            j = feature[node]
            if j < 0:
                bottom[values] = value[node]
                top_of[values] = value[node]
                values += 1
                size -= 1
                continue
            w = width[node]
            if w > 0:
                g_low = min(max((lo[j] - threshold[node] + w) / (2 * w), 0.0), 1.0)
                g_high = min(max((hi[j] - threshold[node] + w) / (2 * w), 0.0), 1.0)
            else:
                g_low = 0.0 if lo[j] <= threshold[node] else 1.0
                g_high = 0.0 if hi[j] <= threshold[node] else 1.0
            if now == 0:
                state[size - 1] = 1
                if g_low < 1.0:
                    stack[size], state[size] = left[node], 0
                    least[size], most[size] = least[size - 1] * (1 - g_high), most[size - 1] * (1 - g_low)
                    size += 1
                else:
                    bottom[values], top_of[values] = 0.0, 0.0
                    values += 1
                continue
            if now == 1:
                state[size - 1] = 2
                if g_high > 0.0:
                    stack[size], state[size] = right[node], 0
                    least[size], most[size] = least[size - 1] * g_low, most[size - 1] * g_high
                    size += 1
                else:
                    bottom[values], top_of[values] = 0.0, 0.0
                    values += 1
                continue
            size -= 1
            values -= 1
            right_low, right_high = bottom[values], top_of[values]
            left_low, left_high = bottom[values - 1], top_of[values - 1]
            if g_low == 1.0:
                bottom[values - 1], top_of[values - 1] = right_low, right_high
            elif g_high == 0.0:
                pass
            else:
                a = (1 - g_low) * left_high + g_low * right_high
                b = (1 - g_high) * left_high + g_high * right_high
                top_of[values - 1] = max(a, b)
                a = (1 - g_low) * left_low + g_low * right_low
                b = (1 - g_high) * left_low + g_high * right_low
                bottom[values - 1] = min(a, b)
                if g_high > g_low:
                    matters = (g_high - g_low) * (max(left_high, right_high) - min(left_low, right_low))
                    spread[j] += matters
                    place = min(max(threshold[node], lo[j]), hi[j])
                    if w > 0 and (threshold[node] <= lo[j] or threshold[node] >= hi[j]):
                        place = (lo[j] + hi[j]) / 2
                    pull[j] += matters * place
                    if w > 0:
                        up, down = right_high - left_low, right_low - left_high
                        steep, flat = most[size] / (2 * w), least[size] / (2 * w)
                        scale = bins / (hi[j] - lo[j])
                        start = (threshold[node] - w - lo[j]) * scale
                        stop = (threshold[node] + w - lo[j]) * scale
                        for b in range(max(int(start - 1e-6), 0), min(int(stop + 1e-6), bins - 1) + 1):
                            inside = b >= start + 1e-6 and b + 1 <= stop - 1e-6
                            if up > 0:
                                rise[output[t], j, b] += steep * up
                            elif inside:
                                rise[output[t], j, b] += flat * up
                            if down < 0:
                                fall[output[t], j, b] += steep * down
                            elif inside:
                                fall[output[t], j, b] += flat * down
        low_out[output[t]] += bottom[0]
        high_out[output[t]] += top_of[0]


@compiled
def at_point(point, trees, base, out, stack, weights):
    root, output = trees[6], trees[7]
    for k in range(base.shape[0]):
        out[k] = base[k]
    for t in range(root.shape[0]):
        out[output[t]] += tree_at(point, t, trees, stack, weights)
