"""An upper bound of r_lam that is local: linear bounds of the network inside shells of growing d_X around the person.

Near a person few ReLUs change sign and the linear bounds are (nearly) exact; far away lam * d_X outweighs what they
lose. Nothing is shared between people and no large matrix is factorised, so wide networks are no harder than narrow
ones.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.bounds.branch import default_cells
from evenhand.bounds.linear import gain, linear_bounds
from evenhand.bounds.parts import parts_around
from evenhand.bounds.problem import Problem

SHELLS = 32
SMALLEST = 3e-4  # of the largest distance in Dom: the radius of the innermost ball
NUMBERS = 4_000_000  # largest intermediate array


def radii(problem: Problem) -> Tensor:
    """0 = r_0 < r_1 < ... < r_S, the last at least the largest sqrt(d_X) in Dom: (S + 1,)."""
    grown = torch.logspace(0, 1, SHELLS, base=1 / SMALLEST, dtype=torch.float64) * SMALLEST
    return torch.cat([torch.zeros(1, dtype=torch.float64), problem.reach * grown * (1 + 1e-9)])


@torch.no_grad()
def shell_values(problem: Problem, x: Tensor, lams: list[float]) -> Tensor:
    """sup of d_Y - lam * d_X on each shell around each person, at most: (n, d) -> (len(lams), n, S)."""
    widest = max([1, *problem.widths])
    size = widest * max(problem.d, widest if len(problem.widths) > 1 else problem.d)
    each = len(problem.grid(1, default_cells(problem))) * SHELLS
    chunk = max(1, NUMBERS // (size * each))
    parts = [_values(problem, x[i : i + chunk], lams) for i in range(0, len(x), chunk)]
    return torch.cat(parts, 1) if parts else torch.zeros(len(lams), 0, SHELLS, dtype=torch.float64)


def _values(problem: Problem, x: Tensor, lams: list[float]) -> Tensor:
    grid = problem.grid(len(x), default_cells(problem))
    edges, count = radii(problem), len(grid)
    cells = grid[torch.arange(count).repeat_interleave(SHELLS)]
    part = parts_around(problem, x, cells, edges[:-1].repeat(count), edges[1:].repeat(count))
    rows = x[cells.person]
    linear, f_x = linear_bounds(problem.layers, part, rows), problem.f(rows)
    values = torch.stack([gain(part, linear, f_x, lam) for lam in lams])
    return values.reshape(len(lams), len(x), -1, SHELLS).amax(2)
