"""Linear bounds of a network on a part of Dom, propagated backwards (CROWN, Zhang et al. 2018).

The part is {x' in Dom, in a cell of the sensitive fibre, d_X(x, x') <= radius^2}. Tight where the part is small; over
the whole of Dom the quadratic dual is better, so whoever wants the best takes the minimum of both.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.bounds.activations import lines
from evenhand.bounds.backward import mostly_on
from evenhand.bounds.problem import Problem
from evenhand.search.geometry import Cells

SHARES = (0.0, 0.3, 0.6, 0.8, 1.0)  # of a functional given to the ball, the rest to Dom: any share is sound


class Region:
    """The part of Dom of each row, and how large a linear functional can be on it."""

    def __init__(self, problem: Problem, x: Tensor, cells: Cells, radius: Tensor) -> None:
        self.problem, self.cells, self.radius = problem, cells, radius
        self.x = x[cells.person]
        values, vectors = torch.linalg.eigh(problem.sigma)
        paid = values > 1e-9 * values.abs().max().clamp(min=1e-300)
        self.paid = vectors[:, paid]
        self.length = values[paid].rsqrt()  # |Sigma^(-1/2) a| bounds a . delta by its product with the radius

    def upper(self, a: Tensor) -> Tensor:
        """An upper bound of a . x' over each row's part: (N, m, d), or (m, d) the same for all rows, -> (N, m)."""
        problem = self.problem
        inside = (a @ self.paid) @ self.paid.T  # the part of the functional that d_X sees
        length = ((a @ self.paid) * self.length).norm(dim=-1) * self.radius[:, None]
        at_x = _times(a, self.x)
        best = None
        for share in SHARES:
            v = a - share * inside
            value = self._over_dom(v) - _times(v, self.x) + share * length + at_x
            best = value if best is None else torch.minimum(best, value)
        assert best is not None
        pins = self.cells.pins - self.x[:, problem.pinned]
        moved = _times(a[..., problem.pinned], pins)  # pinned columns move by a known amount
        rest = a[..., problem.free]
        zeta = rest @ problem.basis
        start = (self.x[:, problem.free] @ problem.basis)[:, None]
        low = (self.cells.centre - self.cells.half)[:, None] - start
        high = (self.cells.centre + self.cells.half)[:, None] - start
        if self._pinned_is_free():
            along = torch.maximum(zeta * low, zeta * high).sum(-1)
            best = torch.minimum(best, at_x + moved + along + length)
        return best

    def _pinned_is_free(self) -> bool:
        """Whether pinned columns cost nothing at all, so that d_X is a function of the free columns' paid part."""
        return self.problem.sigma[self.problem.pinned].abs().sum().item() < 1e-12 * self.problem.d

    def _over_dom(self, v: Tensor) -> Tensor:
        fixed = _times(v[..., self.problem.pinned], self.cells.pins)
        return self.problem.free_box.support(v[..., self.problem.free]) + fixed


def _times(a: Tensor, x: Tensor) -> Tensor:
    """a . x row by row, for functionals (N, m, d) or (m, d) and points (N, d): (N, m)."""
    return x @ a.T if a.ndim == 2 else (a @ x[:, :, None])[:, :, 0]


def output_change(problem: Problem, x: Tensor, cells: Cells, radius: Tensor) -> tuple[Tensor, Tensor]:
    """low, high with low <= f(x') - f(x) <= high on each row's part: two (N, K)."""
    low, high = entering(problem, x, cells, radius)[-1]
    at_x = problem.f(x[cells.person])
    return low - at_x, high - at_x


