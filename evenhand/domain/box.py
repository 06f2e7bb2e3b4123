"""A box, some of whose columns may be discrete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

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

    def contains(self, x: Any, tolerance: float = 1e-6) -> Tensor:
        """Which rows lie in the (discrete) set: (n, d) -> (n,) bool; on the device and in the precision of x, which may
        be a frame or an array, too: ``X[box.contains(X).numpy()]``."""
        x = rows_of(x)
        low, high = self.low.to(x.dtype).to(x.device), self.high.to(x.dtype).to(x.device)
        slack = tolerance * high.abs().maximum(low.abs())  # in the columns' own units
        inside: Tensor = ((x >= low - slack) & (x <= high + slack)).all(1)
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
        from evenhand.domain.free import FreeBox  # which is a Box

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


def rows_of(people: Any) -> Tensor:
    """A tensor as it is; a frame or an array as one."""
    return people if isinstance(people, Tensor) else _numbers(people)


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
