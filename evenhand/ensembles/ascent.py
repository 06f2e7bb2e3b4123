"""Uphill in d_Y - lam * d_X, one column or one-hot block at a time, for tree ensembles, compiled.

Along a column whose splits are hard the ensemble is constant between thresholds, so the best value of the column is
found exactly: one walk through each tree gives its values between all thresholds, and in each of these intervals the
cheapest place is known. Columns with ramps are tried at the ends of ramps and at the cheapest place. Only the trees
that split a column are walked through when it moves.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.ensembles.kernels import compiled, tree_at
from evenhand.ensembles.trees import Floats, TreeEnsemble
from evenhand.ensembles.worst_case import People

PASSES = 6  # through all columns
PLACES = 6  # tried along a column with ramps


@dataclass(frozen=True, eq=False)
class Lines:
    """What the kernel has to know of the columns: hard thresholds of each, one column after the other, the float32
    numbers on their two sides, and the places to try along ramps."""

    start: NDArray[np.int64]  # (d + 1,) where each column's thresholds begin
    until: Floats
    after: Floats
    place: NDArray[np.int64]  # (nodes,) the place of a node's threshold among its column's
    ramp_start: NDArray[np.int64]  # (d + 1,)
    ramp: Floats
    user_start: NDArray[np.int64]  # (d + 1,)
    user: NDArray[np.int64]  # the trees that split each column

    @classmethod
    def of(cls, ensemble: TreeEnsemble) -> Lines:
        marks = ensemble.jumps() or [np.zeros(0)] * ensemble.d
        ramps, users, place = [], [], np.zeros(len(ensemble.feature), np.int64)
        tree = np.searchsorted(ensemble.root, np.arange(len(ensemble.feature)), side="right") - 1
        for j in range(ensemble.d):
            here = ensemble.feature == j
            hard, soft = here & (ensemble.width == 0), here & (ensemble.width > 0)
            place[hard] = np.searchsorted(marks[j], ensemble.threshold[hard])
            t, w = ensemble.threshold[soft], ensemble.width[soft]
            ends = np.unique(np.concatenate([t - w, t, t + w, *([marks[j]] if soft.any() else [])]))
            some = np.linspace(0, max(len(ends) - 1, 0), min(PLACES, len(ends))).astype(int)
            ramps.append(ends[some])
            users.append(np.unique(tree[here]))
        hard_marks = np.concatenate(marks)
        near = hard_marks.astype(np.float32)
        until = np.where(near <= hard_marks, near, np.nextafter(near, np.float32(-np.inf)))
        after = np.where(near > hard_marks, near, np.nextafter(near, np.float32(np.inf)))
        return cls(
            _starts(marks),
            until.astype(np.float64),
            after.astype(np.float64),
            place,
            _starts(ramps),
            np.concatenate(ramps),
            _starts(users),
            np.concatenate(users).astype(np.int64),
        )


def _starts(parts: list[NDArray[Any]]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def ascend(
    ensemble: TreeEnsemble, lines: Lines, people: People, x: Floats, start: Floats, lam: float, scale: float
) -> Floats:
    """From possible people ``start``, (n, d), to better ones of scale * |h(x') - h(x)|^2 - lam * d_X: never below."""
    points = np.array(start, dtype=np.float64, order="C")
    rows = np.ascontiguousarray(x, dtype=np.float64)
    columns = (lines.start, lines.until, lines.after, lines.place, lines.ramp_start, lines.ramp)
    space = (people.low, people.high, people.discrete, people.block, people.sigma)
    longest = int(np.diff(lines.start).max(initial=0)) + 2
    users = (lines.user_start, lines.user)
    climb(rows, points, ensemble.arrays(), ensemble.base, columns, users, space, lam, scale, longest)  # type: ignore[no-untyped-call]
    return points


@compiled
def _along(point, column, trees, place, count, users, one, out, levels, stack, first, last):
    """The outputs between all thresholds of a column: (count + 1, K) into ``levels``; its splits are hard."""
    feature, threshold, _, left, right, value, root, output = trees
    begin, user = users
    for i in range(count + 1):
        for k in range(levels.shape[1]):
            levels[i, k] = out[k] if i == 0 else 0.0
    for u in range(begin[column], begin[column + 1]):
        t = user[u]
        k = output[t]
        levels[0, k] -= one[t]
        stack[0], first[0], last[0], top = root[t], 0, count, 1  # the intervals first ... last are on their way
        while top > 0:
            top -= 1
            node, a, b = stack[top], first[top], last[top]
            while feature[node] >= 0:
                if feature[node] == column:
                    p = place[node]  # intervals 0 ... p go to the left
                    if b <= p:
                        node = left[node]
                    elif a > p:
                        node = right[node]
                    else:
                        stack[top], first[top], last[top] = right[node], p + 1, b
                        top += 1
                        node, b = left[node], p
                else:
                    node = left[node] if point[feature[node]] <= threshold[node] else right[node]
            levels[a, k] += value[node]
            if b < count:
                levels[b + 1, k] -= value[node]
    for i in range(1, count + 1):
        for k in range(levels.shape[1]):
            levels[i, k] += levels[i - 1, k]


@compiled
def _gain(out, at_x, cost, lam, scale):
    squares = 0.0
    for k in range(at_x.shape[0]):
        squares += (out[k] - at_x[k]) ** 2
    return scale * squares - lam * cost


@compiled
def _changed(point, column, other, trees, users, one, out, trial, stack, weights, keep):
    """Outputs after a change of one or two columns (``other`` may be -1) into ``trial``; ``one`` holds each value
    of a tree before it, and with ``keep`` after it."""
    begin, user = users
    output = trees[7]
    for k in range(out.shape[0]):
        trial[k] = out[k]
    for side in range(2):
        j = column if side == 0 else other
        if j < 0:
            continue
        for u in range(begin[j], begin[j + 1]):
            t = user[u]
            if side == 1:  # splits the first column too: counted already
                first, last = begin[column], begin[column + 1]
                while first < last:
                    middle = (first + last) // 2
                    if user[middle] < t:
                        first = middle + 1
                    else:
                        last = middle
                if first < begin[column + 1] and user[first] == t:
                    continue
            now = tree_at(point, t, trees, stack, weights)
            trial[output[t]] += now - one[t]
            if keep:
                one[t] = now


@compiled
def _moved(point, pull, sigma, column, value):
    """Sets a column and keeps ``pull`` = Sigma (x' - x) true."""
    step = value - point[column]
    for i in range(point.shape[0]):
        pull[i] += sigma[i, column] * step
    point[column] = value


@compiled
def climb(x, points, trees, base, columns, users, space, lam, scale, longest):
    """All people's ways uphill; ``points`` is moved."""
    begin, until, after, place, ramp_begin, ramp = columns
    low, high, discrete, block, sigma = space
    count_of_trees, output = trees[6].shape[0], trees[7]
    d, outputs = x.shape[1], base.shape[0]
    at_x, out, trial, levels = np.empty(outputs), np.empty(outputs), np.empty(outputs), np.empty((longest, outputs))
    stack, first, last = np.empty(4096, np.int32), np.empty(4096, np.int64), np.empty(4096, np.int64)
    weights, pull, one = np.empty(4096), np.empty(d), np.empty(count_of_trees)
    for i in range(x.shape[0]):
        point = points[i]
        at_x[:], out[:] = base, base
        for t in range(count_of_trees):
            at_x[output[t]] += tree_at(x[i], t, trees, stack, weights)
            one[t] = tree_at(point, t, trees, stack, weights)
            out[output[t]] += one[t]
        cost = 0.0
        for a in range(d):
            pull[a] = 0.0
            for b in range(d):
                pull[a] += sigma[a, b] * (point[b] - x[i, b])
            cost += pull[a] * (point[a] - x[i, a])
        value = _gain(out, at_x, cost, lam, scale)
        for _ in range(PASSES):
            before = value
            for j in range(d):
                if low[j] >= high[j]:
                    continue
                here, best, chosen, price, old = point[j], value + 1e-9 * abs(value), np.nan, cost, -1
                cheapest = here - pull[j] / sigma[j, j] if sigma[j, j] > 1e-12 else x[i, j]
                if discrete[j] and block[j] >= 0:
                    for c in range(d):  # the category that the person has
                        if block[c] == block[j] and point[c] >= 0.5:
                            old = c
                    if old < 0 or old == j:
                        continue
                    point[old], point[j] = 0.0, 1.0
                    _changed(point, j, old, trees, users, one, out, trial, stack, weights, False)
                    point[old], point[j] = 1.0, here
                    paid = cost + 2 * (pull[j] - pull[old]) + sigma[j, j] + sigma[old, old] - 2 * sigma[j, old]
                    reached = _gain(trial, at_x, paid, lam, scale)
                    if reached > best:
                        best, chosen, price = reached, 1.0, paid
                elif discrete[j] or ramp_begin[j + 1] > ramp_begin[j]:
                    count = 0 if discrete[j] else ramp_begin[j + 1] - ramp_begin[j]
                    for r in range(1 if discrete[j] else count + 6):
                        if discrete[j]:
                            tried = low[j] + high[j] - here
                        elif r < count:
                            tried = ramp[ramp_begin[j] + r]
                        elif r == count:
                            tried = cheapest
                        elif r == count + 1:
                            tried = (here + cheapest) / 2
                        elif r == count + 2:
                            tried = here + 0.2 * (here - x[i, j])
                        elif r == count + 3:
                            tried = x[i, j]
                        else:
                            tried = low[j] if r == count + 4 else high[j]
                        tried = min(max(tried, low[j]), high[j])
                        if tried == here:
                            continue
                        point[j] = tried
                        _changed(point, j, -1, trees, users, one, out, trial, stack, weights, False)
                        step = tried - here
                        paid = cost + 2 * step * pull[j] + step * step * sigma[j, j]
                        reached = _gain(trial, at_x, paid, lam, scale)
                        if reached > best:
                            best, chosen, price = reached, tried, paid
                    point[j] = here
                else:
                    count = begin[j + 1] - begin[j]
                    _along(point, j, trees, place, count, users, one, out, levels, stack, first, last)
                    for r in range(count + 1):
                        a = low[j] if r == 0 else max(after[begin[j] + r - 1], low[j])
                        b = high[j] if r == count else min(until[begin[j] + r], high[j])
                        if a > b:
                            continue
                        step = min(max(cheapest, a), b) - here
                        paid = cost + 2 * step * pull[j] + step * step * sigma[j, j]
                        reached = _gain(levels[r], at_x, paid, lam, scale)
                        if reached > best:
                            best, chosen, price = reached, here + step, paid
                if not np.isnan(chosen):
                    if old >= 0:
                        _moved(point, pull, sigma, old, 0.0)
                    _moved(point, pull, sigma, j, chosen)
                    _changed(point, j, old, trees, users, one, out, trial, stack, weights, True)
                    out[:] = trial
                    value, cost = _gain(out, at_x, price, lam, scale), price
            if value <= before + 1e-6 * abs(before):
                break
