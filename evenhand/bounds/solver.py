"""The best multipliers of the linear facts, by ADMM for many rows at once, and the bound they prove."""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.bounds.factors import LARGE, Steps, Whole, diagonal_and_few, eliminates, factor_of_s, factor_of_steps
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Facts, Multipliers, Rows, curvature, linear_part, natural_size

MARGIN = 1e-10  # S in its natural units must be positive definite by this much of its norm


class NotPositiveDefinite(ValueError):
    """S has no margin above zero, so the quadratic bound would be a guess rather than a proof."""


def verified_smallest_eigenvalue(s: Tensor, size: Tensor) -> float:
    """A number that the smallest eigenvalue of symmetric ``s`` in units of ``size``, s_ij / sqrt(size_i size_j),
    provably exceeds: computed value minus its error bound. Multipliers of columns and neurons that hardly matter are
    smaller than the others by any factor, which says nothing of how safely S is positive definite.

    The QR algorithm is backward stable: its eigenvalues are those of s + e with |e| <= c n u |s|, u = 2^-53; c = 10 is
    generous. Raises unless the number is above a margin.
    """
    unit = size.rsqrt()
    values = torch.linalg.eigvalsh(unit[:, None] * s * unit)
    norm = float(values.abs().max())
    smallest = float(values[0]) - 10 * s.shape[0] * 2.0**-53 * norm
    if not smallest > MARGIN * norm:
        raise NotPositiveDefinite(
            f"S must be positive definite by a margin, but its smallest eigenvalue is {float(values[0]):.3g} at norm "
            f"{norm:.3g}; raise lam, or tune the multipliers again"
        )
    return smallest


class Solver:
    """Shared factorisations for one set of multipliers. ``improve`` makes the row multipliers better, ``value`` turns
    them into proven upper bounds of the supremum over each row's cell."""

    def __init__(self, problem: Problem, m: Multipliers, verify: bool = True) -> None:
        self.problem, self.m, self.facts = problem, m.map(torch.Tensor.detach), Facts(problem)
        self.size = len(problem.free) + sum(problem.widths)
        self.natural = natural_size(problem, self.m)
        self.smallest = verified_smallest_eigenvalue(curvature(problem, self.m), self.natural) if verify else 0.0
        self.s = factor_of_s(problem, self.m)
        self.rho = penalty(problem, self.m)
        self.large = self.size > LARGE
        self.steps = self._steps(verify)
        coupled = sum(layer.weight.numel() for layer in problem.layers[:-1]) + problem.basis.numel()
        self.multiplications = self.steps.multiplications + 2 * coupled  # of a step, for each row

    def _steps(self, verify: bool) -> Steps:
        """What solves for ADMM's steps: the whole inverse, or less where the network is wide."""
        if eliminates(self.problem):
            return factor_of_steps(self.problem, self.m, self.facts, self.rho)
        g = self.facts.apply(torch.eye(self.size, dtype=torch.float64)).T
        matrix = 2 * curvature(self.problem, self.m) + g.T @ (self.rho[:, None] * g)
        if not self.large:
            return Whole(matrix)
        few = diagonal_and_few(Whole(matrix).inverse, self._diagonal()) if verify else None
        return few or Whole(matrix, torch.float32)

    def _diagonal(self) -> Tensor:
        """What the inverse of the ADMM matrix is where nothing is coupled: lam, th and eta stand on the diagonal."""
        own = torch.cat([self.m.lam + self.m.th, *self.m.eta])
        added = [self.rho[self.facts.parts[0]]]
        for layer in range(1, len(self.facts.v_parts)):
            added.append(self.rho[self.facts.parts[2 * layer]] + self.rho[self.facts.parts[2 * layer + 1]])
        return 1 / (2 * own + torch.cat(added))

    def improve(self, rows: Rows, u: Tensor | None = None, iterations: int = 20) -> tuple[Tensor, Tensor]:
        """ADMM for min over v of v^T S v - b . v subject to G v in C; returns admissible u and the x' reached."""
        facts, rho = self.facts, self.rho
        _, b = linear_part(self.problem, self.m, rows)
        if u is None:
            u = facts.start(self.m, rows)
        free, box = self.problem.free, self.problem.free_box
        z, lift = facts.carried(u / rho, rows, box.lifted(rows.r[:, free]))
        for _ in range(iterations):
            v = self.steps.solve(b + facts.transpose(rho * z - u))
            w = 1.6 * facts.apply(v) - 0.6 * z  # over-relaxation
            z, lift = facts.carried(w + u / rho, rows, lift)
            u = u + rho * (w - z)
        x_other = rows.r.clone()
        x_other[:, free] += z[:, facts.parts[0]]
        return facts.admissible(u), x_other

    def value(self, rows: Rows, u: Tensor) -> Tensor:
        """The bound c0 + sup_C(u) + max_v (b' . v - v^T S v), b' = b - G^T u, proven in floating point: (N,).

        For any w the maximum is at most b' . w - w^T S w + |b' - 2 S w|^2 / (4 smallest eigenvalue), in the units of
        that eigenvalue, so an inexact inverse does no harm (a second step makes w good where S is nearly singular); a
        last term covers the rounding of the sums.
        """
        c0, b = linear_part(self.problem, self.m, rows)
        b = b - self.facts.transpose(u)
        w = 0.5 * self.s.solve(b)
        if self.smallest > 0:
            w = w + 0.5 * self.s.solve(b - 2 * self.s.times(w))
        sw = self.s.times(w)
        reached, curved = (b * w).sum(1), (w * sw).sum(1)
        left = ((b - 2 * sw).square() / self.natural).sum(1)
        missed = left / (4 * self.smallest) if self.smallest > 0 else 0.0
        support = self.facts.support(u, rows)
        rounding = 1e-12 * (1e-3 + c0.abs() + support.abs() + reached.abs() + curved.abs())
        return c0 + support + reached - curved + missed + rounding


def penalty(problem: Problem, m: Multipliers) -> Tensor:
    """ADMM penalties, also the natural units of the row multipliers: lam for Dom and cells, eta for the ReLUs."""
    sizes = m.lam.expand(len(problem.free) + problem.k)
    return torch.cat([sizes, *(torch.cat([eta, eta]) for eta in m.eta)])
