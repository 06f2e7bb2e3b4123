"""Branch and bound over the cells of the sensitive fibre: an upper and a lower bound of r_lam(x) for each person."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from evenhand.bounds.bound import Bracket
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Rows, make_rows
from evenhand.bounds.solver import Solver
from evenhand.search.geometry import Cells

NUMBERS = 10_000_000  # largest intermediate array
WORK = 5_000_000_000  # multiplications for one person; of small networks every cell is done with before that
SLIGHT = 0.003  # of lam*eps
DEEPER = 4  # more rounds for a large network: it starts from a coarser grid, and its work is bounded anyway


def bracket(
    solver: Solver,
    x: Tensor,
    cells: list[int] | None = None,
    rounds: int = 6,
    iterations: int = 20,
    tolerance: float = 0.01,
    chunk: int = 256,
    paid: float = 0.0,
) -> Bracket:
    """Each person on their own: what comes out for a row depends on that row only (and on the multipliers). Of a large
    network so many cells are worked on as ``WORK`` allows, those with the largest bounds first. paid: lam*eps, to which
    a person's bound is added in the end: a small part of it, ``SLIGHT``, is not worth any work."""
    problem = solver.problem
    most = max(2, WORK // (iterations * solver.multiplications))
    large = solver.large and problem.k > 0
    first = cells if cells is not None else [min(2, each) if large else each for each in default_cells(problem)]
    rounds = rounds + DEEPER if large else rounds
    chunk = min(chunk, max(1, NUMBERS // (solver.size * min(2**rounds, 2 * most))))
    parts = [x[i : i + chunk] for i in range(0, max(len(x), 1), chunk)]
    is_open = partial(_open, tolerance=tolerance, slight=SLIGHT * paid)
    return Bracket.join([_bracket(solver, part, first, rounds, iterations, is_open, most) for part in parts])


def default_cells(problem: Problem) -> list[int]:
    """The first grid: 8 cells along one free move, 4 x 4 along two, 3 each along three, else 1; rounds refine it."""
    each = {0: 1, 1: 8, 2: 4, 3: 3}.get(problem.k, 1)
    return [each] * problem.k


@torch.no_grad()
def _bracket(
    solver: Solver,
    x: Tensor,
    first: list[int],
    rounds: int,
    iterations: int,
    is_open: Callable[[Tensor, Cells, Tensor], Tensor],
    most: int,
) -> Bracket:
    problem, lam, n = solver.problem, float(solver.m.lam), x.shape[0]
    left = torch.full((n,), most)  # cells of each person that may still be worked on
    lower, witness = torch.zeros(n, dtype=torch.float64), x.clone()
    closed = torch.zeros(n, dtype=torch.float64)  # the largest bound among cells that need no more work
    rows = make_rows(problem, x, problem.grid(n, first))
    lower, witness = _better(problem, x, rows.cells, rows.r, lam, lower, witness)
    u = solver.facts.start(solver.m, rows)
    value = solver.value(rows, u)
    for round_ in range(rounds + 1):
        still = _within_budget(is_open(value, rows.cells, lower), value, rows.cells, left)
        closed = _largest(closed, value[~still], rows.cells[~still])
        rows, u, value = rows[still], u[still], value[still]
        if len(rows) == 0:
            break
        left = left.scatter_add(0, rows.cells.person, -torch.ones_like(rows.cells.person))
        better, x_other = solver.improve(rows, u, iterations)
        lower, witness = _better(problem, x, rows.cells, x_other, lam, lower, witness)
        new = solver.value(rows, better)
        u, value = torch.where((new < value)[:, None], better, u), torch.minimum(new, value)
        if round_ == rounds:
            break
        still = is_open(value, rows.cells, lower)
        closed = _largest(closed, value[~still], rows.cells[~still])
        rows, u, value = _split(solver, x, rows[still], u[still], value[still])
    closed = _largest(closed, value, rows.cells)
    return Bracket(lower, torch.maximum(closed, lower), witness)


def _open(value: Tensor, cells: Cells, lower: Tensor, tolerance: float, slight: float) -> Tensor:
    at_hand = lower[cells.person]
    return value > at_hand + tolerance * at_hand + slight + 1e-12


def _within_budget(still: Tensor, value: Tensor, cells: Cells, left: Tensor) -> Tensor:
    """Of the open cells of each person as many as are ``left``, those with the largest bounds: the person's bound is
    the largest of them."""
    here = still.nonzero()[:, 0]
    by_value = here[value[here].argsort(descending=True, stable=True)]
    order = by_value[cells.person[by_value].argsort(stable=True)]  # by person, the largest first
    person = cells.person[order]
    place = torch.arange(len(order)) - torch.searchsorted(person, person)
    kept = torch.zeros_like(still)
    kept[order[place < left[person]]] = True
    return kept


def _largest(closed: Tensor, value: Tensor, cells: Cells) -> Tensor:
    return closed.scatter_reduce(0, cells.person, value, "amax")


def _better(
    problem: Problem, x: Tensor, cells: Cells, x_other: Tensor, lam: float, lower: Tensor, witness: Tensor
) -> tuple[Tensor, Tensor]:
    """Keeps the best point of Dom seen for each person."""
    x_other = problem.box.round(x_other)
    gain = problem.gain(x[cells.person], x_other, lam)
    best = lower.scatter_reduce(0, cells.person, gain, "amax")
    hit = (gain >= best[cells.person]) & (gain > lower[cells.person])
    witness = witness.clone()
    witness[cells.person[hit]] = x_other[hit]
    return best, witness


def _split(solver: Solver, x: Tensor, rows: Rows, u: Tensor, value: Tensor) -> tuple[Rows, Tensor, Tensor]:
    """The halves of each cell, which inherit their parent's bound too."""
    if solver.problem.k == 0 or len(rows) == 0:
        return rows, u, value
    halves, moved = halved(solver, x, rows, u)
    return halves, moved, torch.minimum(solver.value(halves, moved), value.repeat(2))


def halved(solver: Solver, x: Tensor, rows: Rows, u: Tensor) -> tuple[Rows, Tensor]:
    """Halves each cell where gam * half^2 is largest. A half inherits its parent's multipliers, moved to its own
    reference."""
    direction = (rows.cells.half.square() * solver.m.gam).argmax(1)
    halves = make_rows(solver.problem, x, rows.cells.halve(direction))
    moved = (u - solver.facts.start(solver.m, rows)).repeat(2, 1) + solver.facts.start(solver.m, halves)
    return halves, solver.facts.admissible(moved)
