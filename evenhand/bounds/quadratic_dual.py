"""A sound upper bound of r_lam(x) by quadratic constraints that every ReLU and every point of Dom satisfies.

Take a reference point r in a cell, write x' = r + delta, p_l for the outputs of hidden layer l and psi_l for their
change from r. For each ReLU p = relu(y): p >= 0, p >= y and p (y - p) = 0. With multipliers lam, eta, gam, th >= 0,

    d_Y - lam d_X <= |f(r) - f(x) + W_L psi|^2 - lam d_X(x, r + delta) + sum eta p (y - p)
                     + sum gam (half^2 - (zeta - centre)^2) + sum th (x' - low)(high - x')
                   = c0 + b . v - v^T S v,     v = (delta, psi),

and the linear facts (p >= 0, p >= y, x' in Dom, zeta in the cell) join with multipliers u of their own. S does not
depend on the person or the cell, so one factorisation serves all; the best u is found by ADMM, all rows at once.
Whatever the multipliers, the bound is sound as long as S is positive definite.

Of other activations, whose slope stays between alpha and beta, it is known that the change psi of the output and t of
the input satisfy (psi - alpha t)(beta t - psi) >= 0 (Fazlyab et al. 2019); that takes the place of p (y - p) = 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from evenhand.bounds.layers import pre_activations
from evenhand.bounds.problem import Problem
from evenhand.search.geometry import Cells


@dataclass
class Multipliers:
    """The shared multipliers, all positive."""

    lam: Tensor  # ()
    eta: list[Tensor]  # (H_l,) each hidden layer
    gam: Tensor  # (k,)
    th: Tensor  # (d_F,)

    def map(self, f: Callable[[Tensor], Tensor]) -> Multipliers:
        return Multipliers(f(self.lam), [f(e) for e in self.eta], f(self.gam), f(self.th))

    def tensors(self) -> list[Tensor]:
        return [self.lam, *self.eta, self.gam, self.th]


def fits(problem: Problem, m: Multipliers) -> bool:
    """Whether these multipliers are of this problem's shape and give a bound, S > 0."""
    sizes = [*problem.widths, problem.k, len(problem.free)]
    if [len(t) for t in m.tensors()[1:]] != sizes:
        return False
    return int(torch.linalg.cholesky_ex(curvature(problem, m)).info) == 0


CHEAPEST = 1e-3  # of the price of a move: those that cost less are held by th rather than by a huge lam


def start_multipliers(problem: Problem) -> Multipliers:
    """Multipliers with S > 0, from products of spectral norms and the price of the cheapest move that is not free."""
    layers = problem.layers
    total = torch.linalg.matrix_norm(layers[-1].weight.detach(), 2).item() ** 2
    eta: list[Tensor] = []
    for width, layer, known in reversed(list(zip(problem.widths, layers[:-1], problem.slopes, strict=True))):
        eta.insert(0, torch.full((width,), 2 * total + 1e-12, dtype=torch.float64))
        steep = 1.0
        if known is not None:
            low, high = known
            steep = float(((low + high).square() + 2 * (low * high).abs()).max())
        total = 2 * total * steep * torch.linalg.matrix_norm(layer.weight.detach(), 2).item() ** 2
    prices = torch.linalg.eigvalsh(problem.sigma_free[:, problem.free].detach())[problem.k :]
    cheapest = 2 * float(prices[0]) if len(prices) else 1.0
    held = 1.0 if cheapest < CHEAPEST else 1e-3
    lam = torch.tensor(3 * total / min(1.0, max(cheapest, CHEAPEST)) + 1e-6, dtype=torch.float64)
    gam = torch.full((problem.k,), 3 * total + 1e-8, dtype=torch.float64)
    th = torch.full((len(problem.free),), held * total + 1e-9, dtype=torch.float64)
    return Multipliers(lam, eta, gam, th)


def corner(problem: Problem, m: Multipliers) -> Tensor:
    """The part of S that is about the columns, d_F x d_F."""
    s00 = m.lam * problem.sigma_free[:, problem.free] + (problem.basis * m.gam) @ problem.basis.T + torch.diag(m.th)
    known = problem.slopes[0] if problem.widths else None
    return s00 if known is None else s00 + _bent(problem, m, 1, known)


def natural_size(problem: Problem, m: Multipliers) -> Tensor:
    """What stands on S's diagonal before anything is taken off it, d_F + sum of the hidden widths: the units in which
    its entries, and their rounding, are at most about 1."""
    paid = m.lam * problem.sigma_free[:, problem.free].diagonal() + problem.basis.square() @ m.gam + m.th
    return torch.cat([paid, *m.eta])


