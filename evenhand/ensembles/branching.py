"""Branch and bound over boxes of Dom, compiled: see ``worst_case``."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from evenhand.ensembles.kernels import SLACK, at_point, compiled, range_of_trees
from evenhand.ensembles.separable import by_columns, by_slopes

BINS = 16  # of each column's side of a box, for the slopes


@compiled
def _settle(lo, hi, low, high, discrete, block, blocks):
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
def _nearest(x, lo, hi, block, blocks, sigma, step, rounds, point, slope):
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
def _rounded(point, lo, hi, low, high, discrete, block, blocks, out):
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
def _price(sigma, x, person):
    """d_X."""
    cost = 0.0
    for a in range(x.shape[0]):
        for b in range(x.shape[0]):
            cost += sigma[a, b] * (person[a] - x[a]) * (person[b] - x[b])
    return max(cost, 0.0)


@compiled
def _shortened(x, person, discrete, share):
    """The person nearer to x, at a share of the d_X; not if a discrete column would have to change by parts."""
    for j in range(x.shape[0]):
        if discrete[j] and person[j] != x[j]:
            return False
    t = np.sqrt(share) * (1 - SLACK)
    for j in range(x.shape[0]):
        person[j] = x[j] + t * (person[j] - x[j])
    return True


@compiled
def search(
    x_all,
    at_all,
    trees,
    base,
    dom,
    lam,
    radius,
    scale,
    squared,
    weights,
    boxes,
    tolerance,
    floor,
    curvature,
    apart,
    lower,
    upper,
    witness,
    used,
):
    """Best-first: the box with the largest bound is cut next. Slots of lo, hi and near are reused."""
    feature, threshold, width, left, right, value, root, output = trees
    low, high, discrete, block, blocks, sigma, step = dom
    level, along, rest = apart
    n, d = x_all.shape
    outputs = base.shape[0]
    slots = boxes + 2
    lo_of, hi_of, near_of = np.empty((slots, d)), np.empty((slots, d)), np.empty((slots, d))
    bound_of = np.empty(slots)
    column_of, place_of = np.empty(slots, np.int64), np.empty(slots)
    heap = np.empty(slots, np.int64)
    low_out, high_out, out = np.empty(outputs), np.empty(outputs), np.empty(outputs)
    spread, pull, slope, person = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    tangent, where = np.empty(d), np.empty(d)
    stack, stack_weights = np.empty(4096, np.int32), np.empty(4096)
    fall, rise = np.empty((outputs, d, BINS)), np.empty((outputs, d, BINS))
    soft = np.zeros(d, np.bool_)
    for node in range(feature.shape[0]):
        if feature[node] >= 0 and width[node] > 0:
            soft[feature[node]] = True
    hard = False  # a hard split on a continuous column: there are jumps, and no derivative
    columnwise = level > 0 and (lam > 0 or radius < np.inf)
    for node in range(feature.shape[0]):
        if feature[node] >= 0 and width[node] == 0:
            columnwise = False
            if not discrete[feature[node]]:
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
                range_of_trees(lo, hi, trees, base, low_out, high_out, spread, pull, fall, rise)
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
                if not hard and not columnwise and open_discrete < 0 and bound > best:
                    at_point(
                        near,
                        trees,
                        base,
                        out,
                        stack,
                        stack_weights,
                    )
                    smooth = by_slopes(
                        out, at_x, near, lo, hi, fall, rise, curvature, price, lam, radius, scale, squared, weights
                    )
                    bound = min(bound, smooth)
                tries = 1
                enough = best + max(tolerance * best, floor)
                if columnwise and bound > enough:
                    at_point(near, trees, base, out, stack, stack_weights)
                    beyond = 0.0
                    for a in range(d):
                        tangent[a] = 0.0
                        for b in range(d):
                            tangent[a] += 2 * rest[a, b] * (near[b] - x[b])
                        beyond += tangent[a] * (near[a] - x[a]) / 2
                    # d_X <= radius has a price too; every price is sound, this one is right where h is linear
                    more, credit = 0.0, 0.0
                    if 0 < radius < np.inf:
                        credit = max(best, 1e-12) * (1.0 if squared else 0.5)
                        more = credit / radius
                    columns = by_columns(
                        x, at_x, near, out, lo, hi, discrete, block, blocks, fall, rise, low_out, high_out, level,
                        along, tangent, beyond, lam + more, scale, squared, weights, enough - credit, where,
                    )  # fmt: skip
                    bound, tries = min(bound, columns + credit), 2
                for attempt in range(tries):
                    if bound <= best:
                        break
                    _rounded(near if attempt == 0 else where, lo, hi, low, high, discrete, block, blocks, person)
                    cost = _price(sigma, x, person)
                    if cost > radius and _shortened(x, person, discrete, radius / cost):
                        cost = _price(sigma, x, person)
                    if cost > radius:
                        continue
                    at_point(person, trees, base, out, stack, stack_weights)
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
                waits = open_discrete >= 0 and not columnwise and not hard
                if waits and column >= 0 and soft[column] and not discrete[column]:
                    column, place = open_discrete, 0.0  # slopes alone help once the discrete columns are settled
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
                if column < 0 or (not lo[column] <= place < hi[column] and not discrete[column]):
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
def _cut(column, place, lo, hi, feature, threshold, width):
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
