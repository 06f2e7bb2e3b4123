"""A bound of d_Y - lam * d_X over a box that falls apart into columns, compiled.

With d_X = q(x' - x), q(e) = level |e|^2 + e^T P e - |B^T e|^2 and P positive semi-definite, and all splits ramps:

* h_k(x') - h_k(r) <= sum over j of rise_kj (x'_j - r_j)+ + fall_kj (x'_j - r_j)-  from any point r of the box;
* v^2 <= (v0 + v1) v - v0 v1 for v in [v0, v1], both for v = h_k(x') - h_k(x) and for v = B_i . (x' - x);
* e^T P e is at least its tangent.

All three are sums over columns, so the largest value is found column by column, one-hot block by one-hot block, however
many of them are open. The ranges of the v are cut into pieces where the chord is the loosest part of the bound.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from evenhand.ensembles.kernels import SLACK, compiled

PIECES = 48  # of the ranges of v, looked at in one box


@compiled
def spread_along(x, lo, hi, block, blocks, along, start, stop, best, worst):
    """The range of B_i . (x' - x) over the box, blocks included: into ``start`` and ``stop``."""
    for i in range(along.shape[0]):
        low, high = 0.0, 0.0
        for b in range(blocks):
            best[b], worst[b] = -np.inf, np.inf
        for j in range(x.shape[0]):
            a = along[i, j]
            first, last = a * (lo[j] - x[j]), a * (hi[j] - x[j])
            if block[j] < 0:
                low, high = low + min(first, last), high + max(first, last)
                continue
            low, high = low - a * x[j], high - a * x[j]
            if hi[j] >= 1.0:
                best[block[j]], worst[block[j]] = max(best[block[j]], a), min(worst[block[j]], a)
        for b in range(blocks):
            low, high = low + worst[b], high + best[b]
        slack = SLACK * (1.0 + abs(low) + abs(high))
        start[i], stop[i] = low - slack, high + slack


@compiled
def _piece(x, ref, lo, hi, discrete, block, blocks, kappa, fall, rise, linear, quadratic, best, chosen, where):
    """The largest sum over columns of kappa . (change of h from r) + linear (y - x) - quadratic (y - x)^2, with one 1
    in each block; ``where`` is set to the place."""
    total, size = 0.0, 0.0
    bins, outputs = rise.shape[2], kappa.shape[0]
    for b in range(blocks):
        best[b], chosen[b] = -np.inf, -1
    for j in range(x.shape[0]):
        if lo[j] == hi[j]:
            e = lo[j] - x[j]
            fixed = linear[j] * e - quadratic * e * e
            total, size, where[j] = total + fixed, size + abs(fixed), lo[j]
            if block[j] >= 0 and hi[j] >= 1.0:
                best[block[j]], chosen[block[j]] = 0.0, j
            continue
        if discrete[j]:  # one of the two ends
            up, down = 0.0, 0.0
            for o in range(outputs):
                steep, flat = rise[o, j, 0], fall[o, j, 0]
                for b in range(1, bins):
                    steep, flat = max(steep, rise[o, j, b]), min(flat, fall[o, j, b])
                up += kappa[o] * steep if kappa[o] > 0 else kappa[o] * flat
                down += kappa[o] * flat if kappa[o] > 0 else kappa[o] * steep
            e, f = lo[j] - x[j], hi[j] - x[j]
            first = down * (lo[j] - ref[j]) + linear[j] * e - quadratic * e * e
            last = up * (hi[j] - ref[j]) + linear[j] * f - quadratic * f * f
            if block[j] < 0:
                total, size = total + max(first, last), size + abs(first) + abs(last)
                where[j] = lo[j] if first >= last else hi[j]
            else:
                total, size, where[j] = total + first, size + abs(first) + abs(last), lo[j]
                if last - first > best[block[j]]:
                    best[block[j]], chosen[block[j]] = last - first, j
            continue
        e = ref[j] - x[j]
        most = linear[j] * e - quadratic * e * e
        where[j] = ref[j]
        step = (hi[j] - lo[j]) / bins
        middle = min(max(int((ref[j] - lo[j]) / step), 0), bins - 1)
        for side in range(2):
            risen = 0.0
            b = middle
            while 0 <= b < bins:
                first, last = lo[j] + b * step, lo[j] + (b + 1) * step
                if side == 1:
                    first = ref[j] if b == middle else first
                    last = hi[j] if b == bins - 1 else last
                else:
                    first, last = lo[j] if b == 0 else first, ref[j] if b == middle else last
                s = 0.0
                for o in range(outputs):
                    steep = (kappa[o] > 0) == (side == 1)
                    s += kappa[o] * (rise[o, j, b] if steep else fall[o, j, b])
                edge = first if side == 1 else last
                y = last if (s + linear[j]) >= 0 else first
                if quadratic > 0:
                    y = min(max(x[j] + (s + linear[j]) / (2 * quadratic), first), last)
                e = y - x[j]
                value = risen + s * (y - edge) + linear[j] * e - quadratic * e * e
                if value > most:
                    most, where[j] = value, y
                risen += s * ((last - first) if side == 1 else (first - last))
                b += 1 if side == 1 else -1
        total, size = total + most, size + abs(most)
    for b in range(blocks):
        total, size = total + best[b], size + abs(best[b])
        where[chosen[b]] = 1.0
    return total + SLACK * size


@compiled
def by_columns(
    x, at_x, ref, at_ref, lo, hi, discrete, block, blocks, fall, rise, low_out, high_out, price, along, tangent,
    beyond, lam, scale, squared, weights, enough, where,
):  # fmt: skip
    """An upper bound of scale * |h(x') - h(x)|^2 - lam * d_X (or weights . (h(x') - h(x)) - lam * d_X) over the box.

    price: ``level`` of the module's text; along (k, d): B; tangent (d,) and beyond: e^T P e >= tangent . (x' - x) -
    beyond. low_out, high_out (K,): the outputs' range over the box. A piece below ``enough`` is not cut further; where:
    the place at which the bound is reached, not always a possible person.
    """
    k, outputs, d = along.shape[0], at_x.shape[0], x.shape[0]
    dims = k + outputs
    start, stop = np.empty((PIECES + 1, dims)), np.empty((PIECES + 1, dims))
    value = np.empty(PIECES + 1)
    best, worst, chosen = np.empty(blocks), np.empty(blocks), np.empty(blocks, np.int64)
    linear, kappa, places = np.empty(d), np.empty(outputs), np.empty((PIECES + 1, d))
    spread_along(x, lo, hi, block, blocks, along, start[0], stop[0], best, worst)
    for o in range(outputs):
        slack = SLACK * (1.0 + abs(low_out[o]) + abs(high_out[o]) + abs(at_x[o]))
        start[0, k + o], stop[0, k + o] = low_out[o] - at_x[o] - slack, high_out[o] - at_x[o] + slack
    count, now, fresh = 1, 0, 1
    while True:
        for f in range(fresh):
            s = now if f == 0 else count - 1
            constant = lam * beyond
            for j in range(d):
                linear[j] = -lam * tangent[j]
            for i in range(k):
                constant -= lam * start[s, i] * stop[s, i]
                for j in range(d):
                    linear[j] += lam * (start[s, i] + stop[s, i]) * along[i, j]
            size = abs(constant)
            for o in range(outputs):
                first, last = start[s, k + o], stop[s, k + o]
                kappa[o] = scale * (first + last) if squared else weights[o]
                if squared:
                    constant -= scale * first * last
                    size += scale * abs(first * last)
                constant += kappa[o] * (at_ref[o] - at_x[o])
                size += abs(kappa[o]) * (1.0 + abs(at_ref[o]) + abs(at_x[o]))
            most = _piece(
                x, ref, lo, hi, discrete, block, blocks, kappa, fall, rise, linear, lam * price, best, chosen, places[s]
            )  # fmt: skip
            value[s] = constant + most + SLACK * size
        now = 0
        for s in range(count):
            if value[s] > value[now]:
                now = s
        if value[now] <= enough or count > PIECES - 1:
            break
        widest, error = -1, 0.0
        for i in range(dims):
            wide = stop[now, i] - start[now, i]
            loose = (lam if i < k else scale if squared else 0.0) * wide * wide / 4
            if loose > error:
                widest, error = i, loose
        if error <= 0.02 * (value[now] - enough):
            break
        for i in range(dims):
            start[count, i], stop[count, i] = start[now, i], stop[now, i]
        middle = (start[now, widest] + stop[now, widest]) / 2
        stop[now, widest], start[count, widest] = middle, middle
        count += 1
        fresh = 2
    for j in range(d):
        where[j] = places[now, j]
    return value[now]


@compiled
def by_slopes(out, at_x, near, lo, hi, fall, rise, curvature, price, lam, radius, scale, squared, weights):
    """The mean value theorem from the nearest point c of the box: with a = |h(c) - h(x)| and slopes at most gamma, at
    distance t from c the outputs have changed by at most a + gamma t, and d_X is at least price + curvature t^2. They
    never change by more than every column's slope times its side of the box: where gamma t has come to that, t may
    stop, which matters in boxes that are narrow where the slope is steep."""
    reach, a, b, steep, linear, linear_slope = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    limit = 0.0
    for j in range(near.shape[0]):
        away = max(hi[j] - near[j], near[j] - lo[j])
        reach += away * away
    for k in range(at_x.shape[0]):
        gamma, most = 0.0, 0.0
        for j in range(near.shape[0]):
            g, away = 0.0, max(hi[j] - near[j], near[j] - lo[j])
            if away > 0:
                for part in range(rise.shape[2]):
                    g = max(g, rise[k, j, part], -fall[k, j, part])
            gamma += g * g
            most += g * away
        gamma *= 1 + SLACK
        if gamma > 0:
            limit = max(limit, most * (1 + SLACK) / np.sqrt(gamma))
        change = abs(out[k] - at_x[k]) + SLACK * (1.0 + abs(out[k]) + abs(at_x[k]))
        a += change * change
        b += change * np.sqrt(gamma)
        steep += gamma
        linear += weights[k] * (out[k] - at_x[k]) + abs(weights[k]) * SLACK * (1.0 + abs(out[k]) + abs(at_x[k]))
        linear_slope += abs(weights[k]) * np.sqrt(gamma)
    t = min(np.sqrt(reach), limit)
    if curvature > 0 and radius < np.inf:
        t = min(t, np.sqrt(max(radius - price, 0.0) / curvature))
    if not squared:
        if lam * curvature > 0:
            t = min(t, linear_slope / (2 * lam * curvature))
        return linear + linear_slope * t - lam * (price + curvature * t * t)
    if scale * steep < lam * curvature:
        t = min(t, scale * b / (lam * curvature - scale * steep))
    return scale * (a + 2 * b * t + steep * t * t) - lam * (price + curvature * t * t)