def slope_sums(problem: Problem) -> list[Tensor]:
    """Of each hidden layer the sum of the two slopes between which its units stay, 1 for ReLUs."""
    one = torch.ones(1, dtype=torch.float64)
    return [one if known is None else known[0] + known[1] for known in problem.slopes]


def _bent(problem: Problem, m: Multipliers, layer: int, known: tuple[Tensor, Tensor]) -> Tensor:
    low, high = known
    weight = _weight(problem, layer)
    return (weight.T * (m.eta[layer - 1] * low * high)) @ weight


def curvature(problem: Problem, m: Multipliers) -> Tensor:
    """S, of size d_F + sum of the hidden widths; differentiable in the multipliers (and in the network's weights)."""
    diagonal = [corner(problem, m), *(torch.diag(e) for e in m.eta)]
    last = problem.layers[-1].weight if problem.widths else problem.layers[-1].weight[:, problem.free]
    diagonal[-1] = diagonal[-1] - last.T @ last
    both = slope_sums(problem)
    for i, known in enumerate(problem.slopes):
        if i > 0 and known is not None:
            diagonal[i] = diagonal[i] + _bent(problem, m, i + 1, known)
    sizes = [block.shape[0] for block in diagonal]
    rows = []
    for i, block in enumerate(diagonal):
        row = [torch.zeros(sizes[i], size, dtype=torch.float64) for size in sizes]
        row[i] = block
        if i > 0:
            row[i - 1] = -0.5 * (m.eta[i - 1] * both[i - 1])[:, None] * _weight(problem, i)
        if i + 1 < len(sizes):
            row[i + 1] = (-0.5 * (m.eta[i] * both[i])[:, None] * _weight(problem, i + 1)).T
        rows.append(torch.cat(row, 1))
    return torch.cat(rows, 0)


def _weight(problem: Problem, layer: int) -> Tensor:
    """W of hidden layer 1, 2, ..., the first on the free columns only."""
    return problem.w_free if layer == 1 else problem.layers[layer - 1].weight


@dataclass
class Rows:
    """Everything the bound needs to know of each (person, cell): reference, pre-activations there, change of output."""

    x: Tensor  # (N, d) the person
    r: Tensor  # (N, d) the reference
    z: list[Tensor]  # (N, H_l) what enters each ReLU at the reference
    s: Tensor  # (N, K) f(r) - f(x)
    normal: Tensor  # (N, d_F) normal to Dom at r
    cells: Cells

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, rows: Tensor) -> Rows:
        z = [z[rows] for z in self.z]
        return Rows(self.x[rows], self.r[rows], z, self.s[rows], self.normal[rows], self.cells[rows])


def make_rows(problem: Problem, x: Tensor, cells: Cells) -> Rows:
    """Rows for cells of the people x (n, d); differentiable in the network's weights."""
    with torch.no_grad():
        r, normal = problem.reference(x, cells)
    z, f_r = pre_activations(problem.layers, r)
    person = x[cells.person]
    return Rows(person, r, z, f_r - problem.f(person), normal, cells)


def linear_part(problem: Problem, m: Multipliers, rows: Rows) -> tuple[Tensor, Tensor]:
    """c0 (N,) and b (N, d_F + hidden) of the bound, without the linear facts."""
    cells, box = rows.cells, problem.free_box
    r_free = rows.r[:, problem.free]
    move = rows.r - rows.x
    off = r_free @ problem.basis - cells.centre
    below, above = r_free - box.low, box.high - r_free
    c0 = rows.s.square().sum(1) - m.lam * problem.d_x(move)
    c0 = c0 + ((cells.half.square() - off.square()) * m.gam).sum(1) + (m.th * below * above).sum(1)
    b = [-2 * m.lam * (move @ problem.sigma_free.T) + m.th * (above - below) - 2 * (off * m.gam) @ problem.basis.T]
    for layer, (eta, z) in enumerate(zip(m.eta, rows.z, strict=True), start=1):
        if problem.slopes[layer - 1] is not None:  # what is known of other activations is about changes alone
            b.append(torch.zeros_like(z))
            continue
        b[layer - 1] = b[layer - 1] + (eta * z.relu()) @ _weight(problem, layer)
        b.append(-eta * z.abs())
    last = problem.layers[-1].weight if problem.widths else problem.layers[-1].weight[:, problem.free]
    b[-1] = b[-1] + 2 * rows.s @ last
    return c0, torch.cat(b, 1)


