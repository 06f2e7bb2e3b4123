"""A box along some of whose directions people may run further than its columns would let them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from evenhand.domain.box import Box, orthonormal, rows_of

MOST_STEERED = 6  # 2^6 combinations of discrete values are tried, not more
FEW_ROUNDS = 4  # of Newton's method, for points that are only passed
CARRIED_ROUNDS = 2  # of alternating projections, from where the step before ended
CLOSE = 1e-8  # of a column's size: what Newton's method may leave between a point of the set and the p found for it


@dataclass(frozen=True, eq=False, init=False, repr=False, kw_only=True)
class FreeBox(Box):
    """M p + A z with p in ``box`` and ``free_low <= z <= free_high``; made by ``Box.freed``.

    ``low`` and ``high`` are the ranges of its columns, wider than those of the box; ``binary`` and ``blocks`` speak of
    p. Its support function is supp_box(M c) + supp_z(A^T c), its nearest point has the nearest z and the nearest M p.
    """

    box: Box
    free: Tensor  # A, (d, k), orthonormal
    free_low: Tensor  # (k,)
    free_high: Tensor

    def __init__(self, box: Box, free: Any, free_low: Any, free_high: Any) -> None:
        free, free_low, free_high = (
            torch.as_tensor(t, dtype=torch.float64).detach().clone() for t in (free, free_low, free_high)
        )
        k = free.shape[1] if free.ndim == 2 else -1
        if free.shape[:1] != (box.d,) or not free_low.shape == free_high.shape == (k,):
            raise ValueError(
                f"free directions must be ({box.d}, k) with k limits on each side; got {tuple(free.shape)}, "
                f"{tuple(free_low.shape)} and {tuple(free_high.shape)}"
            )
        if not bool((free.T @ free - torch.eye(k, dtype=torch.float64)).abs().max() < 1e-6):
            raise ValueError("free directions must be orthonormal; Box.freed makes them so")
        if not bool((torch.isfinite(free_low) & torch.isfinite(free_high) & (free_low <= free_high)).all()):
            raise ValueError("the limits of the free directions must be finite, low <= high")
        fields = {"box": box, "free": free, "free_low": free_low, "free_high": free_high}
        for name, value in (fields | {"blocks": box.blocks, "binary": box.binary}).items():
            object.__setattr__(self, name, value)
        eye = torch.eye(box.d, dtype=torch.float64)
        object.__setattr__(self, "low", -self.support(-eye))
        object.__setattr__(self, "high", self.support(eye))

    @property
    def d(self) -> int:
        return self.box.d

    def __repr__(self) -> str:
        return f"{self.box!r}, free along {self.free.shape[1]} directions"

    @cached_property
    def touched(self) -> Tensor:
        """Which columns a move along the free directions changes: (d,) bool."""
        return self.free.abs().amax(1) > 1e-12

    @cached_property
    def jumping(self) -> list[list[int]]:
        """Those that no free move carries along: the others take any value."""
        return [group for group in self.box.jumping if not bool(self.touched[group].any())]

    def support(self, direction: Tensor) -> Tensor:
        along = direction @ self.free
        run = along.clamp(min=0) * self.free_high + along.clamp(max=0) * self.free_low
        return self.box.support(direction - along @ self.free.T) + run.sum(-1)

    def contains(self, x: Any, tolerance: float = 1e-6) -> Tensor:
        """Whether z lies within its limits and some x + A w within the box: (n, d) -> (n,) bool.

        Exact for up to six free directions that steer discrete columns; with more of them a row outside the box may be
        called outside though it is not.
        """
        given = rows_of(x)
        x = given.detach().cpu().to(self.free)
        slack = tolerance * self.high.abs().maximum(self.low.abs())
        z, z_slack = x @ self.free, slack @ self.free.abs()  # what rounding of the columns makes of z
        ranged = ((z >= self.free_low - z_slack) & (z <= self.free_high + z_slack)).all(1)
        inside: Tensor = self.box.contains(x, tolerance)
        beyond = (ranged & ~inside).nonzero()[:, 0]
        if len(beyond):
            x = x[beyond]
            nearest = self._inside(x)
            for p in [nearest, self.box.round(nearest), *self._discrete_points(x, nearest)]:
                near = (self._across(p - x).abs() <= slack).all(1)
                inside[beyond] |= self.box.contains(p, tolerance) & near
        inside &= ranged
        return inside.to(given.device)

    def project(self, x: Tensor) -> Tensor:
        wide = x.to(self.free)
        return self._nearest(self._inside(wide), wide).to(x)

    def pull_back(self, x: Tensor) -> Tensor:
        wide = x.to(self.free)
        return self._at(self._inside(wide, FEW_ROUNDS), wide).to(x)

    def lifted(self, x: Tensor) -> Tensor:
        """The p of M p + A z."""
        return self._inside(x)

    def carried(self, x: Tensor, lift: Tensor) -> tuple[Tensor, Tensor]:
        """p + M (x - p) is the nearest to p of those whose M p is that of x: there, back into the box, and again. Any
        p would be sound; from the p before the step two rounds lead about as near as Newton's method from nowhere."""
        for _ in range(CARRIED_ROUNDS):
            lift = self.box.project(lift + self._across(x - lift))
        return self._at(lift, x), lift

    def round(self, x: Tensor) -> Tensor:
        """A point of the set stays what it is: only so does a free move cost nothing also after rounding."""
        wide = x.to(self.free).reshape(-1, self.d)
        nearest = self._inside(wide)
        p = self.box.round(nearest)
        far = (~self._close(p, wide)).nonzero()[:, 0]
        for other in self._discrete_points(wide[far], nearest[far]) if len(far) else ():
            p[far] = torch.where(self.box.contains(other, CLOSE)[:, None], other, p[far])
        return self._nearest(p, wide).reshape(x.shape).to(x)

    def hull(self) -> Box:
        return FreeBox(self.box.hull(), self.free, self.free_low, self.free_high)

    def freed(self, directions: Any, x: Any) -> Box:
        return self.box.freed(directions, x)

    def restrict(self, columns: Sequence[int]) -> Box:
        index = torch.tensor(list(columns), dtype=torch.long)
        left = self.touched.clone()
        left[index] = False
        if bool(left.any()):
            raise ValueError(f"the free directions use the column(s) {left.nonzero()[:, 0].tolist()[:10]}; keep them")
        return FreeBox(self.box.restrict(columns), self.free[index], self.free_low, self.free_high)

    def turned(self, directions: Tensor) -> tuple[Tensor, Tensor] | None:
        """The directions of a metric turned so that the free ones come first, (d, k), and what turns them back, (k, k);
        None if a free direction is none of the metric's. Kept for the next call, which a training step makes."""
        kept = self.__dict__.get("_turned")
        if kept is None or kept[0] is not directions:
            basis, wide = self.free, directions.detach().cpu().to(torch.float64)
            rest = orthonormal(wide - basis @ (basis.T @ wide))
            turned = torch.cat([basis, rest], 1)
            fits = turned.shape == wide.shape  # as many are left over only if the free ones are among them
            back = (t.to(directions.dtype).to(directions.device) for t in (turned, wide.T @ turned))
            answer = (next(back), next(back)) if fits else None
            kept = (directions, answer)
            object.__setattr__(self, "_turned", kept)
        found: tuple[Tensor, Tensor] | None = kept[1]
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_turned"}

    def _across(self, x: Tensor) -> Tensor:
        """M x."""
        return x - (x @ self.free) @ self.free.T

    def _at(self, p: Tensor, x: Tensor) -> Tensor:
        """M p + A z with the z of x, as near as it may be."""
        z = (x @ self.free).clamp(self.free_low, self.free_high)
        return p + (z - p @ self.free) @ self.free.T

    def _close(self, p: Tensor, x: Tensor) -> Tensor:
        """Whether M p is M x, but for what Newton's method left: (..., d) -> (...) bool."""
        return (self._across(p - x).abs() <= CLOSE * self.high.abs().maximum(self.low.abs())).all(-1)

    def _nearest(self, p: Tensor, x: Tensor) -> Tensor:
        """``_at``, with the M x of x itself where M p is the same."""
        return self._at(torch.where(self._close(p, x)[..., None], x, p), x)

    def _inside(self, x: Tensor, rounds: int = 60) -> Tensor:
        """A point p of the box's hull whose M p is nearest to M x: (..., d) -> (..., d).

        min over w of |x + A w - its projection|^2 is smooth and piecewise quadratic in the k numbers w: a few steps of
        Newton's method, each kept where it helps. Any p would be sound, since M p + A z is in Dom.
        """
        at = x.reshape(-1, self.d)
        p = self.box.project(at)
        found, rows = p.clone(), torch.arange(len(at))
        gap, w = at - p, at.new_zeros(len(at), self.free.shape[1])
        size, damping = gap.square().sum(1), at.new_full((len(at),), 1e-9)
        eye = torch.eye(self.free.shape[1], dtype=at.dtype)
        small = 1e-10 * float(self.box.high.abs().maximum(self.box.low.abs()).max())
        for _ in range(rounds):
            slope = gap @ self.free
            going = slope.abs().amax(1) > small + 4e-9 * size.sqrt()  # below that the size no longer shows a gain
            if not bool(going.all()):  # whoever is there leaves
                found[rows] = p
                at, p, gap, slope, w, size, damping, rows = (
                    t[going] for t in (at, p, gap, slope, w, size, damping, rows)
                )
            if len(rows) == 0:
                break
            bend = self._bend(p, gap) + damping[:, None, None] * eye
            tried = w - torch.linalg.solve(bend, slope)
            moved = at + tried @ self.free.T
            inside = self.box.project(moved)
            rest = moved - inside
            less = rest.square().sum(1)
            better = less < size
            size = torch.where(better, less, size)
            damping = torch.where(better, (0.1 * damping).clamp(min=1e-12), (10 * damping).clamp(min=1e-3))
            kept = better[:, None]
            w, p, gap = torch.where(kept, tried, w), torch.where(kept, inside, p), torch.where(kept, rest, gap)
        found[rows] = p
        return found.reshape(x.shape)

    def _bend(self, p: Tensor, gap: Tensor) -> Tensor:
        """A^T (I - J) A with J the Jacobian of the box's projection: (n, d), (n, d) -> (n, k, k)."""
        out = (gap != 0).to(p.dtype)  # a column that is cut off follows with slope zero
        for columns in self.box._alike:
            out[:, columns] = (p[:, columns] <= 0).to(p.dtype)
        k = self.free.shape[1]
        bend = (out @ (self.free[:, :, None] * self.free[:, None]).flatten(1)).reshape(-1, k, k)
        for columns in self.box._alike:  # the positive entries of a block all lose the mean of their moves
            positive = (p[:, columns] > 0).to(p.dtype)  # (n, blocks, size)
            lost = torch.einsum("nbs,bsk->nbk", positive, self.free[columns])
            bend = bend + torch.einsum("nbi,nbj,nb->nij", lost, lost, 1 / positive.sum(-1))
        return bend

    def _discrete_points(self, x: Tensor, nearest: Tensor) -> Iterator[Tensor]:
        """The points x + A w of which as many discrete columns as A can steer have one of their two values."""
        discrete = [*self.binary, *(j for block in self.blocks for j in block)]
        steered: list[int] = []
        rest = self.free.clone()
        while discrete and len(steered) < rest.shape[1]:
            j = max(discrete, key=lambda j: float(rest[j].norm()))
            if float(rest[j].norm()) < 1e-9:
                break
            steered.append(j)
            unit = rest[j] / rest[j].norm()
            rest = rest - (rest @ unit)[:, None] * unit
        if not 0 < len(steered) <= MOST_STEERED:
            return
        solve = torch.linalg.pinv(self.free[steered])  # (k, number of columns)
        w = (nearest - x) @ self.free
        at = x + w @ self.free.T
        for ends in itertools.product(*((self.box.low[j], self.box.high[j]) for j in steered)):
            yield at + (torch.stack(ends) - at[:, steered]) @ solve.T @ self.free.T
