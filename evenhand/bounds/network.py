"""The bound of a ReLU network: the smallest of the bounds that apply, behind one interface."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from evenhand.bounds.bound import Bracket
from evenhand.bounds.branch import bracket, default_cells
from evenhand.bounds.crown import crown_upper, output_change, output_range
from evenhand.bounds.layers import Layer, forward
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Multipliers, fits
from evenhand.bounds.solver import Solver
from evenhand.bounds.tuning import tune, uniform_bound, unpinned

CROWN_COLUMNS = 8  # with more columns than this CROWN over the whole of Dom is never tighter, so it is not run


@dataclass(frozen=True)
class NetworkBound:
    """A ``Bound``: the network f of ``solver.problem`` for d_Y, its ``logits`` for decisions."""

    solver: Solver
    logits: list[Layer]
    threshold: float  # a score above it is a yes
    largest: float
    everywhere: float
    rounds: int

    @property
    def lam(self) -> float:
        return float(self.solver.m.lam)

    def upper(self, x: Tensor) -> Bracket:
        found = bracket(self.solver, x, rounds=self.rounds)
        upper = found.upper.clamp(max=self.largest)
        if self.solver.problem.d <= CROWN_COLUMNS:
            problem = self.solver.problem
            upper = torch.minimum(upper, crown_upper(problem, x, self.lam, default_cells(problem), rounds=8))
        return replace(found, upper=torch.maximum(upper, found.lower))

    def near(self, x: Tensor, eps: float) -> Tensor:
        low, high = _change_within(self.solver.problem, x, eps)
        return torch.maximum(low.square(), high.square()).sum(2).amax(1)

    def decided(self, x: Tensor, eps: float) -> Tensor:
        low, high = self.score_range(x, eps)
        if self.logits[-1].bias.shape[0] > 2:
            return low > 0
        score = _margin(self.logits, x, None)[:, 0]
        return torch.where(score > self.threshold, low > self.threshold, high <= self.threshold)

    def score_range(self, x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        if self.logits[-1].bias.shape[0] <= 2:
            return self._range(x, eps, None)
        own = forward(self.logits, x).argmax(1)
        low, high = torch.zeros(len(x), dtype=torch.float64), torch.zeros(len(x), dtype=torch.float64)
        for c in sorted(set(own.tolist())):
            rows = own == c
            low[rows], high[rows] = self._range(x[rows], eps, c)
        return low, high

    def _range(self, x: Tensor, eps: float, own: int | None) -> tuple[Tensor, Tensor]:
        problem = self.solver.problem.with_layers(_margin_layers(self.logits, own))
        low, high = _change_within(problem, x, eps)
        score = problem.f(x)
        return (score + low.amin(1)).amin(1), (score + high.amax(1)).amin(1)


def bound_network(
    problem: Problem,
    logits: list[Layer],
    x_tune: Tensor,
    eps: float,
    *,
    n: int,
    alpha: float,
    steps: int = 120,
    rounds: int = 6,
    threshold: float = 0.0,
    start: Multipliers | None = None,
    progress: Callable[[str], None] | None = None,
) -> NetworkBound:
    """The bound whose certificate for n people at error alpha should be smallest, chosen on the tuning people."""
    tuned = tune(problem, x_tune, max(eps, 1e-9), steps=steps, progress=progress)
    if start is not None and fits(problem, start):
        again = tune(problem, x_tune, max(eps, 1e-9), steps=steps, start=start, progress=progress)
        tuned = again if again.value < tuned.value else tuned
    solver, largest, everywhere = _choose_lam(Solver(problem, tuned.multipliers), x_tune, eps, n, alpha, steps)
    return NetworkBound(solver, logits, threshold, largest, everywhere, rounds)


def _choose_lam(
    solver: Solver, x_tune: Tensor, eps: float, n: int, alpha: float, steps: int
) -> tuple[Solver, float, float]:
    """On tuning rows: the lam whose confidence bound should be smallest. A larger lam than the tuned one costs eps
    times the difference, but the range b of r_lam, which the confidence bound pays for with about b log(1/alpha) / n,
    falls. Also returns b, and the bound that holds for every x in Dom."""
    problem, m = solver.problem, solver.m
    hull = unpinned(problem)
    joint = uniform_bound(hull, max(eps, 1e-9), steps=3 * steps)
    ceiling = output_range(problem)
    best: tuple[float, Solver, float] | None = None
    for factor in (1.0, 1.1, 1.4):
        trial = Solver(problem, Multipliers(m.lam * factor, m.eta, m.gam, m.th))
        lam = float(trial.m.lam)
        largest = min(uniform_bound(hull, 0.0, lam, joint.multipliers, steps=steps).value, ceiling)
        mean = bracket(trial, x_tune, rounds=3).upper.clamp(max=largest).mean().item()
        expected = lam * eps + mean + (math.log(1 / alpha) + 0.5) * largest / n
        if best is None or expected < best[0]:
            best = expected, trial, largest
    assert best is not None
    lam = float(best[1].m.lam)
    return best[1], best[2], min(joint.value, lam * eps + best[2], ceiling)


def _change_within(problem: Problem, x: Tensor, eps: float, chunk: int = 64) -> tuple[Tensor, Tensor]:
    """CROWN's bounds of f(x') - f(x) within d_X <= eps, cell by cell: two (n, cells, K)."""
    lows, highs = [], []
    cells = [{0: 1, 1: 16, 2: 4}.get(problem.k, 1)] * problem.k
    for start in range(0, max(len(x), 1), chunk):
        rows = x[start : start + chunk]
        grid = problem.grid(len(rows), cells)
        with torch.no_grad():
            radius = torch.full((len(grid),), eps**0.5, dtype=torch.float64)
            low, high = output_change(problem, rows, grid, radius)
        each = len(grid) // len(rows) if len(rows) else 1
        lows.append(low.reshape(len(rows), each, -1))
        highs.append(high.reshape(len(rows), each, -1))
    return torch.cat(lows), torch.cat(highs)


def _margin_layers(logits: list[Layer], own: int | None) -> list[Layer]:
    """The network whose outputs are the margins: the logit, the second minus the first, or ``own`` minus each other."""
    weight, bias = logits[-1]
    k = bias.shape[0]
    if k == 1:
        return logits
    if k == 2:
        return [*logits[:-1], Layer(weight[1:] - weight[:1], bias[1:] - bias[:1])]
    assert own is not None
    others = [j for j in range(k) if j != own]
    return [*logits[:-1], Layer(weight[own] - weight[others], bias[own] - bias[others])]


def _margin(logits: list[Layer], x: Tensor, own: int | None) -> Tensor:
    return forward(_margin_layers(logits, own), x)
