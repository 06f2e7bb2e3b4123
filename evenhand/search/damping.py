"""Steps in the metric of Sigma: how far to go along a slope when the price of the move is known exactly."""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.search.geometry import Geometry


class Damped:
    """(2 lam Sigma + r / range^2)^-1 on some of the columns.

    d_Y - lam * d_X has the curvature -2 lam Sigma of the price; a step along its inverse times the slope is the best
    one for a d_Y that is linear. The damping r, counted per squared range of a column, keeps steps short where the
    price does not: along free directions, and where d_Y bends. Levenberg's and Marquardt's method, with r per row.

    Sigma = I - Q Q^T is inverted in k dimensions; any other is diagonalised once, in units of the ranges.
    """

    def __init__(self, geometry: Geometry, columns: Tensor, span: Tensor) -> None:
        self.columns, self.span = columns, span[columns]
        self.rest: Tensor | None = None  # the weight elsewhere than along the vectors
        self.d = span.shape[0]
        if not len(columns):
            self.unit = torch.ones((), dtype=torch.float64)
        elif geometry.directions is not None:
            # Sigma_CC = I - Q_C Q_C^T: 1 - c^2 along the left singular vectors of Q_C, 1 elsewhere
            self.unit = self.span.log().mean().exp()
            u, c, _ = torch.linalg.svd(geometry.directions[columns], full_matrices=False)
            self.vectors, self.weights, self.rest = u, (1 - c.square()).clamp(min=0) * self.unit**2, self.unit**2
        else:
            self.unit = self.span
            scaled = geometry.sigma[columns][:, columns] * self.span[:, None] * self.span
            weights, vectors = torch.linalg.eigh((scaled + scaled.T) / 2)
            self.vectors, self.weights = vectors, weights.clamp(min=0)

    def free(self, tolerance: float = 1e-9) -> Tensor:
        """Moves that cost nothing, columns of a matrix (d, k), independent of each other."""
        basis = torch.zeros(self.d, 0, dtype=torch.float64)
        if len(self.columns):
            null = self.vectors[:, self.weights <= tolerance * self.scale]
            basis = torch.zeros(self.d, null.shape[1], dtype=torch.float64)
            basis[self.columns] = null * (self.unit[:, None] if self.unit.ndim else 1.0)
        return basis

    @property
    def scale(self) -> Tensor:
        """The largest price of a move over the range of a column."""
        largest: Tensor = self.weights.max() if self.rest is None else self.rest
        return largest

    def size(self, slope: Tensor) -> Tensor:
        """Length of a slope (N, d) per range of a column: (N, 1)."""
        length: Tensor = (slope[:, self.columns] * self.unit).norm(dim=1, keepdim=True)
        return length

    def paid(self, slope: Tensor, tolerance: float = 1e-9) -> Tensor:
        """Sigma^+ slope: the direction in which a unit of price buys most: (N, d) -> (N, d)."""
        step = torch.zeros_like(slope)
        if len(self.columns):
            scaled = slope[:, self.columns] * self.unit
            along = scaled @ self.vectors
            costs = self.weights > tolerance * self.scale
            part = torch.where(costs, along / torch.where(costs, self.weights, self.scale), 0.0)
            if self.rest is not None:
                part = part - along / self.rest
            moved = part @ self.vectors.T + (0.0 if self.rest is None else scaled / self.rest)
            step[:, self.columns] = moved * self.unit
        return step

    def __call__(self, slope: Tensor, lam: Tensor, damping: Tensor) -> Tensor:
        """The step: slope (N, d), lam and damping (N, 1) -> (N, d), zero in the other columns."""
        step = torch.zeros_like(slope)
        if not len(self.columns):
            return step
        scaled = slope[:, self.columns] * self.unit
        along = scaled @ self.vectors
        part = along / (2 * lam * self.weights + damping)
        if self.rest is None:
            moved = part @ self.vectors.T
        else:
            over = 2 * lam * self.rest + damping
            moved = scaled / over + (part - along / over) @ self.vectors.T
        step[:, self.columns] = moved * self.unit
        return step