class Facts:
    """The linear facts G v in C about v = (delta, psi): delta in Dom - r, zeta in its cell, p >= 0, p >= y."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        sizes = [len(problem.free), problem.k]
        for width in problem.widths:
            sizes += [width, width]
        ends = [0, *torch.tensor(sizes).cumsum(0).tolist()]
        self.parts = [slice(a, b) for a, b in itertools.pairwise(ends)]
        v_sizes = [len(problem.free), *problem.widths]
        ends = [0, *torch.tensor(v_sizes).cumsum(0).tolist()]
        self.v_parts = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self.size = self.parts[-1].stop
        self.relus = [known is None for known in problem.slopes]

    def apply(self, v: Tensor) -> Tensor:
        """G v: (N, nv) -> (N, size)."""
        delta = v[:, self.v_parts[0]]
        out = [delta, delta @ self.problem.basis]
        before = delta
        for layer in range(1, len(self.v_parts)):
            psi = v[:, self.v_parts[layer]]
            out += [psi, psi - before @ _weight(self.problem, layer).T]
            before = psi
        return torch.cat(out, 1)

    def transpose(self, u: Tensor) -> Tensor:
        """G^T u: (N, size) -> (N, nv)."""
        out = [u[:, self.parts[0]] + u[:, self.parts[1]] @ self.problem.basis.T]
        for layer in range(1, len(self.v_parts)):
            u_p, u_e = u[:, self.parts[2 * layer]], u[:, self.parts[2 * layer + 1]]
            out[-1] = out[-1] - u_e @ _weight(self.problem, layer)
            out.append(u_p + u_e)
        return torch.cat(out, 1)

    def project(self, w: Tensor, rows: Rows) -> Tensor:
        """The nearest point of C, row by row."""
        r = rows.r[:, self.problem.free]
        return self._with(self.problem.free_box.project(w[:, self.parts[0]] + r) - r, w, rows)

    def carried(self, w: Tensor, rows: Rows, lift: Tensor) -> tuple[Tensor, Tensor]:
        """A point of C, about the nearest, and what the next call carries on (see ``Box.carried``): what a step needs
        that ends in no statement. The exact point costs thirty times as much where free moves leave the box."""
        r = rows.r[:, self.problem.free]
        inside, lift = self.problem.free_box.carried(w[:, self.parts[0]] + r, lift)
        return self._with(inside - r, w, rows), lift

    def _with(self, delta: Tensor, w: Tensor, rows: Rows) -> Tensor:
        """The nearest point of C whose x' = r + delta is given."""
        zeta = rows.r[:, self.problem.free] @ self.problem.basis
        low, high = rows.cells.centre - rows.cells.half - zeta, rows.cells.centre + rows.cells.half - zeta
        out = [delta, w[:, self.parts[1]].clamp(low, high)]
        for layer, z in enumerate(rows.z, start=1):
            above, over = w[:, self.parts[2 * layer]], w[:, self.parts[2 * layer + 1]]
            out.append(torch.maximum(above, -z.relu()) if self.relus[layer - 1] else above)
            out.append(torch.maximum(over, z.clamp(max=0)) if self.relus[layer - 1] else over)
        return torch.cat(out, 1)

    def support(self, u: Tensor, rows: Rows) -> Tensor:
        """sup of u . c over C; the multipliers of p >= 0 and p >= y must be <= 0 (see ``admissible``)."""
        r = rows.r[:, self.problem.free]
        zeta = r @ self.problem.basis
        low, high = rows.cells.centre - rows.cells.half - zeta, rows.cells.centre + rows.cells.half - zeta
        u_delta, u_zeta = u[:, self.parts[0]], u[:, self.parts[1]]
        value = self.problem.free_box.support(u_delta) - (u_delta * r).sum(1)
        value = value + torch.maximum(u_zeta * low, u_zeta * high).sum(1)
        for layer, z in enumerate(rows.z, start=1):
            value = value - (u[:, self.parts[2 * layer]] * z.relu()).sum(1)
            value = value + (u[:, self.parts[2 * layer + 1]] * z.clamp(max=0)).sum(1)
        return value

    def admissible(self, u: Tensor) -> Tensor:
        """u with the multipliers of the one-sided facts cut to the right sign; 0 where a layer has none."""
        start = self.parts[1].stop
        out = [u[:, :start]]
        for layer, relus in enumerate(self.relus, start=1):
            both = u[:, self.parts[2 * layer].start : self.parts[2 * layer + 1].stop]
            out.append(both.clamp(max=0) if relus else torch.zeros_like(both))
        return torch.cat(out, 1)

    def start(self, m: Multipliers, rows: Rows) -> Tensor:
        """Multipliers with which the linear terms of the ReLUs and of d_X (nearly) vanish at the reference."""
        normal = 2 * m.lam * rows.normal  # pulls back from the faces of Dom that keep r away from the person
        out = [normal, -normal @ self.problem.basis]
        for eta, z, relus in zip(m.eta, rows.z, self.relus, strict=True):
            out += [eta * z.clamp(max=0), -eta * z.relu()] if relus else [torch.zeros_like(z), torch.zeros_like(z)]
        return torch.cat(out, 1)
