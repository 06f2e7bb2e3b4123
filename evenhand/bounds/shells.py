"""An upper bound of r_lam that is local: linear bounds of the network inside shells of growing d_X around the person.

Near a person few ReLUs change sign and the linear bounds are (nearly) exact; far away lam * d_X outweighs what they
lose. Nothing is shared between people and no large matrix is factorised, so wide networks are no harder than narrow
ones.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.bounds.fibre import FibrePart, fibre_of
from evenhand.bounds.linear import Linear, gain, linear_bounds
from evenhand.bounds.parts import Part, parts_around
from evenhand.bounds.problem import Problem

SHELLS = 32
CELLS = {1: 4, 2: 3, 3: 3}  # along each of so many free moves
SMALLEST = 3e-4  # of the largest distance in Dom: the radius of the innermost ball
MOST = 2_500_000  # numbers of the first layer's functionals on the shells of one person: beyond this they take long
AGAIN = 10
NUMBERS = 250_000  # largest intermediate array, few enough for the cache of a processor


def radii(problem: Problem) -> Tensor:
    """0 = r_0 < r_1 < ... < r_S, the last at least the largest sqrt(d_X) in Dom: (S + 1,)."""
    grown = torch.logspace(0, 1, SHELLS, base=1 / SMALLEST, dtype=torch.float64) * SMALLEST
    return torch.cat([torch.zeros(1, dtype=torch.float64), problem.reach * grown * (1 + 1e-9)])


def affordable_shells(problem: Problem) -> bool:
    """Whether the shells of hundreds of people are worth a look, and soon looked at."""
    if not problem.widths:
        return False  # of a linear model the dual loses nothing but the width of its cells
    outputs = problem.layers[-1].bias.shape[0]  # of several a functional each is looked at again for every lam
    again = AGAIN * outputs * problem.d if outputs > 1 else 0
    through = sum(layer.weight.numel() for layer in problem.layers[:-1]) + again
    return 2 * SHELLS * len(problem.grid(1, _cells(problem))) * through <= MOST


def kept_numbers(problem: Problem) -> int:
    """Numbers that the shells of one person keep."""
    outputs = problem.layers[-1].bias.shape[0]
    return SHELLS * len(problem.grid(1, _cells(problem))) * 2 * (outputs + 1) * problem.d


@torch.no_grad()
def shell_values(problem: Problem, x: Tensor, lams: list[float]) -> Tensor:
    """sup of d_Y - lam * d_X on each shell around each person, at most: (n, d) -> (len(lams), n, S)."""
    return Shells(problem, x).values(lams)


class Shells:
    """The shells around some people; the linear bounds on them serve at every lam."""

    @torch.no_grad()
    def __init__(self, problem: Problem, x: Tensor) -> None:
        widest = max([1, *problem.widths])
        size = widest * max(problem.d, widest if len(problem.widths) > 1 else problem.d)
        fibre = fibre_of(problem)
        cells = len(problem.grid(1, _cells(problem)))
        each = cells * (1 if fibre is None else len(fibre)) * SHELLS
        chunk = max(1, NUMBERS // (size * each))
        self.parts = [_around(problem, x[i : i + chunk]) for i in range(0, len(x), chunk)]

    @torch.no_grad()
    def values(self, lams: list[float]) -> Tensor:
        """sup of d_Y - lam * d_X on each shell around each person, at most: (len(lams), n, S)."""
        found = [
            torch.stack([gain(part, linear, f_x, lam) for lam in lams]).reshape(len(lams), n, -1, SHELLS).amax(2)
            for n, part, linear, f_x in self.parts
        ]
        return torch.cat(found, 1) if found else torch.zeros(len(lams), 0, SHELLS, dtype=torch.float64)


def _cells(problem: Problem) -> list[int]:
    """Cells along each free move; a fibre is cut by itself."""
    each = CELLS.get(problem.k, 1) if fibre_of(problem) is None else 1
    return [each] * problem.k


def _around(problem: Problem, x: Tensor) -> tuple[int, Part, Linear, Tensor]:
    """The shells around each person, linear bounds on each of them, and f of the person."""
    edges, fibre = radii(problem), fibre_of(problem)
    grid = problem.grid(len(x), _cells(problem))
    part: Part
    if fibre is None:
        count = len(grid)
        cells = grid[torch.arange(count).repeat_interleave(SHELLS)]
        part = parts_around(problem, x, cells, edges[:-1].repeat(count), edges[1:].repeat(count))
    else:
        count = len(grid) * len(fibre)
        cells = grid[torch.arange(len(grid)).repeat_interleave(len(fibre) * SHELLS)]
        place = torch.arange(len(fibre)).repeat_interleave(SHELLS).repeat(len(grid))
        inner, outer = edges[:-1].repeat(count), edges[1:].repeat(count)
        part = FibrePart(fibre, x, cells.person, place, cells.pins, inner, outer)
    rows = x[cells.person]
    return len(x), part, linear_bounds(problem.layers, part, rows), problem.f(rows)
