"""Candidates for the worst case of each person. Every search here is deterministic and looks at one row at a time, so
that what is found for a person does not depend on who else is in the sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from evenhand.dual.pool import Pool
from evenhand.output_distances import OutputDistance
from evenhand.search.geometry import Cells, Geometry

MOST_FLIPS = 400  # candidates that change one column

Outputs = Callable[[Tensor], Tensor]  # float64 (n, d) -> float64 (n, K)


@dataclass(frozen=True)
class Attack:
    """How hard to look. ``differentiable`` models are searched by gradients, others by candidates alone."""

    outputs: Outputs
    geometry: Geometry
    output_distance: OutputDistance
    differentiable: bool
    neighbours: Tensor | None = None  # (m, d) other people, whose place a person may take
    steps: int = 40
    keep: int = 4
    seed: int = 0

    def distances(self, x: Tensor, x_other: Tensor) -> tuple[Tensor, Tensor]:
        """d_Y and d_X of candidates: (n, d), (n, m, d) -> (n, m), (n, m)."""
        n, m, d = x_other.shape
        with torch.no_grad():
            at_x = self.outputs(x)
            h = self.outputs(x_other.reshape(n * m, d))
            d_y = self.output_distance(at_x.repeat_interleave(m, 0), h).reshape(n, m)
        return d_y, self.d_x(x_other - x[:, None])

    def d_x(self, delta: Tensor) -> Tensor:
        cost = self.geometry.d_x(delta)
        size = self.geometry.sigma.diagonal().max() * self.geometry.box.low.abs().maximum(self.geometry.box.high.abs())
        rounding = (16 * torch.finfo(torch.float64).eps) ** 2 * size.square().sum()
        return torch.where(cost <= rounding, torch.zeros_like(cost), cost)  # free moves cost nothing but rounding

    def first_candidates(self, x: Tensor, eps: float) -> Tensor:
        """Candidates that need no gradient: (n, m, d)."""
        fibre = self.along_fibre(x)
        parts = [fibre, self._flips(x), self._noise(x, eps)]
        if self.neighbours is not None and len(self.neighbours):
            parts.append(self._nearest(x))
        return torch.cat(parts, 1)

    def improve(self, x: Tensor, starts: Tensor, priced: tuple[Tensor, Tensor], lam: float) -> Tensor:
        """From the best starts of each person, climb d_Y - lam * d_X; the best points seen: (n, m, d).

        priced: ``distances(x, starts)``, which are the same for every lam.
        """
        d_y, d_x = priced
        gain = d_y - lam * d_x
        best = gain.topk(min(self.keep, starts.shape[1]), dim=1).indices
        pins = len(self.geometry.pin_values)
        fibre = pins * self.fibre_points()
        if 1 < pins <= 8 and starts.shape[1] >= fibre:  # also the best along the fibre for each combination of pins
            of_each = gain[:, :fibre].reshape(len(x), pins, -1).argmax(2)
            best = torch.cat([best, of_each + torch.arange(pins) * self.fibre_points()], 1)
        chosen = starts.gather(1, best[..., None].expand(-1, -1, x.shape[1]))
        n, m, d = chosen.shape
        wide = x.repeat_interleave(m, 0)
        climb = self._climb if self.differentiable else self._wander
        return climb(wide, chosen.reshape(n * m, d), lam).reshape(n, m, d)

    def _along(self) -> int:
        return {0: 1, 1: 9, 2: 4}.get(self.geometry.k, 1)

    def fibre_points(self) -> int:
        """How many points of the grid along the fibre there are for each combination of pinned columns."""
        return int(self._along() ** self.geometry.k)

    def along_fibre(self, x: Tensor) -> Tensor:
        """Points of Dom along the moves that cost nothing, for every combination of pinned columns."""
        geometry = self.geometry
        cells = geometry.grid(len(x), [self._along()] * geometry.k)
        points = [geometry.reference(x, cells)[0].reshape(len(x), -1, x.shape[1])]
        if geometry.k > 2:  # a grid would be too large: both ends of each direction
            base = geometry.grid(len(x), [1] * geometry.k)
            zeta = x[base.person][:, geometry.free] @ geometry.basis
            for j in range(geometry.k):
                for end in (geometry.zeta_low[j], geometry.zeta_high[j]):
                    centre = zeta.clone()
                    centre[:, j] = end
                    cells = Cells(base.person, base.pins, centre, base.half)
                    points.append(geometry.reference(x, cells)[0].reshape(len(x), -1, x.shape[1]))
        return geometry.box.round(torch.cat(points, 1))

    def slopes(self, x: Tensor, lengths: tuple[float, ...] = (0.1, 0.5, 2.0, 8.0)) -> Tensor:
        """Steps along the gradient of fixed combinations of the outputs: starts where d_Y itself is still flat."""
        with torch.enable_grad():
            point = x.detach().clone().requires_grad_(True)
            h = self.outputs(point)
            generator = torch.Generator().manual_seed(self.seed)
            weights = torch.randn(2, h.shape[1], generator=generator, dtype=torch.float64)
            if h.shape[1] == 2:
                weights = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
            grads = [torch.autograd.grad((h * w).sum(), point, retain_graph=True)[0] for w in weights]
        points = []
        for grad in grads:
            unit = grad / grad.norm(dim=1, keepdim=True).clamp(min=1e-12)
            points += [x + sign * length * unit for length in lengths for sign in (1, -1)]
        return self.geometry.box.round(torch.stack(points, 1))

    def _climb(self, x: Tensor, start: Tensor, lam: float) -> Tensor:
        """Projected gradient ascent, scaled by the curvature of the penalty; free directions by normalised steps."""
        geometry, free = self.geometry, self.geometry.free
        with torch.no_grad():
            at_x = self.outputs(x)
        point, best, best_value = start.clone(), start.clone(), torch.full((len(x),), -torch.inf, dtype=torch.float64)
        span = (geometry.zeta_high - geometry.zeta_low).norm() if geometry.k else torch.tensor(0.0)
        for step in range(self.steps + 1):
            with torch.enable_grad():
                point = point.detach().requires_grad_(True)
                d_y = self.output_distance(at_x, self.outputs(point))
                (grad,) = torch.autograd.grad(d_y.sum(), point)
            point = point.detach()
            value = d_y.detach() - lam * self.d_x(point - x)
            better = value > best_value
            best_value = torch.where(better, value, best_value)
            best = torch.where(better[:, None], point, best)
            if step == self.steps:
                break
            slope = grad[:, free]
            along = (slope @ geometry.basis) @ geometry.basis.T
            across = slope - along - 2 * lam * geometry.pull(point - x)[:, free]
            pace = 1 - step / self.steps
            unit = along / along.norm(dim=1, keepdim=True).clamp(min=1e-12)
            moved = point[:, free] + across / (2 * lam + 2) + 0.1 * pace * span * unit
            point = point.clone()
            point[:, free] = geometry.free_box.project(moved)
        return geometry.box.round(best)

    def _wander(self, x: Tensor, start: Tensor, lam: float, rounds: int = 12) -> Tensor:
        """Random steps that shrink, the same for every person; keeps what is better."""
        geometry = self.geometry
        generator = torch.Generator().manual_seed(self.seed + 1)
        with torch.no_grad():
            at_x = self.outputs(x)
        best = start.clone()
        value = self.output_distance(at_x, self.outputs(best)) - lam * self.d_x(best - x)
        span = geometry.box.high - geometry.box.low
        for step in range(rounds):
            noise = torch.randn(geometry.d, generator=generator, dtype=torch.float64)
            some = torch.rand(geometry.d, generator=generator) < max(0.15, 2 / geometry.d)
            move = 0.5 ** (step / 3) * 0.5 * span * noise * some
            for sign in (1, -1):
                point = geometry.box.round(best + sign * move)
                with torch.no_grad():
                    gain = self.output_distance(at_x, self.outputs(point)) - lam * self.d_x(point - x)
                better = gain > value
                value, best = torch.where(better, gain, value), torch.where(better[:, None], point, best)
        return best

    def _flips(self, x: Tensor) -> Tensor:
        """One column at a time to its ends, one block at a time to each of its values; the cheap moves first.

        A very wide table has too many: the dearest are left out, the same ones for everybody.
        """
        box = self.geometry.box
        in_blocks = {j for block in box.blocks for j in block}
        single = [j for j in range(box.d) if j not in in_blocks][:200]
        price = self.geometry.sigma.diagonal()
        moves = [([j], j, float(end)) for j in single for end in (box.low[j], box.high[j])]
        moves += [(list(block), j, 1.0) for block in box.blocks for j in block]
        if len(moves) > MOST_FLIPS:
            moves = sorted(moves, key=lambda move: float(price[move[1]]))[:MOST_FLIPS]
        points = x[:, None].repeat(1, len(moves), 1)
        for i, (columns, j, value) in enumerate(moves):
            points[:, i, columns] = 0.0
            points[:, i, j] = value
        return box.round(points)

    def _noise(self, x: Tensor, eps: float, count: int = 8) -> Tensor:
        """The same random directions for every person, at several lengths."""
        generator = torch.Generator().manual_seed(self.seed)
        directions = torch.randn(count, self.geometry.d, generator=generator, dtype=torch.float64)
        directions = directions / directions.norm(dim=1, keepdim=True)
        lengths = torch.tensor([0.3, 1.0, 3.0], dtype=torch.float64) * (max(eps, 1e-6) ** 0.5) * 3
        moves = (directions[:, None] * lengths[:, None]).reshape(-1, self.geometry.d)
        return self.geometry.box.round(x[:, None] + moves)

    def _nearest(self, x: Tensor, count: int = 4) -> Tensor:
        assert self.neighbours is not None
        sigma = self.geometry.sigma
        cross = (x @ sigma) @ self.neighbours.T
        squares = ((self.neighbours @ sigma) * self.neighbours).sum(1)
        near = (squares - 2 * cross).topk(min(count, len(self.neighbours)), dim=1, largest=False).indices
        return self.geometry.box.round(self.neighbours[near])


def plan(attack: Attack, x: Tensor, eps: float) -> list[float]:
    """On tuning rows: which lam to search at. The lam that matters is the minimiser of the pool's own dual."""
    found = attack.first_candidates(x, eps)
    if attack.differentiable:
        found = torch.cat([found, attack.slopes(x)], 1)
    priced = d_y, d_x = attack.distances(x, found)
    lams: list[float] = []
    for factors in ((0.3, 1.0, 3.0), (0.6, 1.0, 1.5), (0.9, 1.1)):
        pool = Pool()
        pool.add(d_y.numpy(), d_x.numpy())
        lam = min(pool.minimise(eps).lam, 1e6)
        if lam <= 0:
            lam = 1e-3
        for factor in factors:
            better = attack.improve(x, found, priced, factor * lam)
            more_y, more_x = attack.distances(x, better)
            d_y, d_x = torch.cat([d_y, more_y], 1), torch.cat([d_x, more_x], 1)
            lams.append(factor * lam)
    pool = Pool()
    pool.add(d_y.numpy(), d_x.numpy())
    lam = min(pool.minimise(eps).lam, 1e6)
    return [*sorted(set(lams))[:1], 0.5 * lam, 0.8 * lam, lam, 1.25 * lam, 2 * lam] if lam > 0 else sorted(set(lams))


def candidates(attack: Attack, x: Tensor, eps: float, lams: list[float]) -> Tensor:
    """All that is worth trying for each person: (n, m, d)."""
    found = attack.first_candidates(x, eps)
    starts = torch.cat([found, attack.slopes(x)], 1) if attack.differentiable else found
    priced = attack.distances(x, starts)
    return torch.cat([starts, *(attack.improve(x, starts, priced, lam) for lam in lams)], 1)
