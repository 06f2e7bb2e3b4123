"""sup over x' in Dom of d_Y(h(x), h(x')) - lam * d_X(x, x') for a tree ensemble, by best-first branch and bound.

Dom is cut into boxes. In a box each tree lies between two values found by one walk (a split whose weight is somewhere
in [g_low, g_high] gives at most the larger of its two ends), and d_X = q(x' - x) is at least its tangent at any point:
q(e) + 2 (Sigma e) . (x' - x - e), least over the box in closed form, one-hot blocks included. So the bound is sound
wherever the search stops, and exact once no split of a box is open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.ensembles.compiled import compiled
from evenhand.ensembles.trees import Floats, Ints, TreeEnsemble

SLACK = 1e-9  # relative, for the rounding of sums


@dataclass(frozen=True, eq=False)
class People:
    """Dom and d_X as arrays: ranges, which columns hold only their two ends, one-hot blocks, Sigma."""

    low: Floats
    high: Floats
    discrete: NDArray[np.bool_]  # binary columns and those of blocks
    block: Ints  # (d,) the block of each column, -1 for none
    sigma: Floats  # (d, d)

    @property
    def blocks(self) -> int:
        return int(self.block.max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class Found:
    """lower <= sup <= upper for each person; ``witness`` reaches lower."""

    lower: Floats
    upper: Floats
    witness: Floats
    boxes: NDArray[np.int64]


def worst_case(
    ensemble: TreeEnsemble,
    people: People,
    x: Floats,
    *,
    lam: float = 0.0,
    radius: float = np.inf,
    scale: float = 1.0,
    weights: Floats | None = None,
    boxes: int = 2000,
    tolerance: float = 0.01,
    floor: float = 0.0,
) -> Found:
    """sup of scale * |h(x') - h(x)|^2 - lam * d_X over d_X <= radius, each person for themselves.

    weights (K,): instead the sup of weights . (h(x') - h(x)), for ranges of scores. A person is done when the bracket
    is within ``tolerance`` (relative) or ``floor`` (absolute), or after so many boxes.
    """
    rows = np.ascontiguousarray(x, dtype=np.float64)
    n, d = rows.shape
    lower, upper, used = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
    witness = rows.copy()
    squared = weights is None
    w = np.ones(ensemble.outputs) if weights is None else np.asarray(weights, dtype=np.float64)
    largest = max(float(np.linalg.eigvalsh(people.sigma)[-1]), 1e-300) if d else 1.0
    at_x = ensemble(rows)
    free = ~people.discrete
    curvature = 0.0  # q(delta) >= curvature * |delta|^2 for moves of the continuous columns alone
    if free.any() and bool((ensemble.width > 0).any()):
        curvature = max(float(np.linalg.eigvalsh(people.sigma[np.ix_(free, free)])[0]) - SLACK * largest, 0.0)
    _search(
        rows,
        at_x,
        *ensemble.arrays(),
        ensemble.base,
        people.low,
        people.high,
        people.discrete,
        people.block,
        people.blocks,
        np.ascontiguousarray(people.sigma),
        1.0 / largest,
        lam,
        radius,
        scale,
        squared,
        w,
        boxes,
        tolerance,
        floor,
        curvature,
        lower,
        upper,
        witness,
        used,
    )
    return Found(lower, upper, witness, used)


@compiled
def _range_of_trees(lo, hi, feature, threshold, width, left, right, value, root, output, base, low_out, high_out, spread, pull, fall, rise):  # type: ignore[no-untyped-def]
    """Smallest and largest value of each output over the box, trees apart; for each column how much its open splits
    matter (``spread``), with the mean place of them (``pull``); and bounds of each output's partial derivatives from
    the soft splits, ``fall`` <= dh_k/dx_j <= ``rise``.

    Each tree is walked once in post-order with an explicit stack, on which the range of the path's weight travels.
    """
    stack = np.empty(512, np.int32)
    state = np.empty(512, np.int8)
    least, most = np.empty(512), np.empty(512)
    bottom = np.empty(512)
    top_of = np.empty(512)
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
                        inside = lo[j] >= threshold[node] - w and hi[j] <= threshold[node] + w
                        flat = least[size] / (2 * w) if inside else 0.0
                        steep = most[size] / (2 * w)
                        up, down = right_high - left_low, right_low - left_high
                        rise[output[t], j] += steep * up if up > 0 else flat * up
                        fall[output[t], j] += steep * down if down < 0 else flat * down
        low_out[output[t]] += bottom[0]
        high_out[output[t]] += top_of[0]


@compiled
def _at_point(point, feature, threshold, width, left, right, value, root, output, base, out, stack, weights):  # type: ignore[no-untyped-def]
    for k in range(base.shape[0]):
        out[k] = base[k]
    for t in range(root.shape[0]):
        stack[0], weights[0], top = root[t], 1.0, 1
        while top > 0:
            top -= 1
            node, weight = stack[top], weights[top]
            while feature[node] >= 0:
                v, w = point[feature[node]], width[node]
                if w > 0:
                    g = (v - threshold[node] + w) / (2 * w)
                    if 0 < g < 1:
                        stack[top], weights[top] = right[node], weight * g
                        top += 1
                        node, weight = left[node], weight * (1 - g)
                    else:
                        node = left[node] if g <= 0 else right[node]
                else:
                    node = left[node] if v <= threshold[node] else right[node]
            out[output[t]] += weight * value[node]


@compiled
def _settle(lo, hi, low, high, discrete, block, blocks):  # type: ignore[no-untyped-def]
    """Discrete columns at one of their ends, one 1 in each block; False where nobody is left in the box."""
    for j in range(lo.shape[0]):
        if discrete[j]:
            if lo[j] > low[j]:
                lo[j] = high[j]
            if hi[j] < high[j]:
                hi[j] = low[j]
        if lo[j] > hi[j]:
            return False
    for b in range(blocks):
        ones, possible, last = 0, 0, -1
        for j in range(lo.shape[0]):
            if block[j] == b:
                if lo[j] >= 1.0:
                    ones += 1
                if hi[j] >= 1.0:
                    possible += 1
                    last = j
        if ones > 1 or possible == 0:
            return False
        if ones == 1:
            for j in range(lo.shape[0]):
                if block[j] == b and lo[j] < 1.0:
                    hi[j] = 0.0
        elif possible == 1:
            lo[last] = 1.0
    return True


@compiled
def _nearest(x, lo, hi, block, blocks, sigma, step, rounds, point, slope):  # type: ignore[no-untyped-def]
    """A lower bound of d_X from x to the box: projected gradient from ``point`` (which is moved), then the tangent."""
    d = x.shape[0]
    for r in range(rounds + 1):
        for j in range(d):
            s = 0.0
            for i in range(d):
                s += sigma[j, i] * (point[i] - x[i])
            slope[j] = s
        if r == rounds:
            break
        for j in range(d):
            point[j] = min(max(point[j] - step * slope[j], lo[j]), hi[j])
        for b in range(blocks):  # onto sum = 1 within the ranges, by bisection on the shift
            first, second = -2.0, 2.0
            total = 0.0
            for j in range(d):
                if block[j] == b:
                    total += point[j]
            if abs(total - 1.0) < 1e-9:
                continue
            for _ in range(30):
                shift = (first + second) / 2
                total = 0.0
                for j in range(d):
                    if block[j] == b:
                        total += min(max(point[j] + shift, lo[j]), hi[j])
                if total > 1.0:
                    second = shift
                else:
                    first = shift
            for j in range(d):
                if block[j] == b:
                    point[j] = min(max(point[j] + first, lo[j]), hi[j])
    q, tangent = 0.0, 0.0
    for j in range(d):
        q += slope[j] * (point[j] - x[j])
        tangent -= 2 * slope[j] * point[j]
        if block[j] < 0:
            tangent += min(2 * slope[j] * lo[j], 2 * slope[j] * hi[j])
    for b in range(blocks):
        least = np.inf
        for j in range(d):
            if block[j] == b and hi[j] >= 1.0:
                least = min(least, 2 * slope[j])
            if block[j] == b and lo[j] >= 1.0:
                least = 2 * slope[j]
                break
        tangent += least
    return max(q + tangent, 0.0)


@compiled
def _rounded(point, lo, hi, low, high, discrete, block, blocks, out):  # type: ignore[no-untyped-def]
    """A possible person in the box near the point."""
    d = point.shape[0]
    for j in range(d):
        v = min(max(point[j], lo[j]), hi[j])
        if discrete[j] and block[j] < 0:
            if lo[j] == hi[j]:
                v = lo[j]
            else:
                v = high[j] if 2 * v > low[j] + high[j] else low[j]
        out[j] = v
    for b in range(blocks):
        best, where = -np.inf, -1
        for j in range(d):
            if block[j] == b and hi[j] >= 1.0:
                v = point[j] + (1e9 if lo[j] >= 1.0 else 0.0)
                if v > best:
                    best, where = v, j
        for j in range(d):
            if block[j] == b:
                out[j] = 1.0 if j == where else 0.0


@compiled
def _search(x_all, at_all, feature, threshold, width, left, right, value, root, output, base, low, high, discrete, block, blocks, sigma, step, lam, radius, scale, squared, weights, boxes, tolerance, floor, curvature, lower, upper, witness, used):  # type: ignore[no-untyped-def]
    """Best-first: the box with the largest bound is cut next. Slots of lo, hi and near are reused."""
    n, d = x_all.shape
    outputs = base.shape[0]
    slots = boxes + 2
    lo_of, hi_of, near_of = np.empty((slots, d)), np.empty((slots, d)), np.empty((slots, d))
    bound_of = np.empty(slots)
    column_of, place_of = np.empty(slots, np.int64), np.empty(slots)
    heap = np.empty(slots, np.int64)
    low_out, high_out, out = np.empty(outputs), np.empty(outputs), np.empty(outputs)
    spread, pull, slope, person = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    stack, stack_weights = np.empty(4096, np.int32), np.empty(4096)
    fall, rise = np.empty((outputs, d)), np.empty((outputs, d))
    soft = np.zeros(d, np.bool_)
    for node in range(feature.shape[0]):
        if feature[node] >= 0 and width[node] > 0:
            soft[feature[node]] = True
    hard = False  # a hard split on a continuous column: there are jumps, and no derivative
    for node in range(feature.shape[0]):
        if feature[node] >= 0 and width[node] == 0 and not discrete[feature[node]]:
            hard = True
    for i in range(n):
        x, at_x = x_all[i], at_all[i]
        best, done, size, count, taken = 0.0, 0.0, 0, 1, 0
        for j in range(d):
            lo_of[0, j], hi_of[0, j], near_of[0, j] = low[j], high[j], x[j]
        fresh = np.zeros(2, np.int64)
        fresh_count = 1
        while True:
            for f in range(fresh_count):
                s = fresh[f]
                lo, hi, near = lo_of[s], hi_of[s], near_of[s]
                if not _settle(lo, hi, low, high, discrete, block, blocks):
                    continue
                for j in range(d):
                    near[j] = min(max(near[j], lo[j]), hi[j])
                price = _nearest(x, lo, hi, block, blocks, sigma, step, 8, near, slope) * (1 - SLACK)
                if price > radius:
                    continue
                _range_of_trees(lo, hi, feature, threshold, width, left, right, value, root, output, base, low_out, high_out, spread, pull, fall, rise)
                gain = 0.0
                for k in range(outputs):
                    up, down = high_out[k] - at_x[k], low_out[k] - at_x[k]
                    slack = SLACK * (1.0 + abs(high_out[k]) + abs(low_out[k]) + abs(at_x[k]))
                    up, down = up + slack, down - slack
                    if squared:
                        gain += max(up * up, down * down)
                    else:
                        gain += weights[k] * up if weights[k] > 0 else weights[k] * down
                if squared:
                    gain *= scale
                bound = gain - lam * price
                open_discrete = -1
                for j in range(d):
                    if discrete[j] and hi[j] > lo[j] and (open_discrete < 0 or near[j] > near[open_discrete]):
                        open_discrete = j
                if not hard and open_discrete < 0 and bound > best:
                    _at_point(near, feature, threshold, width, left, right, value, root, output, base, out, stack, stack_weights)
                    smooth = _by_slopes(out, at_x, near, lo, hi, fall, rise, curvature, price, lam, radius, scale, squared, weights)
                    bound = min(bound, smooth)
                _rounded(near, lo, hi, low, high, discrete, block, blocks, person)
                cost = 0.0
                for a in range(d):
                    for b in range(d):
                        cost += sigma[a, b] * (person[a] - x[a]) * (person[b] - x[b])
                cost = max(cost, 0.0)
                if cost <= radius and bound > best:
                    _at_point(person, feature, threshold, width, left, right, value, root, output, base, out, stack, stack_weights)
                    reached = 0.0
                    for k in range(outputs):
                        change = out[k] - at_x[k]
                        reached += change * change if squared else weights[k] * change
                    if squared:
                        reached *= scale
                    reached -= lam * cost
                    if reached > best:
                        best = reached
                        for j in range(d):
                            witness[i, j] = person[j]
                if bound <= best + max(tolerance * best, floor):
                    done = max(done, bound)
                    continue
                column, most = -1, 0.0
                for j in range(d):
                    if spread[j] > most and hi[j] > lo[j]:
                        column, most = j, spread[j]
                if column >= 0 and soft[column] and not discrete[column] and not hard and open_discrete >= 0:
                    column, place = open_discrete, 0.0  # slopes help once the discrete columns are settled
                elif column >= 0:
                    place = pull[column] / spread[column]
                    if not discrete[column]:
                        place = _cut(column, place, lo[column], hi[column], feature, threshold, width)
                else:  # every split is settled: what is left is how dear the discrete columns are
                    place, most = 0.0, 1e-6
                    for j in range(d):
                        if discrete[j] and hi[j] > lo[j]:
                            between = min(near[j] - lo[j], hi[j] - near[j]) / (hi[j] - lo[j])
                            if between > most:
                                column, most = j, between
                if column < 0 or not lo[column] <= place < hi[column] and not discrete[column]:
                    done = max(done, bound)
                    continue
                bound_of[s], column_of[s], place_of[s] = bound, column, place
                heap[size] = s
                at = size
                size += 1
                while at > 0 and bound_of[heap[(at - 1) // 2]] < bound_of[heap[at]]:
                    heap[at], heap[(at - 1) // 2] = heap[(at - 1) // 2], heap[at]
                    at = (at - 1) // 2
            if size == 0 or taken >= boxes or count >= slots:
                break
            s = heap[0]
            if bound_of[s] <= best + max(tolerance * best, floor):
                break
            size -= 1
            heap[0] = heap[size]
            at = 0
            while 2 * at + 1 < size:
                child = 2 * at + 1
                if child + 1 < size and bound_of[heap[child + 1]] > bound_of[heap[child]]:
                    child += 1
                if bound_of[heap[child]] <= bound_of[heap[at]]:
                    break
                heap[at], heap[child] = heap[child], heap[at]
                at = child
            taken += 1
            other, column, place = count, column_of[s], place_of[s]
            count += 1
            for j in range(d):
                lo_of[other, j], hi_of[other, j], near_of[other, j] = lo_of[s, j], hi_of[s, j], near_of[s, j]
            if discrete[column]:
                hi_of[s, column] = low[column]
                lo_of[other, column] = high[column]
            else:
                hi_of[s, column] = place
                lo_of[other, column] = np.nextafter(place, np.inf)
            fresh[0], fresh[1] = s, other
            fresh_count = 2
        top = done
        for h in range(size):
            top = max(top, bound_of[heap[h]])
        lower[i], upper[i], used[i] = best, max(top, best), taken


@compiled
def _by_slopes(out, at_x, near, lo, hi, fall, rise, curvature, price, lam, radius, scale, squared, weights):  # type: ignore[no-untyped-def]
    """The mean value theorem from the nearest point c of the box: with a = |h(c) - h(x)| and slopes at most gamma, at
    distance t from c the outputs have changed by at most a + gamma t, and d_X is at least price + curvature t^2."""
    reach, a, b, steep, linear, linear_slope = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(near.shape[0]):
        away = max(hi[j] - near[j], near[j] - lo[j])
        reach += away * away
    for k in range(at_x.shape[0]):
        gamma = 0.0
        for j in range(near.shape[0]):
            g = 0.0
            if hi[j] > near[j] or lo[j] < near[j]:
                g = max(rise[k, j], -fall[k, j])
            gamma += g * g
        gamma *= 1 + SLACK
        change = abs(out[k] - at_x[k]) + SLACK * (1.0 + abs(out[k]) + abs(at_x[k]))
        a += change * change
        b += change * np.sqrt(gamma)
        steep += gamma
        linear += weights[k] * (out[k] - at_x[k]) + abs(weights[k]) * SLACK * (1.0 + abs(out[k]) + abs(at_x[k]))
        linear_slope += abs(weights[k]) * np.sqrt(gamma)
    t = np.sqrt(reach)
    if curvature > 0 and radius < np.inf:
        t = min(t, np.sqrt(max(radius - price, 0.0) / curvature))
    if not squared:
        if lam * curvature > 0:
            t = min(t, linear_slope / (2 * lam * curvature))
        return linear + linear_slope * t - lam * (price + curvature * t * t)
    if scale * steep < lam * curvature:
        t = min(t, scale * b / (lam * curvature - scale * steep))
    return scale * (a + 2 * b * t + steep * t * t) - lam * (price + curvature * t * t)


@compiled
def _cut(column, place, lo, hi, feature, threshold, width):  # type: ignore[no-untyped-def]
    """Where to cut: at the open hard threshold nearest to ``place``, or inside the ramps and off the ends."""
    best, away, soft = np.nan, np.inf, False
    for node in range(feature.shape[0]):
        if feature[node] == column:
            if width[node] > 0:
                soft = True
            elif lo <= threshold[node] < hi and abs(threshold[node] - place) < away:
                best, away = threshold[node], abs(threshold[node] - place)
    if not np.isnan(best):
        return best
    if soft:
        margin = 0.1 * (hi - lo)
        return min(max(place, lo + margin), hi - margin)
    return np.nan
