"""sup of t^2 - d_X's price over a box, t = a . delta + c: exact where d_X is a sum over columns.

The cheapest way to reach t lies on a path: delta_j(s) = s a_j / (2 curve_j), kept within the box, s >= 0. Along it t
rises by the rate m(s), the sum of a_j^2 / (2 curve_j) over the columns that still move, and the price by m(s) s. So
t^2 - price has its maxima at the ends of the stretches on which the same columns move, and at s = 2 t between them.
"""

from __future__ import annotations

import torch
from torch import Tensor

FREE = 1e9  # rate beyond which a column counts as free: its price is less than t^2 over twice that
ROUNDING = 4e-13  # of sums of up to 128 numbers
START = 1e-150  # the beginning of a path, where columns that cost nothing are at their end already


def along_path(a: Tensor, c: Tensor, low: Tensor, high: Tensor, curve: Tensor, apart: Tensor) -> tuple[Tensor, Tensor]:
    """sup of t^2 - max(sum curve delta^2, apart) over low <= delta <= high with t >= 0, at most, (N,), and where on the
    path it is, s (N,): (N, d), (N,), (N, d), (N, d), (d,), (N,) -> two (N,)."""
    size = a.abs()
    lowest, highest = torch.where(a < 0, -high, low), torch.where(a < 0, -low, high)
    rate = a.square() * (0.5 / curve.clamp(min=1e-300))
    free = rate > FREE
    nearest = torch.minimum(lowest.clamp(min=0), highest)
    start = torch.where(free, highest, nearest)
    t, price = c + (size * start).sum(1), torch.where(free, 0.0, curve * nearest.square()).sum(1)
    slow = 2 * curve / torch.where(size > 0, size, torch.inf)  # s at which a column has moved by 1
    first, last = lowest.clamp(min=0) * slow, highest.clamp(min=0) * slow
    moves = ~free & (last > first)
    zero = torch.zeros_like(first)
    first, last, rate = (torch.where(moves, each, zero) for each in (first, last, rate))
    s, order = torch.cat([first, last], 1).sort(1)
    # Columns that still move are those that end later less those that begin later. Columns that are done with do not
    # enter, and what is to begin has been paid for as far as it is away: rounding stays small beside t and the price.
    later = torch.cat([-rate, rate], 1).gather(1, order).flip(1).cumsum(1).flip(1)
    m = later[:, 1:].clamp(min=0)
    value, t, at = _stretches(s, m, t[:, None], price[:, None], apart[:, None])
    best = value.max(1)
    rounding = ROUNDING * (t[:, -1].square() + c.square())  # where the price is below t^2
    where = at.gather(1, best.indices[:, None])[:, 0]
    return best.values + rounding, where.clamp(min=START)


def _stretches(s: Tensor, m: Tensor, t: Tensor, price: Tensor, apart: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """t^2 - max(price, apart) at the ends of the stretches and where it is largest between them, t at the ends, and s
    of each value: (N, 2 E - 1), (N, E), (N, 2 E - 1) for E ends s."""
    before, after = s[:, :-1], s[:, 1:]
    gained = m * (after - before)
    t = torch.cat([t, t + gained.cumsum(1)], 1)
    price = torch.cat([price, price + (gained * (0.5 * (after + before))).cumsum(1)], 1)
    t_0, price_0 = t[:, :-1], price[:, :-1]
    # up to here the price is below apart and t^2 alone counts
    edge = (before.square() + 2 * (apart - price_0).clamp(min=0) / m.clamp(min=1e-300)).sqrt_()
    summit = 2 * (t_0 - m * before) / (1 - 2 * m).clamp(min=1e-12)
    within = torch.where(m < 0.5, torch.maximum(summit, edge), edge).clamp(before, after)
    on = within - before
    t_on = (t_0 + m * on).clamp_(min=0)
    price_on = price_0 + m * on * (0.5 * (within + before))
    ends = t.clamp(min=0).square() - torch.maximum(price, apart)
    between = t_on.square() - torch.maximum(price_on, apart)
    return torch.cat([ends, between], 1), t, torch.cat([s, within], 1)