def entering(problem: Problem, x: Tensor, cells: Cells, radius: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Bounds of what enters each activation on each row's part, two (N, H) each, and last of the outputs."""
    region = Region(problem, x, cells, radius)
    bounds: list[tuple[Tensor, Tensor]] = []
    for layer in range(len(problem.layers)):
        size = problem.layers[layer].bias.shape[0]
        eye = torch.eye(size, dtype=torch.float64)  # of the first layer, the same functionals for everybody
        high = _backward(problem, region, eye, bounds, layer)
        low = -_backward(problem, region, -eye, bounds, layer)
        bounds.append((low, torch.maximum(low, high)))
    return bounds


def _backward(problem: Problem, region: Region, c: Tensor, bounds: list[tuple[Tensor, Tensor]], layer: int) -> Tensor:
    """c . z, at most, z what enters activation ``layer`` (or the output), given bounds on what enters those before."""
    a, constant = c, torch.zeros(len(c), dtype=torch.float64)
    for i in range(layer, -1, -1):
        constant = constant + a @ problem.layers[i].bias
        a = a @ problem.layers[i].weight
        if i == 0:
            break
        low, high = bounds[i - 1]
        unit = lines(low, high, problem.layers[i - 1].after, mostly_on(problem.layers))
        up, down = a.clamp(min=0), a.clamp(max=0)
        constant = constant + (up * unit.offset[:, None]).sum(-1)
        if unit.floor is not None:
            constant = constant + (down * unit.floor[:, None]).sum(-1)
        a = up * unit.slope[:, None] + down * unit.under[:, None]
    return region.upper(a) + constant


@torch.no_grad()
def crown_upper(
    problem: Problem, x: Tensor, lam: float, cells: list[int], shells: int = 8, rounds: int = 0, keep: int = 4
) -> Tensor:
    """An upper bound of r_lam(x) by branch and bound over cells and shells of d_X: (n,).

    On a shell inner^2 <= d_X <= outer^2 the supremum is at most sup d_Y within outer minus lam * inner^2. Each round
    cuts the ``keep`` worst parts of every person in two, along the cell or the shell in turn.
    """
    n = x.shape[0]
    span = (problem.box.high - problem.box.low).square()
    largest = float(torch.linalg.eigvalsh(problem.sigma)[-1].clamp(min=0) * span.sum()) ** 0.5
    edges = torch.cat([torch.zeros(1), largest * 2.0 ** torch.arange(1 - shells, 1)]).to(torch.float64)
    grid = problem.grid(n, cells)
    count = len(grid)
    parts = grid[torch.arange(count).repeat(shells)]
    inner, outer = edges[:-1].repeat_interleave(count), edges[1:].repeat_interleave(count)
    value = _part_values(problem, x, parts, inner, outer, lam)
    closed = torch.zeros(n, dtype=torch.float64)
    for round_ in range(rounds):
        order = torch.argsort(value, descending=True)
        order = order[torch.argsort(parts.person[order], stable=True)]
        first = torch.searchsorted(parts.person[order].contiguous(), torch.arange(n))
        rank = torch.arange(len(order)) - first[parts.person[order]]
        worst, rest = order[rank < keep], order[rank >= keep]
        closed = closed.scatter_reduce(0, parts.person[rest], value[rest], "amax")
        parent, low, high = value[worst], inner[worst], outer[worst]
        if round_ % 2 and problem.k:
            parts = parts[worst].halve(parts.half[worst].argmax(1))
            inner, outer = low.repeat(2), high.repeat(2)
        else:
            middle = (low + high) / 2
            parts = Cells.join(parts[worst], parts[worst])
            inner, outer = torch.cat([low, middle]), torch.cat([middle, high])
        value = torch.minimum(_part_values(problem, x, parts, inner, outer, lam), parent.repeat(2))
    return closed.scatter_reduce(0, parts.person, value, "amax")


def _part_values(
    problem: Problem, x: Tensor, parts: Cells, inner: Tensor, outer: Tensor, lam: float, chunk: int = 512
) -> Tensor:
    values = []
    for start in range(0, len(parts), chunk):
        rows = torch.arange(start, min(start + chunk, len(parts)))
        low, high = output_change(problem, x, parts[rows], outer[rows])
        values.append(torch.maximum(low.square(), high.square()).sum(1) - lam * inner[rows].square())
    return torch.cat(values)


@torch.no_grad()
def output_range(problem: Problem) -> float:
    """An upper bound of |f(x) - f(x')|^2 over all x, x' in Dom."""
    middle = ((problem.box.low + problem.box.high) / 2)[None]
    cells = problem.grid(1, [1] * problem.k)
    low, high = output_change(problem, middle, cells, torch.full((len(cells),), 1e9, dtype=torch.float64))
    return float((high.amax(0) - low.amin(0)).square().sum())
