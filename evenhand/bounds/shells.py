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
from evenhand.bounds.ranks import rank_of
from evenhand.search.geometry import Cells

SHELLS = 24
SMALLEST = 1e-4  # of the largest distance in Dom: the radius of the innermost ball
NUMBERS = 4_000_000  # largest intermediate array
ROUNDS, WORST = 16, 8  # each person's worst parts are cut in two along a free move; so often, so many at a time


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


@torch.no_grad()
def refined(problem: Problem, x: Tensor, lam: float, enough: Tensor) -> Tensor:
    """sup of d_Y - lam * d_X over Dom, at most: (n, d) -> (n,). Parts whose bound is above what is enough (n,) are cut
    along the free moves."""
    grid, edges = problem.grid(len(x), default_cells(problem)), radii(problem)
    cells = grid[torch.arange(len(grid)).repeat_interleave(SHELLS)]
    inner, outer = edges[:-1].repeat(len(grid)), edges[1:].repeat(len(grid))
    value = _at_once(problem, x, cells, inner, outer, lam)
    done = torch.zeros(len(x), dtype=torch.float64)
    along = (problem.w_free @ problem.basis).norm(dim=0)  # what a move does to the first layer
    for _ in range(ROUNDS if problem.k else 0):
        still = value > enough[cells.person]
        done = done.scatter_reduce(0, cells.person[~still], value[~still], "amax")
        cells, inner, outer, value = cells[still], inner[still], outer[still], value[still]
        chosen = rank_of(cells.person, value, len(x)) < WORST
        if not bool(chosen.any()):
            break
        halves = cells[chosen].halve((cells.half[chosen] * along).argmax(1))
        within = inner[chosen].repeat(2), outer[chosen].repeat(2)
        found = torch.minimum(_at_once(problem, x, halves, *within, lam), value[chosen].repeat(2))
        cells = Cells.join(cells[~chosen], halves)
        inner, outer = torch.cat([inner[~chosen], within[0]]), torch.cat([outer[~chosen], within[1]])
        value = torch.cat([value[~chosen], found])
    return done.scatter_reduce(0, cells.person, value, "amax")


def _at_once(problem: Problem, x: Tensor, cells: Cells, inner: Tensor, outer: Tensor, lam: float) -> Tensor:
    """sup of d_Y - lam * d_X on each part, at most: (N,)."""
    widest = max([1, *problem.widths])
    chunk = max(1, NUMBERS // (widest * max(problem.d, widest)))
    values = [torch.zeros(0, dtype=torch.float64)]
    for start in range(0, len(cells), chunk):
        rows = torch.arange(start, min(start + chunk, len(cells)))
        part = parts_around(problem, x, cells[rows], inner[rows], outer[rows])
        people = x[cells.person[rows]]
        values.append(gain(part, linear_bounds(problem.layers, part, people), problem.f(people), lam))
    return torch.cat(values)
