"""R(h) of the people themselves, drawn together from both sides by cutting planes in lam.

lam*eps + mean r_lam is convex in lam. What is found at one lam bounds it from below everywhere (each x' is a line), and
bounds of r_lam at two lam bound everybody's in between from above, for r_lam is convex too. So the next lam is where
the least that is possible so far lies, and only those are looked at whose r_lam there is not known well yet.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable

import torch
from torch import Tensor

from evenhand.bounds.bound import Priced
from evenhand.dual.pool import Pool
from evenhand.search.attack import Attack

CLOSE = 1.01  # times what was found: closed
GAIN = 0.01  # of the bound: a round that gains less was the last but one
MOST_ROUNDS = 8
FARTHEST = 3.0  # times below the smallest lam so far: the smaller, the harder to bound
OPEN = 0.005  # of lam*eps: whose r_lam is known this well is not looked at again


class Uppers:
    """Everybody's bounds of r_lam at some lam, (n,) each, and what follows at others."""

    def __init__(self, lam: float, upper: Tensor) -> None:
        self.lams, self.uppers = [lam], [upper]

    def at(self, lam: float) -> Tensor:
        """r_lam, at most: it falls as lam rises, and is convex. Infinite below the smallest lam."""
        right = bisect.bisect_left(self.lams, lam)
        if right < len(self.lams) and self.lams[right] == lam:
            return self.uppers[right]
        if right == 0:
            return torch.full_like(self.uppers[0], torch.inf)
        if right == len(self.lams):
            return self.uppers[-1]
        low, high = self.lams[right - 1], self.lams[right]
        share = (lam - low) / (high - low)
        return (1 - share) * self.uppers[right - 1] + share * self.uppers[right]

    def add(self, lam: float, upper: Tensor) -> None:
        place = bisect.bisect_left(self.lams, lam)
        self.lams.insert(place, lam)
        self.uppers.insert(place, upper)

    def least(self, eps: float) -> float:
        return min(lam * eps + float(upper.mean()) for lam, upper in zip(self.lams, self.uppers, strict=True))


def draw_together(
    bound: Priced, attack: Attack, x: Tensor, uppers: Uppers, pool: Pool, eps: float, say: Callable[[str], None]
) -> None:
    """Add bounds of r_lam of x (n, d) at further lam to ``uppers``, and what is found on the way to the pool, which
    bounds the same from below, until both are close. About the sample: no confidence may rest on it. Whatever there is
    after Ctrl-C is sound."""
    idle = 0
    for _ in range(MOST_ROUNDS):
        best, found = uppers.least(eps), pool.minimise(eps)
        lam = max(found.lam, uppers.lams[0] / FARTHEST)
        if best <= CLOSE * found.value or not 0 < lam < torch.inf or lam in uppers.lams or idle > 1:
            break
        upper, gains = uppers.at(lam).clone(), torch.from_numpy(pool.gains(lam))
        who = upper > gains + OPEN * lam * eps
        say(f"{int(who.sum())} individuals once more at lam = {lam:.4g}; Ctrl-C leaves it out")
        bracket, points = bound.at(lam).upper(x[who]), x.clone()
        upper[who], points[who] = torch.minimum(upper[who], bracket.upper), bracket.witness
        d_y, d_x = attack.distances(x, points[:, None])
        pool.more(d_y.numpy(), d_x.numpy())
        uppers.add(lam, upper)
        gained = uppers.least(eps) < (1 - GAIN) * best or pool.minimise(eps).value > (1 + GAIN) * found.value
        idle = 0 if gained else idle + 1
