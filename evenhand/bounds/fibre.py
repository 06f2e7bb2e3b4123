"""Parts of Dom along free moves that are oblique: how far they lead before some column is at the end of its range.

A move is delta = A u + v with A u free and v paid for, sqrt(d_X) = |v| in the metric of Sigma. A linear functional a is
written as c + A mu + w, in which d_X sees all of w; then for every c

    a . delta <= sup over Dom of c . (x' - x) + sup over the cell of mu . u + |w| sqrt(d_X).

Dom alone (c = a) forgets the price and the cell alone (c = 0) forgets Dom, which lets single columns go no further than
their range. The best c is the dual of a linear programme in the few numbers u, found by alternating directions; any c
is sound. For what enters the first layer it is found once, at the middle of Dom, and serves everybody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from evenhand.bounds.factors import LARGE
from evenhand.bounds.problem import Problem
from evenhand.domain import Box

CELLS = 4  # of the fibre, in all, cut along the moves that matter most
FIRST_ROUNDS, ROUNDS = 300, 60  # of alternating directions, for everybody once and for each part
ASKED = 2  # functionals of each part that are remembered: the one above and the one below
WIDEST = 16_000_000  # numbers of the first layer's functionals that are worth keeping


class Fibre:
    """The free moves of a problem, turned so that those which matter most come first, and the cells they are cut into:
    ``low`` and ``high``, (G, k) each."""

    def __init__(self, problem: Problem) -> None:
        self.problem, w = problem, problem.w_free
        heard = torch.ones(1, problem.layers[-1].bias.shape[0], dtype=torch.float64)
        for layer in reversed(problem.layers[1:]):
            heard = heard @ layer.weight.abs()
        turned = torch.linalg.svd(heard.T * (w @ problem.basis), full_matrices=False)
        self.basis = problem.basis @ turned.Vh.T
        box = problem.free_box
        self.columns = (box.low, box.high)
        ends = -box.support(-self.basis.T), box.support(self.basis.T)
        reach = self._reach(ends)
        matter = turned.S * reach
        counts = torch.ones(problem.k, dtype=torch.long)
        while int(counts.prod()) < CELLS:
            counts[int((matter / counts).argmax())] *= 2
        middle = (box.low + box.high) / 2 @ self.basis
        edges = []
        for j, count in enumerate(counts.tolist()):
            inner = middle[j] + reach[j] * torch.linspace(-1, 1, count + 1, dtype=torch.float64)[1:-1]
            edges.append(torch.cat([ends[0][j : j + 1], inner, ends[1][j : j + 1]]))
        self.low = torch.cartesian_prod(*(e[:-1] for e in edges)).reshape(-1, problem.k)
        self.high = torch.cartesian_prod(*(e[1:] for e in edges)).reshape(-1, problem.k)
        self.first = [self._shared(w, self.low[g], self.high[g]) for g in range(len(self))]

    def __len__(self) -> int:
        return len(self.low)

    def _reach(self, ends: tuple[Tensor, Tensor]) -> Tensor:
        """How far each free move leads from the middle of Dom: (k,)."""
        half, far = (self.columns[1] - self.columns[0]) / 2, (ends[1] - ends[0]) / 2
        c = self.cheapest(self.basis.T, -half[None], half[None], -far, far, FIRST_ROUNDS)
        return torch.minimum(c.abs() @ half, far)

    def _shared(self, w: Tensor, low: Tensor, high: Tensor) -> tuple[Functionals, Functionals]:
        """w and -w on a cell, for everybody: c is the best for the middle of Dom."""
        bottom, top = self.columns
        middle = (bottom + top) / 2
        here = middle @ self.basis
        found = []
        for a in (w, -w):
            c = self.cheapest(a, (bottom - middle)[None], (top - middle)[None], low - here, high - here, FIRST_ROUNDS)
            found.append(Functionals(self, a, c))
        return found[0], found[1]

    def cheapest(self, a: Tensor, low: Tensor, high: Tensor, near: Tensor, far: Tensor, rounds: int) -> Tensor:
        """About the c above for functionals (M, d_F) at sqrt(d_X) = 0, where x' - x stays within low, high (M or 1,
        d_F) and u within near, far: (M, d_F). The dual of: max (A^T a) . u with A u and u within their limits; in
        float32, for any c is sound."""
        a, low, high, near, far, basis = (t.float() for t in (a, low, high, near, far, self.basis))
        g = a @ basis
        size = g.norm(dim=1, keepdim=True)
        g = g / torch.where(size > 0, size, torch.ones_like(size))
        tie = float(1 / (high - low).mean().clamp(min=1e-30) * basis.abs().max() * 2)
        owed, owed_u = torch.zeros_like(a), torch.zeros_like(g)
        z, z_u = torch.zeros_like(a), torch.zeros_like(g)
        for _ in range(rounds):
            u = ((z - owed) @ basis + z_u - owed_u + g / tie) / 2  # A is orthonormal
            moved_u = 1.6 * u - 0.6 * z_u
            ahead = owed.add_(1.6 * u @ basis.T).sub_(z, alpha=0.6)
            z = torch.minimum(torch.maximum(ahead, low), high)
            owed = ahead.sub_(z)
            z_u = torch.minimum(torch.maximum(moved_u + owed_u, near), far)
            owed_u = owed_u + moved_u - z_u
        c: Tensor = (tie * size * owed).double()
        return c


class Functionals:
    """a = c + A mu + w on the free columns, (M, d_F) or (N, M, d_F)."""

    def __init__(self, fibre: Fibre, a: Tensor, c: Tensor) -> None:
        self.fibre, self.c = fibre, c
        problem = fibre.problem
        self.mu = (a - c) @ fibre.basis
        w = a - c - self.mu @ fibre.basis.T
        if problem.directions is None:
            seen, length = problem.seen
            w = (w @ seen[problem.free]) * length
        self.length = w.norm(dim=-1)
        self.over_dom = problem.free_box.support(c)

    def at_most(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """sup of a . delta where nothing is paid: x (N, d_F), the cell (N or 1, k) -> (N, M)."""
        here = x @ self.fibre.basis
        if self.c.ndim == 2:
            over = self.over_dom - x @ self.c.T
        else:
            over = self.over_dom - (self.c @ x[:, :, None])[..., 0]
        near, far = low - here, high - here
        mu = self.mu.expand(len(x), -1, -1) if self.mu.ndim == 2 else self.mu
        along: Tensor = mu.clamp(min=0) @ far[..., None] + mu.clamp(max=0) @ near[..., None]
        return over + along[..., 0]


@dataclass(frozen=True)
class FibrePart:
    """A ``Part`` of every row: person, cell of the fibre, shell."""

    fibre: Fibre
    x: Tensor  # (n, d)
    person: Tensor  # (N,)
    cell: Tensor  # (N,)
    pins: Tensor  # (N, pinned columns)
    inner: Tensor  # (N,)
    outer: Tensor  # (N,)
    asked: list[tuple[Tensor, Tensor]] = field(default_factory=list)  # functionals of length 1 and the c of each

    def upper(self, a: Tensor, price: float = 0.0) -> Tensor:
        problem = self.fibre.problem
        pinned = self.pins - self.x[self.person][:, problem.pinned]
        fixed = (a[..., problem.pinned] * pinned[:, None]).sum(-1)
        flat, length = self._first(a) if len(a) == 1 else self._others(a[..., problem.free])
        rho = torch.minimum(self.outer, torch.full_like(self.outer, problem.reach))[:, None]
        top = length / (2 * price) if price > 0 else torch.full_like(length, torch.inf)
        rho = torch.minimum(torch.maximum(top, self.inner[:, None]), rho)
        return fixed + flat + length * rho - price * rho.square()

    def _first(self, a: Tensor) -> tuple[Tensor, Tensor]:
        """The first layer's functionals, or their opposites, which are known."""
        problem = self.fibre.problem
        weight = problem.layers[0].weight
        sign = 0 if torch.equal(a[0], weight) else 1
        if sign == 1 and not torch.equal(a[0], -weight):
            return self._others(a[..., problem.free].expand(len(self.person), -1, -1))
        x = self.x[:, problem.free]
        flat = torch.empty(len(self.person), a.shape[1], dtype=torch.float64)
        length = torch.empty_like(flat)
        for g in sorted(set(self.cell.tolist())):
            known, rows = self.fibre.first[g][sign], self.cell == g
            everybody = known.at_most(x, self.fibre.low[g][None], self.fibre.high[g][None])
            flat[rows], length[rows] = everybody[self.person[rows]], known.length
        return flat, length

    def _others(self, a: Tensor) -> tuple[Tensor, Tensor]:
        """(N, M, d_F): the c of the longest functional of each row, for the others in proportion."""
        fibre, x = self.fibre, self.x[self.person][:, self.fibre.problem.free]
        size = a.norm(dim=-1)
        longest = size.argmax(1)
        most = size.gather(1, longest[:, None])
        unit = a[torch.arange(len(a)), longest] / torch.where(most > 0, most, torch.ones_like(most))
        c, low, high = self._cheapest(unit, x), fibre.low[self.cell], fibre.high[self.cell]
        if bool(((a - size[..., None] * unit[:, None]).abs() <= 1e-14 * most[..., None]).all()):
            known = Functionals(fibre, unit[:, None], c[:, None])  # they are multiples of one another
            return size * known.at_most(x, low, high), size * known.length
        known = Functionals(fibre, a, size[..., None] * c[:, None])
        return known.at_most(x, low, high), known.length

    def _cheapest(self, unit: Tensor, x: Tensor) -> Tensor:
        """The same functionals come at every lam."""
        for before, c in self.asked:
            same = (before - unit).abs().amax(1) < 1e-9
            if bool((same | (unit == 0).all(1)).all()):
                return c
        fibre, (bottom, top) = self.fibre, self.fibre.columns
        here = x @ fibre.basis
        near, far = fibre.low[self.cell] - here, fibre.high[self.cell] - here
        self.asked.append((unit, fibre.cheapest(unit, bottom - x, top - x, near, far, ROUNDS)))
        del self.asked[:-ASKED]
        return self.asked[-1][1]


_KEPT: WeakKeyDictionary[Problem, Fibre] = WeakKeyDictionary()


def fibre_of(problem: Problem) -> Fibre | None:
    """The fibre of a wide network, where free moves pass through many columns at once; else None. Of smaller ones the
    quadratic dual is tighter."""
    oblique = problem.k > 0 and not problem.separable and type(problem.free_box) is Box
    one_layer = len(problem.widths) == 1 and len(problem.free) + problem.widths[0] > LARGE
    if not oblique or not one_layer or problem.w_free.numel() * CELLS > WIDEST:
        return None
    if problem.sigma[problem.pinned].abs().sum() > 1e-12 * problem.sigma.abs().max():
        return None  # pinned columns cost something
    if problem not in _KEPT:
        _KEPT[problem] = Fibre(problem)
    return _KEPT[problem]
