"""Choosing the shared multipliers on separate data: they decide how tight the bound is, never whether it is sound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from evenhand.bounds.branch import default_cells
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import (
    Facts,
    Multipliers,
    Rows,
    curvature,
    linear_part,
    make_rows,
    start_multipliers,
)
from evenhand.bounds.solver import Solver, penalty


@dataclass(frozen=True)
class Tuned:
    multipliers: Multipliers
    value: float  # lam*eps + mean bound on the tuning rows, at the cells that tuning used


def tune(
    problem: Problem,
    x: Tensor,
    eps: float,
    steps: int = 200,
    lr: float = 0.1,
    start: Multipliers | None = None,
    iterations: int = 10,
) -> Tuned:
    """min over (lam, eta, gam, th) of lam*eps + mean_i max_cells bound, by Adam on their logarithms.

    A log-det barrier of the normalised S, annealed, keeps S away from singular; a step that leaves S > 0 is halved until
    it does not. The rows' own multipliers follow by a few ADMM iterations a step. Cells far below their person's largest
    are dropped on the way and the others are cut finer.
    """
    log = (start or start_multipliers(problem)).map(lambda t: t.detach().log().clone().requires_grad_(True))
    optimiser = torch.optim.Adam(log.tensors(), lr=lr, betas=(0.8, 0.98))
    rows = make_rows(problem, x, problem.grid(x.shape[0], default_cells(problem)))
    relative: Tensor | None = None  # the rows' multipliers in units of the shared ones
    best, best_log = math.inf, log.map(lambda t: t.detach().clone())
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = lr * (0.5 * (1 + math.cos(math.pi * step / steps)) + 0.02)
        m = log.map(torch.exp)
        s = curvature(problem, m)
        root = torch.linalg.cholesky(s)
        units = penalty(problem, m)
        with torch.no_grad():
            solver = Solver(problem, m.map(torch.Tensor.detach), verify=False)
            u = None if relative is None else relative * units
            relative = solver.improve(rows, u, iterations)[0] / units
        value = differentiable_value(problem, m, root, rows, relative * units)
        largest = torch.zeros(x.shape[0], dtype=torch.float64).scatter_reduce(0, rows.cells.person, value, "amax")
        objective = m.lam * eps + largest.mean()
        if objective.item() < best:
            best, best_log = objective.item(), log.map(lambda t: t.detach().clone())
        barrier = s.diagonal().log().sum() - 2 * root.diagonal().log().sum()  # 0 for a diagonal S, grows to infinity
        weight = 10 ** (-1.7 - 2.3 * min(1.0, step / (0.8 * steps)))
        optimiser.zero_grad(set_to_none=True)
        (objective / objective.detach().abs() + weight * barrier).backward()
        _careful_step(problem, log, optimiser)
        if step % 20 == 15:
            rows, relative = _focus(problem, x, rows, relative, value.detach(), largest.detach(), step < 0.7 * steps)
    return Tuned(best_log.map(torch.exp), best)


def differentiable_value(problem: Problem, m: Multipliers, root: Tensor, rows: Rows, u: Tensor) -> Tensor:
    """The bound of each row as a differentiable function of multipliers and weights; root is the Cholesky factor of S."""
    facts = Facts(problem)
    c0, b = linear_part(problem, m, rows)
    half = torch.linalg.solve_triangular(root, (b - facts.transpose(u)).T, upper=False)
    return c0 + 0.25 * half.square().sum(0) + facts.support(u, rows)


def _careful_step(problem: Problem, log: Multipliers, optimiser: torch.optim.Optimizer) -> None:
    before = [t.detach().clone() for t in log.tensors()]
    optimiser.step()
    with torch.no_grad():
        for _ in range(30):
            s = curvature(problem, log.map(torch.exp))
            if int(torch.linalg.cholesky_ex(s - 1e-9 * torch.diag(s.diagonal())).info) == 0:
                return
            for now, then in zip(log.tensors(), before, strict=True):
                now.copy_((now + then) / 2)
        for now, then in zip(log.tensors(), before, strict=True):
            now.copy_(then)


def _focus(
    problem: Problem, x: Tensor, rows: Rows, relative: Tensor, value: Tensor, largest: Tensor, finer: bool
) -> tuple[Rows, Tensor | None]:
    """Only the cells near each person's largest bound, halved when there is room."""
    keep = value >= 0.5 * largest[rows.cells.person]
    rows, relative = rows[keep], relative[keep]
    if problem.k == 0 or not finer or len(rows) > 12 * x.shape[0]:
        return rows, relative
    direction = rows.cells.half.argmax(1)
    return make_rows(problem, x, rows.cells.halve(direction)), None
