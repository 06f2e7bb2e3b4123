"""Parts of Dom around each person, and how large a linear function less a price on d_X can be on them.

A part is {x' in Dom, pinned columns at their values, free moves in their cell, inner^2 <= d_X(x, x') <= outer^2}. Moves
are written delta = x' - x. Two kinds: ``SeparablePart`` where d_X is a sum over columns, which is solved column by
column, and ``BallPart`` for any other Sigma, which sees the part of a functional that d_X charges for as a ball.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from evenhand.bounds.problem import Problem
from evenhand.search.geometry import Cells

SHARES = (0.0, 0.3, 0.6, 0.8, 1.0)  # of a functional given to the ball, the rest to Dom: any share is sound
STEPS, TOWARDS = 3, 0.75  # towards the best multiplier of a ball within a box; 0.5 never goes too far, 1 often does


class Part(Protocol):
    """One part a row."""

    @property
    def inner(self) -> Tensor: ...  # (N,)

    def upper(self, a: Tensor, price: float = 0.0) -> Tensor:
        """sup of a . delta - price * d_X(delta), at most: (N, m, d) or (1, m, d) -> (N, m)."""


@dataclass(frozen=True)
class SeparablePart:
    """d_X(delta) = sum_j weight_j delta_j^2 on low <= delta <= high.

    For any theta in [0, 1] and mu >= 0, price * d_X >= theta * price * d_X + (1 - theta) * price * inner^2 and
    0 <= mu (outer^2 - d_X), so sup (a . delta - price d_X) is at most a sum over columns; the least of a few is taken.
    """

    weight: Tensor  # (d,)
    low: Tensor  # (N, d)
    high: Tensor  # (N, d)
    inner: Tensor  # (N,)
    outer: Tensor  # (N,), inf for no limit

    def upper(self, a: Tensor, price: float = 0.0) -> Tensor:
        apart = price * self.inner.square()[:, None]
        best = torch.where(a > 0, a * self.high[:, None], a * self.low[:, None]).sum(-1) - apart
        if price > 0:
            for theta in (1.0, 0.5):
                gained, cost = self._moved(a, torch.full((1, 1), theta * price, dtype=a.dtype))
                best = torch.minimum(best, gained - theta * price * cost - (1 - theta) * apart)
        if bool(torch.isfinite(self.outer).any()):
            paid = self.weight > 0
            length = (a[..., paid].square() @ (1 / self.weight[paid])).sqrt()
            radius = self.outer[:, None]
            some = (radius > 0) & torch.isfinite(radius)  # of no length at all where nothing costs anything
            limit = torch.where(some, radius.square(), torch.ones_like(radius))
            mu = torch.where(some, length / (2 * radius), torch.zeros_like(radius))  # the best without a box
            for _ in range(STEPS):
                gained, cost = self._moved(a, mu)
                best = torch.minimum(best, gained + mu * (limit - cost) - apart)
                mu = mu * (cost / limit.clamp(min=1e-300)) ** TOWARDS  # less where the box keeps moves short
        return best

    def _moved(self, a: Tensor, charge: Tensor) -> tuple[Tensor, Tensor]:
        """a . delta and d_X(delta) of the best delta in the box where d_X is charged for at this rate."""
        steep = 0.5 / (charge[..., None] * self.weight).clamp(min=1e-300)
        move = (a * steep).clamp(self.low[:, None], self.high[:, None])
        return (a * move).sum(-1), move.square_() @ self.weight


class BallPart:
    """Any Sigma: a . delta = (the part of a that d_X sees) . delta + the rest. The first is at most |.| rho with rho =
    sqrt(d_X), the second is bounded over Dom, or over the cell where pinned columns cost nothing."""

    def __init__(self, problem: Problem, x: Tensor, cells: Cells, inner: Tensor, outer: Tensor) -> None:
        self.problem, self.cells, self.inner, self.outer = problem, cells, inner, outer
        self.x = x[cells.person]
        self.seen, self.length = problem.seen
        self.pins_are_free = problem.sigma[problem.pinned].abs().sum() <= 1e-12 * problem.sigma.abs().max()

    def upper(self, a: Tensor, price: float = 0.0) -> Tensor:
        inside = (a @ self.seen) @ self.seen.T
        length = ((a @ self.seen) * self.length).norm(dim=-1)
        best = None
        for share in SHARES:
            rest = a - share * inside
            value = self._over_dom(rest) - self._at_x(rest) + self._along(share * length, price)
            best = value if best is None else torch.minimum(best, value)
        assert best is not None
        if self.pins_are_free:
            best = torch.minimum(best, self._over_cell(a) + self._along(length, price))
        return best

    def _along(self, slope: Tensor, price: float) -> Tensor:
        """max over inner <= rho <= outer of slope * rho - price * rho^2."""
        inner, outer = self.inner[:, None], self.outer[:, None]
        top = slope / (2 * price) if price > 0 else torch.full_like(slope, torch.inf)
        rho = torch.minimum(torch.maximum(top.expand(len(inner), -1), inner), outer)
        return slope * rho - price * rho.square()

    def _over_dom(self, v: Tensor) -> Tensor:
        fixed = _against(v[..., self.problem.pinned], self.cells.pins)
        return self.problem.free_box.support(v[..., self.problem.free]) + fixed

    def _at_x(self, v: Tensor) -> Tensor:
        return _against(v, self.x)

    def _over_cell(self, a: Tensor) -> Tensor:
        problem, cells = self.problem, self.cells
        moved = _against(a[..., problem.pinned], cells.pins - self.x[:, problem.pinned])
        zeta = a[..., problem.free] @ problem.basis
        start = self.x[:, problem.free] @ problem.basis
        middle = _against(zeta, cells.centre - start)
        return moved + middle + _against(zeta.abs(), cells.half)


def _against(v: Tensor, x: Tensor) -> Tensor:
    """v . x of each row: (N or 1, m, d), (N, d) -> (N, m); one matrix product where the functionals are shared."""
    return x @ v[0].T if v.shape[0] == 1 else (v * x[:, None]).sum(-1)


def parts_around(problem: Problem, x: Tensor, cells: Cells, inner: Tensor, outer: Tensor) -> Part:
    """The kind of part that fits the problem, one for each cell."""
    if not problem.separable:
        largest = torch.full_like(outer, problem.reach)
        return BallPart(problem, x, cells, inner, torch.minimum(outer, largest))
    weight = problem.sigma.diagonal()
    person = x[cells.person]
    low, high = problem.box.low - person, problem.box.high - person
    low[:, problem.pinned] = high[:, problem.pinned] = cells.pins - person[:, problem.pinned]
    if problem.k:  # a separable Sigma's free moves are columns
        columns = torch.tensor(problem.free)[problem.basis.abs().argmax(0)]
        sign = problem.basis.gather(0, problem.basis.abs().argmax(0)[None])[0].sign()
        one, two = sign * (cells.centre - cells.half), sign * (cells.centre + cells.half)
        low[:, columns] = torch.maximum(low[:, columns], torch.minimum(one, two) - person[:, columns])
        high[:, columns] = torch.minimum(high[:, columns], torch.maximum(one, two) - person[:, columns])
        high = torch.maximum(low, high)
    limit = torch.where(weight > 0, outer[:, None] / weight.clamp(min=1e-300).sqrt(), torch.inf)
    pinned = torch.zeros(problem.d, dtype=torch.bool)
    pinned[problem.pinned] = True
    low = torch.where(pinned, low, torch.maximum(low, -limit))
    high = torch.where(pinned, high, torch.maximum(low, torch.minimum(high, limit)))
    return SeparablePart(weight, low, high, inner, outer)
