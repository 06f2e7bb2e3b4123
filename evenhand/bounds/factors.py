"""S and the matrix of ADMM's steps, factorised. Of one wide hidden layer the neurons are eliminated one by one:

    M = [[corner, -W^T R], [-R W, F - c V^T V]],    R and F diagonal, V the few rows of the last layer,

so that after Woodbury's formula only a matrix of the size of the columns is left to factorise, however many neurons
there are. Other networks keep the whole matrix.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Facts, Multipliers, corner, curvature, slope_sums

LinAlgError: type[RuntimeError] = torch.linalg.LinAlgError  # type: ignore[attr-defined]  # torch does not export it

LARGE = 400  # columns and neurons: from here on eliminating pays, and ADMM steps in float32


class Steps(Protocol):
    """The inverse of a positive definite matrix M, in float32 where the network is large: ADMM only suggests."""

    @property
    def multiplications(self) -> int:
        """Of ``solve``, for each row."""
        ...

    def solve(self, b: Tensor) -> Tensor:
        """M^-1 b: (N, size) -> (N, size)."""
        ...


class Factor(Steps, Protocol):
    """M itself; making one that is not positive definite raises torch's ``LinAlgError``."""

    def times(self, v: Tensor) -> Tensor:
        """M v: (N, size) -> (N, size)."""
        ...

    def quadratic(self, b: Tensor) -> Tensor:
        """b^T M^-1 b: (N, size) -> (N,)."""
        ...

    def singularity(self) -> Tensor:
        """sum log diag M - log det M: 0 for a diagonal M, infinite for a singular one."""
        ...


class Whole:
    """A matrix as it is."""

    def __init__(self, matrix: Tensor, digits: torch.dtype = torch.float64) -> None:
        self.matrix, self.digits = matrix, digits
        self.root = torch.linalg.cholesky(matrix)

    @cached_property
    def inverse(self) -> Tensor:
        return torch.cholesky_inverse(self.root).to(self.digits)

    @property
    def multiplications(self) -> int:
        return len(self.root) ** 2

    def solve(self, b: Tensor) -> Tensor:
        return (b.to(self.digits) @ self.inverse).to(b)

    def times(self, v: Tensor) -> Tensor:
        return v @ self.matrix

    def quadratic(self, b: Tensor) -> Tensor:
        half: Tensor = torch.linalg.solve_triangular(self.root, b.T, upper=False)
        return half.square().sum(0)

    def singularity(self) -> Tensor:
        singular: Tensor = self.matrix.diagonal().log().sum() - 2 * self.root.diagonal().log().sum()
        return singular


class Few:
    """An inverse that is diagonal but for a few of its eigenvectors, in float32."""

    def __init__(self, diagonal: Tensor, left: Tensor, right: Tensor) -> None:
        self.diagonal, self.left, self.right = diagonal.float(), left.float(), right.float()

    @property
    def multiplications(self) -> int:
        return 2 * self.left.numel()

    def solve(self, b: Tensor) -> Tensor:
        light = b.float()
        return (light * self.diagonal + (light @ self.left) @ self.right).to(b)


