"""The audit's search for the worst case of each person. It is deterministic and looks at one row at a time, so that
what is found for a person does not depend on who else is in the sample.

Many starts, a few steps from the best of each kind, more steps from the best of those: most of the work is done where
it pays.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from evenhand.dual.pool import Pool
from evenhand.search.attack import EFFORT, Attack
from evenhand.search.climbs import along_free, climb, jump, worth
from evenhand.search.roaming import roam
from evenhand.search.starts import starts
from evenhand.search.straight import straight
from evenhand.search.sweeps import sweep

__all__ = ["Attack", "candidates", "leaner", "plan"]

NUMBERS_AT_ONCE = 2**24  # of candidates: how many people are searched together
PLANNED_ON = 64  # tuning rows
TANGENTS = 6  # of a way by long steps
ROAMS_FROM = 4.0  # effort at which far places are climbed from as well
LESS = (0.5, 1.0, 2.0, 4.0, 16.0)  # efforts, least first
ALMOST = 0.99
KEPT_AT = (0.0, 0.25, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 4.0, torch.inf)  # times lam: where the best is kept


class _Found:
    """Points found for some people, with their distances."""

    def __init__(self, attack: Attack, x: Tensor, h_x: Tensor) -> None:
        self.attack, self.x, self.h_x = attack, x, h_x
        nothing = torch.zeros(len(x), 1, dtype=torch.float64)
        self.points, self.d_y, self.d_x, self.changed = x[:, None], nothing, nothing, nothing > 0

    def add(self, points: Tensor) -> None:
        """Possible people, (n, m, d)."""
        h = self.attack.h(points)
        d_y = self.attack.d_y_of(self.h_x, h)
        d_x = self.attack.d_x(points - self.x[:, None])
        self.points = torch.cat([self.points, points], 1)
        self.d_y, self.d_x = torch.cat([self.d_y, d_y], 1), torch.cat([self.d_x, d_x], 1)
        self.changed = torch.cat([self.changed, h.argmax(-1) != self.h_x.argmax(-1)[:, None]], 1)

    def take(self, index: Tensor) -> Tensor:
        """(n, m) -> (n, m, d)"""
        return self.points.gather(1, index[..., None].expand(-1, -1, self.x.shape[1]))

    def best(self, lam: float, count: int) -> Tensor:
        gain = worth(self.d_y, self.d_x, lam)
        return self.take(gain.topk(min(count, gain.shape[1]), dim=1).indices)

    def thin(self, lam: float, eps: float) -> None:
        """Forget what cannot matter."""
        index = self._mattering(lam, eps)
        self.points, self.changed = self.take(index), self.changed.gather(1, index)
        self.d_y, self.d_x = self.d_y.gather(1, index), self.d_x.gather(1, index)

    def kept(self, lam: float, eps: float) -> Tensor:
        return self.take(self._mattering(lam, eps))

    def _mattering(self, lam: float, eps: float) -> Tensor:
        """Of all points those that may matter: the best at prices about lam, the most different within eps, and the
        nearest that is decided otherwise."""
        index = [worth(self.d_y, self.d_x, factor * lam if factor else 0.0).argmax(1) for factor in KEPT_AT]
        index.append(self.d_y.masked_fill(self.d_x > eps, -torch.inf).argmax(1))
        index.append(self.d_x.masked_fill(~self.changed, torch.inf).argmin(1))
        return torch.stack(index, 1)


def candidates(attack: Attack, x: Tensor, eps: float, lams: list[float], rows: Tensor | None = None) -> Tensor:
    """All that is worth knowing for each person: (n, m, d). The last of lams is the one that matters most.

    rows: which rows of the data x holds; asked for by attacks that know the versions of each.
    """
    if attack.versions is not None:
        return attack.versions.points(x, rows)
    size = max(1, NUMBERS_AT_ONCE // (256 * x.shape[1]))
    return torch.cat([_search(attack, part, eps, lams).kept(lams[-1], eps) for part in torch.split(x, size)])


def plan(attack: Attack, x: Tensor, eps: float, rows: Tensor | None = None, rounds: int = 8) -> list[float]:
    """On tuning rows: which lam to search at. The lam that matters, the minimiser of the dual, comes last.

    There the mean price of what is found is eps. It falls as lam rises, so the lam is searched for between one that is
    too low and one that is too high.
    """
    if eps == 0:
        return [torch.inf]
    found = _Found(attack, x, attack.h(x))
    if attack.versions is not None:
        found.add(candidates(attack, x, eps, [], rows))
        return [_minimiser(found, eps)]
    x = x[:PLANNED_ON]
    h_x = attack.h(x)
    found = _Found(attack, x, h_x)
    for family in starts(attack, x, h_x, eps):
        found.add(family)
    lam = _minimiser(found, eps)
    found.add(_search(attack, x, eps, [lam]).kept(lam, eps))
    low, high = 0.0, torch.inf
    for _ in range(rounds):
        found.add(_uphill(attack, found, found.best(lam, 3), lam, 2 * _steps(attack)))
        best = worth(found.d_y, found.d_x, lam).argmax(1, keepdim=True)
        if float(found.d_x.gather(1, best).mean()) > eps:
            low = lam
        else:
            high = lam
        if high < 1.2 * low:
            break
        known = _minimiser(found, eps)
        if low < 0.97 * known and known < 0.97 * high and (low == 0 or high < torch.inf):
            lam = known
        else:
            lam = 5 * low if high == torch.inf else (high / 5 if low == 0 else (low * high) ** 0.5)
    found.add(_search(attack, x, eps, [lam]).kept(lam, eps))
    lam = _minimiser(found, eps)
    return [0.7 * lam, 1.4 * lam, lam]


def leaner(attack: Attack, x: Tensor, eps: float, lams: list[float]) -> Attack:
    """For many people: the attack with the least effort that finds on tuning rows almost what it finds with its own."""
    if attack.versions is not None:
        return attack
    goal = ALMOST * _value(attack, x, eps, lams)
    for effort in LESS:
        less = replace(attack, effort=effort)
        if effort < attack.effort and _value(less, x, eps, lams) >= goal:
            return less
    return attack


def _value(attack: Attack, x: Tensor, eps: float, lams: list[float]) -> float:
    pool = Pool()
    pool.add(*(part.numpy() for part in attack.distances(x, candidates(attack, x, eps, lams))))
    return pool.minimise(eps).value


def _minimiser(found: _Found, eps: float) -> float:
    pool = Pool()
    pool.add(found.d_y.numpy(), found.d_x.numpy())
    lam = pool.minimise(eps).lam
    if lam > 0:
        return lam
    costs = found.d_x > 0  # the budget is more than can be used: any small price will do
    return 1e-3 * float((found.d_y[costs] / found.d_x[costs]).median()) if costs.any() else 1.0


def _search(attack: Attack, x: Tensor, eps: float, lams: list[float]) -> _Found:
    h_x = attack.h(x)
    found, first = _Found(attack, x, h_x), []
    lam = lams[-1]
    for family in starts(attack, x, h_x, eps):
        before = found.points.shape[1]
        found.add(family)
        gain = worth(found.d_y[:, before:], found.d_x[:, before:], lam)
        first.append(found.take(before + gain.topk(min(_each(attack), gain.shape[1]), dim=1).indices))
    for price in lams:
        if attack.by_structure is not None and price < torch.inf:
            suggested = attack.by_structure(x, found.best(price, 2), price)
            found.add(attack.geometry.box.round(suggested))
    first.append(found.best(lam, 2))
    found.thin(lam, eps)
    if attack.stepwise:
        for price in reversed(lams):
            best = found.best(price, max(1, round(attack.effort / EFFORT)))
            found.add(_uphill(attack, found, best, price, _steps(attack)))
        return found
    steps = _steps(attack)
    found.add(_uphill(attack, found, torch.cat(first, 1), lam, steps))
    if attack.discrete and lam < torch.inf:
        found.add(_through_hull(attack, found, lam, steps))
    if attack.effort >= ROAMS_FROM and attack.differentiable and lam < torch.inf:
        found.add(roam(attack, x, h_x, lam))
    if attack.differentiable and len(attack.continuous) and lam < torch.inf:
        found.add(_by_tangents(attack, found, lam))
    found.add(_uphill(attack, found, found.best(lam, 3), lam, 2 * steps))
    found.add(_uphill(attack, found, found.best(lam, 1), lam, 3 * steps))
    for price in lams[:-1]:
        found.add(_uphill(attack, found, found.best(price, 2), price, steps))
    return found


def _each(attack: Attack) -> int:
    return max(1, round(attack.effort / 2))


def _steps(attack: Attack) -> int:
    if attack.summits and attack.stepwise:
        return max(1, round(attack.effort / (2 * EFFORT)))
    return round((6 if attack.differentiable else 3) * float(attack.effort**0.4))


def _uphill(attack: Attack, found: _Found, points: Tensor, lam: float, steps: int) -> Tensor:
    """From every point (n, m, d): steps, then a jump of a discrete column and some more steps."""
    n, m, d = points.shape
    x, h_x = found.x.repeat_interleave(m, 0), found.h_x.repeat_interleave(m, 0)
    flat = points.reshape(n * m, d)
    if attack.stepwise:
        return sweep(attack, x, h_x, flat, lam, steps).reshape(n, m, d)
    flat = _walk(attack, x, h_x, flat, lam, steps)
    if attack.discrete and m == 1:  # where it pays: from the best point of each person
        for _ in range(2):
            flat = _walk(attack, x, h_x, jump(attack, x, h_x, flat, lam), lam, steps // 2)
    return attack.geometry.box.round(flat).reshape(n, m, d)


def _walk(attack: Attack, x: Tensor, h_x: Tensor, flat: Tensor, lam: float, steps: int) -> Tensor:
    if lam == torch.inf:
        return along_free(attack, h_x, flat, steps)
    return climb(attack, x, h_x, flat, lam, steps)


def _by_tangents(attack: Attack, found: _Found, lam: float) -> Tensor:
    """From the best points by long steps, which pay where many columns are at an end of their range."""
    start = found.best(lam, _each(attack) + 2)
    n, m, d = start.shape
    x, h_x = found.x.repeat_interleave(m, 0), found.h_x.repeat_interleave(m, 0)
    there = straight(attack, x, h_x, start.reshape(n * m, d), lam, TANGENTS)
    return attack.geometry.box.round(there).reshape(n, m, d)


def _through_hull(attack: Attack, found: _Found, lam: float, steps: int) -> Tensor:
    """Several discrete columns at once: uphill through the convex hull, then to the nearest possible person."""
    start = found.best(lam, 2)
    n, m, d = start.shape
    x, h_x = found.x.repeat_interleave(m, 0), found.h_x.repeat_interleave(m, 0)
    inside = climb(attack, x, h_x, start.reshape(n * m, d), lam, steps, hull=attack.differentiable)
    return attack.geometry.box.round(inside).reshape(n, m, d)
