"""Dom, the set of possible individuals: a box, some of whose columns may be discrete, along some of whose directions
people may run further than its columns would let them.

    Dom = { M p + A z : p in the box, low <= z <= high },   M = I - A A^T             (A orthonormal, maybe empty)

One definition for training's search, audit, certificate and files.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

MOST_STEERED = 6  # 2^6 combinations of discrete values are tried, not more
FEW_ROUNDS = 4  # of Newton's method, for points that are only passed
CARRIED_ROUNDS = 2  # of alternating projections, from where the step before ended
FREE_ALONE = 0.9  # from this squared length of its part along the free directions on, a column moves freely by itself


@dataclass(frozen=True, eq=False)
class Box:
    """All x with low <= x <= high, where ``binary`` columns take only the two values low and high, and each one-hot
    block in ``blocks`` holds exactly one 1.

    Accepted wherever bounds=(low, high) is. Searches and lower bounds use the discrete set itself, upper bounds the set
    itself for sensitive binary columns and its convex hull otherwise, so both are true of the discrete set.

    >>> Box(0.0, 1.0, binary=[3], d=4)
    Box of 4 columns, 1 of them binary
    """

    low: Tensor
    high: Tensor
    blocks: tuple[tuple[int, ...], ...] = ()
    binary: tuple[int, ...] = ()

    def __init__(
        self,
        low: Any,
        high: Any,
        blocks: Sequence[Sequence[int]] = (),
        binary: Sequence[int] = (),
        d: int | None = None,
    ) -> None:
        low, high = (_numbers(side) for side in (low, high))
        sizes = {side.shape[0] for side in (low, high) if side.ndim == 1} | ({d} if d is not None else set())
        if low.ndim > 1 or high.ndim > 1 or len(sizes) != 1:
            raise ValueError(
                f"low and high must be numbers or hold one value per column; got shapes {tuple(low.shape)} and "
                f"{tuple(high.shape)}" + ("" if d is None else f" for {d} columns") + "; with two numbers give d="
            )
        (size,) = sizes
        low, high = low.expand(size).clone(), high.expand(size).clone()
        if not bool((torch.isfinite(low) & torch.isfinite(high) & (low <= high)).all()):
            raise ValueError(
                "bounds must be finite with low <= high in every column: R(h) of an unbounded set is infinite"
            )
        named = [int(j) for block in blocks for j in block] + [int(j) for j in binary]
        if len(set(named)) != len(named) or any(not 0 <= j < size for j in named):
            raise ValueError(f"blocks and binary must name distinct columns between 0 and {size - 1}; got {named}")
        for block in blocks:
            index = torch.tensor([int(j) for j in block])
            if len(block) == 0 or bool((low[index] > 0).any() or (high[index] < 1).any()):
                raise ValueError(
                    f"the columns of a one-hot block must have bounds 0 and 1; block {list(block)} has not"
                )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "blocks", tuple(tuple(int(j) for j in block) for block in blocks))
        object.__setattr__(self, "binary", tuple(int(j) for j in binary))

    @classmethod
    def of(cls, bounds: Any, d: int) -> Box:
        """Bounds given as a Box or as (low, high), for d columns."""
        if bounds is None:
            raise ValueError(
                "bounds are needed: without them moves along the sensitive directions have no end and R(h) is "
                "infinite; give (low, high), or a Box, for example the range of the training data"
            )
        if isinstance(bounds, cls):
            if bounds.d != d:
                raise ValueError(f"bounds have {bounds.d} columns but x has {d}")
            return bounds
        low, high = bounds
        return cls(low, high, d=d)

    @property
    def d(self) -> int:
        return self.low.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        """low, high: a Box unpacks like the pair it stands for."""
        yield self.low
        yield self.high

    def __repr__(self) -> str:
        parts = [f"Box of {self.d} columns"]
        if self.binary:
            parts.append(f"{len(self.binary)} of them binary")
        if self.blocks:
            parts.append(f"{len(self.blocks)} one-hot blocks")
        return ", ".join(parts)

    @cached_property
    def jumping(self) -> list[list[int]]:
        """Groups of columns that jump together: binary columns alone, one-hot blocks as a whole."""
        return [[j] for j in self.binary] + [list(block) for block in self.blocks]

    @cached_property
    def two_valued(self) -> Tensor:
        """Which columns are binary: (d,) bool."""
        named = torch.zeros(self.d, dtype=torch.bool)
        named[list(self.binary)] = True
        return named

    @cached_property
    def _alike(self) -> list[Tensor]:
        """The blocks of each size together, (number of blocks, size): one operation for all of them."""
        sizes = sorted({len(block) for block in self.blocks})
        return [torch.tensor([block for block in self.blocks if len(block) == size]) for size in sizes]

    def contains(self, x: Tensor, tolerance: float = 1e-6) -> Tensor:
        """Which rows lie in the (discrete) set: (n, d) -> (n,) bool; on the device and in the precision of x."""
        low, high = self.low.to(x.dtype).to(x.device), self.high.to(x.dtype).to(x.device)
        slack = tolerance * high.abs().maximum(low.abs())  # in the columns' own units
        inside = ((x >= low - slack) & (x <= high + slack)).all(1)
        two = list(self.binary)
        ends = (x[:, two] - low[two]).abs().minimum((x[:, two] - high[two]).abs())
        inside &= (ends <= slack[two]).all(1)
        for block in self.blocks:
            part = x[:, list(block)]
            inside &= ((part - 1).abs() <= tolerance).any(1) & ((part.sum(1) - 1).abs() <= tolerance * len(block))
        return inside

    def support(self, direction: Tensor) -> Tensor:
        """sup of direction . x over the set: (..., d) -> (...). The set and its convex hull have the same."""
        value = direction.clamp(min=0) * self.high + direction.clamp(max=0) * self.low
        if not self.blocks:
            return value.sum(-1)
        in_blocks = [j for block in self.blocks for j in block]
        total = value.sum(-1) - value[..., in_blocks].sum(-1)
        for block in self.blocks:
            total = total + direction[..., list(block)].amax(-1)
        return total

    def project(self, x: Tensor) -> Tensor:
        """The nearest point of the convex hull: (n, d) -> (n, d)."""
        inside = x.clamp(self.low, self.high)
        for columns in self._alike:
            inside[..., columns] = _to_simplex(x[..., columns])
        return inside

    def pull_back(self, x: Tensor) -> Tensor:
        """A point of the convex hull, about the nearest one: what a step of a search needs. (n, d) -> (n, d)"""
        return self.project(x)

    def lifted(self, x: Tensor) -> Tensor:
        """What a search carries along with points, so that ``carried`` is cheap: of a plain box nothing, (n, 0)."""
        return x[:, :0]

    def carried(self, x: Tensor, lift: Tensor) -> tuple[Tensor, Tensor]:
        """Points that have taken a step, back in the convex hull, about the nearest; and what is carried on."""
        return self.project(x), lift

    def round(self, x: Tensor) -> Tensor:
        """A nearby point of the discrete set: nearest value of each binary column, largest entry of each block."""
        inside = x.clamp(self.low, self.high)
        if self.binary:
            two = list(self.binary)
            low, high = self.low[two], self.high[two]
            inside[..., two] = torch.where(inside[..., two] > (low + high) / 2, high, low)
        for columns in self._alike:
            entries = x[..., columns]
            inside[..., columns] = torch.zeros_like(entries).scatter(-1, entries.argmax(-1, keepdim=True), 1.0)
        return inside

    def hull(self) -> Box:
        """The convex hull: the same set without binary columns, blocks as simplices."""
        return Box(self.low, self.high, self.blocks)

    def freed(self, directions: Any, x: Any) -> Box:
        """This set, where moves along the directions (d, k) end only where nobody in x (n, d) has been.

        Inside a box of one-hot columns a learned direction has no room: almost every move along it leaves the box at
        once. So its coordinate runs over the range that it takes in x, whatever the single columns say. Sensitive
        binary columns keep their two values: the directions count only as far as they leave these alone.
        """
        basis = orthonormal(_numbers(directions))
        kept = [j for j in self.binary if basis[j].square().sum() > FREE_ALONE]
        rest = basis - basis @ torch.linalg.pinv(basis[kept]) @ basis[kept] if kept else basis
        free = orthonormal(rest)
        if free.shape[1] == 0:
            return self
        z = _numbers(x) @ free
        return FreeBox(self, free, z.amin(0), z.amax(0))

    def restrict(self, columns: Sequence[int]) -> Box:
        """The same set seen on some of its columns; a block must be kept or dropped as a whole."""
        place = {j: i for i, j in enumerate(columns)}
        blocks = [[place[j] for j in block] for block in self.blocks if all(j in place for j in block)]
        binary = [place[j] for j in self.binary if j in place]
        index = torch.tensor(list(columns), dtype=torch.long)
        return Box(self.low[index], self.high[index], blocks, binary, d=len(place))


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

    def contains(self, x: Tensor, tolerance: float = 1e-6) -> Tensor:
        """Whether z lies within its limits and some x + A w within the box: (n, d) -> (n,) bool.

        Exact for up to six free directions that steer discrete columns; with more of them a row outside the box may be
        called outside though it is not.
        """
        given, x = x, x.detach().cpu().to(self.free)
        slack = tolerance * self.high.abs().maximum(self.low.abs())
        z, z_slack = x @ self.free, slack @ self.free.abs()  # what rounding of the columns makes of z
        ranged = ((z >= self.free_low - z_slack) & (z <= self.free_high + z_slack)).all(1)
        inside = self.box.contains(x, tolerance)
        beyond = (ranged & ~inside).nonzero()[:, 0]
        if len(beyond):
            x = x[beyond]
            nearest = self._inside(x)
            for p in [nearest, self.box.round(nearest), *self._discrete_points(x, nearest)]:
                near = (self._across(p - x).abs() <= slack).all(1)
                inside[beyond] |= self.box.contains(p, tolerance) & near
        return (ranged & inside).to(given.device)

    def project(self, x: Tensor) -> Tensor:
        wide = x.to(self.free)
        return self._at(self._inside(wide), wide).to(x)

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
        wide = x.to(self.free)
        return self._at(self.box.round(self._inside(wide)), wide).to(x)

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


def _numbers(side: Any) -> Tensor:
    """A number, a list, an array, a frame: in float64."""
    if isinstance(side, Tensor):
        return side.detach().to(torch.float64)
    try:
        return torch.from_numpy(np.array(side, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(
            f"the set of possible people is made of numbers, one per column; got {type(side).__name__} of others"
        ) from None


def orthonormal(directions: Tensor) -> Tensor:
    """Gram-Schmidt in the given order, columns that add nothing left out: (d, k) -> (d, rank)."""
    basis = directions[:, :0]
    for column in directions.T:
        rest = column
        for _ in range(2):  # twice is enough for orthogonality to rounding
            rest = rest - basis @ (basis.T @ rest)
        if rest.norm() > 1e-6 * column.norm().clamp(min=1.0):
            basis = torch.cat([basis, (rest / rest.norm())[:, None]], 1)
    return basis


def _to_simplex(x: Tensor) -> Tensor:
    """Euclidean projection on {p >= 0, sum p = 1} along the last axis (Held, Wolfe and Crowder 1974)."""
    ordered = x.sort(-1, descending=True).values
    excess = ordered.cumsum(-1) - 1
    count = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    kept = (ordered * count > excess).sum(-1, keepdim=True)
    return (x - excess.gather(-1, kept - 1) / kept).clamp(min=0)