class Eliminated:
    """[[corner, -W^T R], [-R W, F - c V^T V]]."""

    def __init__(
        self, corner: Tensor, w: Tensor, v: Tensor, r: Tensor, f: Tensor, c: float, digits: torch.dtype = torch.float64
    ) -> None:
        self.corner, self.v, self.f, self.c, self.digits = corner, v, f, c, digits
        eye = torch.eye(len(v), dtype=f.dtype)
        self.few = torch.linalg.cholesky(eye / c - (v / f) @ v.T)  # F - c V^T V is as definite as this
        self.rw = r[:, None] * w
        across = torch.linalg.solve_triangular(self.few, (v / f) @ self.rw, upper=False)
        self.root = torch.linalg.cholesky(corner - self.rw.T @ (self.rw / f[:, None]) - across.T @ across)

    @property
    def multiplications(self) -> int:
        return len(self.root) ** 2 + 2 * self.rw.numel()

    @cached_property
    def _parts(self) -> tuple[Tensor, ...]:
        parts = torch.cholesky_inverse(self.root), torch.cholesky_inverse(self.few), self.v, self.f, self.rw
        return tuple(part.to(self.digits) for part in parts)

    def solve(self, b: Tensor) -> Tensor:
        left, few, v, f, rw = self._parts

        def neurons_alone(t: Tensor) -> Tensor:
            scaled = t / f
            return scaled + ((scaled @ v.T) @ few) @ (v / f)

        light = b.to(self.digits)
        neurons = neurons_alone(light[:, len(left) :])
        columns = (light[:, : len(left)] + neurons @ rw) @ left
        return torch.cat([columns, neurons + neurons_alone(columns @ rw.T)], 1).to(b)

    def times(self, v: Tensor) -> Tensor:
        columns, neurons = v[:, : len(self.corner)], v[:, len(self.corner) :]
        of_neurons = neurons * self.f - self.c * (neurons @ self.v.T) @ self.v
        return torch.cat([columns @ self.corner - neurons @ self.rw, of_neurons - columns @ self.rw.T], 1)

    def quadratic(self, b: Tensor) -> Tensor:
        columns, neurons = b[:, : len(self.corner)], b[:, len(self.corner) :]
        scaled = neurons / self.f
        half = torch.linalg.solve_triangular(self.few, (scaled @ self.v.T).T, upper=False)
        back = torch.linalg.solve_triangular(self.few.T, half, upper=True).T
        rest = columns + (scaled + back @ (self.v / self.f)) @ self.rw
        last = torch.linalg.solve_triangular(self.root, rest.T, upper=False)
        form: Tensor = (neurons * scaled).sum(1) + half.square().sum(0) + last.square().sum(0)
        return form

    def singularity(self) -> Tensor:
        own = self.corner.diagonal().log().sum() + (self.f - self.c * self.v.square().sum(0)).log().sum()
        few = 2 * self.few.diagonal().log().sum() + len(self.v) * math.log(self.c)
        singular: Tensor = own - 2 * self.root.diagonal().log().sum() - few - self.f.log().sum()
        return singular


def diagonal_and_few(inverse: Tensor, diagonal: Tensor) -> Few | None:
    """A symmetric matrix as diag + left right of low rank; None where the rank is not low. Of a network with many
    columns and few neurons it is."""
    values, vectors = torch.linalg.eigh(inverse - torch.diag(diagonal))
    kept = values.abs() > 1e-9 * inverse.diagonal().abs().max()
    if int(kept.sum()) > len(values) // 3:
        return None
    left = vectors[:, kept]
    return Few(diagonal, left, values[kept, None] * left.T)


def eliminates(problem: Problem) -> bool:
    """Whether the neurons of this network are eliminated."""
    d = len(problem.free)
    return len(problem.widths) == 1 and d + problem.widths[0] > LARGE and problem.widths[0] >= d


def effective_size(problem: Problem) -> int:
    """Of a whole matrix that takes as long to factorise."""
    d, size = len(problem.free), len(problem.free) + sum(problem.widths)
    return min(size, round((6 * d**2 * problem.widths[0]) ** (1 / 3))) if eliminates(problem) else size


def factor_of_s(problem: Problem, m: Multipliers, less: float = 0.0) -> Factor:
    """Differentiable in the multipliers and in the network's weights; ``less`` of its diagonal is taken off."""
    if not eliminates(problem):
        s = curvature(problem, m)
        return Whole(s - less * torch.diag(s.diagonal()) if less else s)
    (eta,), (both,), columns = m.eta, slope_sums(problem), corner(problem, m)
    columns = columns - less * torch.diag(columns.diagonal()) if less else columns
    return Eliminated(columns, problem.w_free, problem.layers[-1].weight, 0.5 * eta * both, (1 - less) * eta, 1.0)


def definite(problem: Problem, m: Multipliers, margin: float = 0.0) -> bool:
    """Whether S is positive definite, also with this share of its diagonal taken off."""
    try:
        factor_of_s(problem, m, margin)
    except LinAlgError:
        return False
    return True


def factor_of_steps(
    problem: Problem, m: Multipliers, facts: Facts, rho: Tensor, digits: torch.dtype = torch.float64
) -> Eliminated:
    """2 S + G^T diag(rho) G of a network whose neurons are eliminated."""
    (eta,), (both,) = m.eta, slope_sums(problem)
    delta, zeta, above, over = (rho[part] for part in facts.parts)
    w = problem.w_free
    added = torch.diag(delta) + (problem.basis * zeta) @ problem.basis.T + w.T @ (over[:, None] * w)
    whole, last = 2 * corner(problem, m) + added, problem.layers[-1].weight
    return Eliminated(whole, w, last, eta * both + over, 2 * eta + above + over, 2.0, digits)
