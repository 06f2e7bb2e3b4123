"""What an attack knows of a model and of who is similar to whom: values and slopes of d_Y, prices d_X, in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from evenhand.domain import Box
from evenhand.output_distances import OutputDistance
from evenhand.search.candidates import CandidateSearch
from evenhand.search.damping import Damped
from evenhand.search.geometry import Geometry

Outputs = Callable[[Tensor], Tensor]  # float64 (n, d) -> float64 (n, K)

AT_ONCE = 2**21  # numbers of one call of the model, so that memory does not grow with the number of candidates
DIFFERENCE = 1e-3  # of a column's range: black boxes are often computed in float32
EFFORT = 4.0  # of a search: audit, sweep and certificate look equally hard, so that a model has one number
COLUMNS_TRIED = 48  # a black box with more columns is differentiated along as many directions, chosen on tuning rows


@dataclass(frozen=True)
class Attack:
    """A model to be searched, and how hard. ``differentiable`` models give gradients, others differences.

    effort: more means more starts and more steps, as long as these lead anywhere.
    """

    outputs: Outputs
    geometry: Geometry
    output_distance: OutputDistance
    differentiable: bool
    neighbours: Tensor | None = None  # (m, d) other people, whose place a person may take
    effort: float = EFFORT
    seed: int = 0
    thresholds: tuple[Tensor, ...] | None = None  # of a tree ensemble: where the output may jump, column by column
    along: Tensor | None = None  # (q, d) orthonormal in units of the ranges: where a black box is differentiated
    stepwise: bool = False  # a black box that is constant almost everywhere
    by_structure: Callable[[Tensor, Tensor, float], Tensor] | None = None  # x, starts (n, m, d), lam -> (n, m', d)
    summits: bool = False  # what they suggest are summits of this very d_Y: little is left to look for from there
    versions: CandidateSearch | None = None  # everybody's worst case is one of these, and nothing else is looked for

    def tuned(self, x: Tensor) -> Attack:
        """The attack after a look at tuning rows: they become neighbours, and a black box shows where it varies."""
        known = replace(self, neighbours=x)
        if self.differentiable or self.versions is not None or not len(self.continuous):
            return known
        few = x[:: max(1, len(x) // 24)][:24]
        slopes = known.output_slopes(few)  # (n, K, d)
        moves = slopes.abs().amax(1) > 0  # (n, d); columns that matter to nobody say nothing
        still = 1 - moves[:, moves.any(0)].double().mean() if moves.any() else 1.0
        known = replace(known, stepwise=self.thresholds is not None or bool(still > 0.5))
        if len(self.continuous) <= COLUMNS_TRIED or known.stepwise:
            return known
        flat = (slopes * self.span).flatten(0, 1)
        return replace(known, along=torch.linalg.svd(flat, full_matrices=False).Vh[: COLUMNS_TRIED // 2])

    @cached_property
    def span(self) -> Tensor:
        """Of each column its range in Dom, the unit in which steps are made: (d,)."""
        width = self.geometry.box.high - self.geometry.box.low
        return torch.where(width > 0, width, torch.ones_like(width))

    @cached_property
    def discrete(self) -> list[list[int]]:
        """Groups of columns that jump together: binary columns alone, one-hot blocks as a whole."""
        return self.geometry.box.jumping

    @cached_property
    def continuous(self) -> Tensor:
        """The columns that move by steps: (c,)."""
        box, jump = self.geometry.box, {j for group in self.discrete for j in group}
        moves = [j for j in range(box.d) if j not in jump and box.high[j] > box.low[j]]
        return torch.tensor(moves, dtype=torch.long)

    @cached_property
    def fixed(self) -> Tensor:
        """The other columns."""
        moves = set(self.continuous.tolist())
        return torch.tensor([j for j in range(self.geometry.d) if j not in moves], dtype=torch.long)

    @cached_property
    def _continuous_box(self) -> Box:
        return self.geometry.box.restrict(self.continuous.tolist())

    def project(self, points: Tensor) -> Tensor:
        """Points whose continuous columns may have left Dom, back in it, in place: (N, d) -> (N, d)."""
        points[:, self.continuous] = self._continuous_box.pull_back(points[:, self.continuous])
        return points

    def lift(self, points: Tensor, hull: bool = False) -> Tensor:
        """What ``carry`` needs to know of points (N, d) before their first step."""
        return self.geometry.box.lifted(points) if hull else self._continuous_box.lifted(points[:, self.continuous])

    def carry(self, points: Tensor, lift: Tensor, hull: bool = False) -> tuple[Tensor, Tensor]:
        """Points that have taken a step, back in Dom, in place, and what the next step needs. hull: in its hull."""
        if hull:
            return self.geometry.box.carried(points, lift)
        points[:, self.continuous], lift = self._continuous_box.carried(points[:, self.continuous], lift)
        return points, lift

    @cached_property
    def free_moves(self) -> Tensor:
        """Moves of continuous columns that cost nothing, the columns of a matrix (d, k)."""
        return self.damped.free()

    @cached_property
    def damped(self) -> Damped:
        """Steps on the continuous columns."""
        return Damped(self.geometry, self.continuous, self.span)

    @cached_property
    def damped_hull(self) -> Damped:
        """Steps on all columns, for moves through the convex hull of Dom."""
        return Damped(self.geometry, torch.arange(self.geometry.d), self.span)

    def h(self, points: Tensor) -> Tensor:
        """Outputs of many points, some at a time: (..., d) -> (..., K)."""
        flat = points.reshape(-1, points.shape[-1])
        with torch.no_grad():
            parts = [self._of(part) for part in torch.split(flat, max(1, AT_ONCE // flat.shape[1]))]
        whole = torch.cat(parts)
        return whole.reshape(*points.shape[:-1], whole.shape[-1])

    def _of(self, points: Tensor) -> Tensor:
        """The model's outputs, from a copy that it may overwrite: (N, d) -> (N, K)."""
        return self.outputs(points.clone())

    def distances(self, x: Tensor, x_other: Tensor) -> tuple[Tensor, Tensor]:
        """d_Y and d_X of candidates: (n, d), (n, m, d) -> (n, m), (n, m)."""
        return self.d_y(self.h(x), x_other), self.d_x(x_other - x[:, None])

    def d_y(self, h_x: Tensor, points: Tensor) -> Tensor:
        """d_Y of points (..., d) of the people whose outputs are h_x, (n, K), with n the first axis of points."""
        return self.d_y_of(h_x, self.h(points))

    def d_y_of(self, h_x: Tensor, h: Tensor) -> Tensor:
        """d_Y of outputs: (n, K), (n, ..., K) -> (n, ...)."""
        wide = h_x.reshape(len(h_x), *[1] * (h.ndim - 2), h_x.shape[1]).expand_as(h)
        return self.output_distance(wide.reshape(-1, h.shape[-1]), h.reshape(-1, h.shape[-1])).reshape(h.shape[:-1])

    def d_x(self, delta: Tensor) -> Tensor:
        """The price of moves, (..., d) -> (...); versions of the same individual cost nothing."""
        if self.versions is not None and self.versions.same_individual:
            return torch.zeros_like(delta[..., 0])
        return self.geometry.price(delta)

    def value_and_slope(self, h_x: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        """d_Y (N,) of points (N, d) and its gradient (N, d); of black boxes by differences."""
        if not self.differentiable:
            return self.d_y(h_x, points), self._difference(h_x, points)
        values, slopes = [], []
        size = max(1, AT_ONCE // points.shape[1])
        for part, h_part in zip(torch.split(points, size), torch.split(h_x, size)):
            with torch.enable_grad():
                at = part.detach().requires_grad_(True)
                value = self.output_distance(h_part, self._of(at))
                (slope,) = torch.autograd.grad(value.sum(), at)
            values.append(value.detach())
            slopes.append(slope)
        return torch.cat(values), torch.cat(slopes)

    def output_slopes(self, x: Tensor) -> Tensor:
        """Gradients of the outputs, or of some fixed combinations of many: (n, d) -> (n, at most 3, d)."""
        if not self.differentiable:
            moves = self._moves(x)
            h, there = self.h(x), self.h(x[:, None] + moves)
            change = (there - h[:, None]) @ self._weights(h.shape[1]).T  # (n, q, w)
            return self._gradient(change.transpose(1, 2), moves)
        with torch.enable_grad():
            at = x.detach().requires_grad_(True)
            h = self._of(at) @ self._weights(self._of(x[:1]).shape[1]).T
            grads = [torch.autograd.grad(h[:, j].sum(), at, retain_graph=True)[0] for j in range(h.shape[1])]
        return torch.stack(grads, 1)

    def _weights(self, k: int) -> Tensor:
        """Combinations of outputs that are worth pushing: margin and sum of two, else random ones. (w, K)"""
        if k <= 2:
            return torch.tensor([[1.0]] if k == 1 else [[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
        generator = torch.Generator().manual_seed(self.seed)
        return torch.randn(3, k, generator=generator, dtype=torch.float64)

    def _moves(self, points: Tensor) -> Tensor:
        """Small moves, one for each column or direction that is tried, into Dom: (N, q, d)."""
        if self.along is not None:
            return (DIFFERENCE * self.along * self.span).expand(len(points), -1, -1)
        columns = self.continuous
        inward = torch.where(points[:, columns] > (self.geometry.box.low + self.span / 2)[columns], -1.0, 1.0)
        moves = torch.zeros(len(points), len(columns), points.shape[1], dtype=torch.float64)
        moves[:, torch.arange(len(columns)), columns] = inward.double() * DIFFERENCE * self.span[columns]
        return moves

    def _gradient(self, change: Tensor, moves: Tensor) -> Tensor:
        """The gradient from the changes (..., q) that small moves (N, q, d) make."""
        along = moves / (DIFFERENCE * self.span)  # orthonormal
        return (
            change.unsqueeze(-2) / DIFFERENCE @ along.reshape(len(moves), *[1] * (change.ndim - 2), *moves.shape[1:])
        ).squeeze(-2) / self.span

    def _difference(self, h_x: Tensor, points: Tensor) -> Tensor:
        moves = self._moves(points)
        change = self.d_y(h_x, points[:, None] + moves) - self.d_y(h_x, points)[:, None]
        return self._gradient(change, moves)
