"""Long steps to where a straight model would be worst: d_Y is replaced by its tangent, the price d_X and Dom are not.

    y = argmax over y in Dom of   slope . y - lam * d_X(x, y)

is a concave problem, however many columns are at an end of their range; where the price leaves many moves free, small
steps that are pulled back into Dom one by one take long to find it. It is solved by alternating directions (ADMM): a
step in the metric of Sigma (see ``Damped``), a step back into Dom, and a record of by how much the two differ.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.search.attack import Attack

PULL = 0.05  # of the price of a move over a column's range: how strongly the two steps of a round are tied together
AT_ONCE = 40  # rounds of alternating directions
SHARES = (1.0, 0.6, 0.3, 0.1)  # of the way there: the tangent may promise too much


def straight(attack: Attack, x: Tensor, h_x: Tensor, start: Tensor, lam: float, rounds: int) -> Tensor:
    """Tangent after tangent, as long as it leads up: (N, d) people and starts -> (N, d)."""
    best, rows = start.clone(), torch.arange(len(start))
    point = start
    value = attack.d_y(h_x, point) - lam * attack.d_x(point - x)
    shares = torch.tensor(SHARES, dtype=torch.float64)[:, None]
    for _ in range(rounds):
        _, slope = attack.value_and_slope(h_x, point)
        there = farthest(attack, x, point, slope, lam)
        ways = point[:, None] + shares * (there - point)[:, None]  # convex, so that all of them lie in Dom
        reached = attack.d_y(h_x, ways) - lam * attack.d_x(ways - x[:, None])
        most, share = reached.max(1)
        up = most > value + 1e-4 * value.abs()
        taken = most > value
        moved = torch.where(taken[:, None], ways[torch.arange(len(point)), share], point)
        best[rows] = moved
        if not bool(up.any()):
            break
        x, h_x, rows, point, value = x[up], h_x[up], rows[up], moved[up], most[up]
    return best


def farthest(attack: Attack, x: Tensor, point: Tensor, slope: Tensor, lam: float) -> Tensor:
    """About the y above, (N, d), from points (N, d) whose other columns stay: x, point, slope (N, d)."""
    damped = attack.damped
    price = point.new_full((len(point), 1), lam)
    tie = 2 * PULL * lam * damped.scale * point.new_ones(len(point), 1)
    inside, owed, lift = point, torch.zeros_like(point), attack.lift(point)
    for _ in range(AT_ONCE):
        base = inside - owed
        wanted = base + damped(slope - 2 * lam * attack.geometry.pull(base - x), price, tie)
        ahead = 1.6 * wanted - 0.6 * inside  # over-relaxed
        inside, lift = attack.carry(ahead + owed, lift)
        owed = owed + ahead - inside
    return inside
