"""Walks: what the head of a model (search/head.py) gives as x' = x + A u + v moves, without asking the model.

* ``settle(u)`` goes to x + A u, ``move(v)`` from there to x + A u + v; both give the head's output z, (n, H)
* ``slope_u(slope)`` and ``slope_v(slope)`` turn a slope with respect to z at the latest point into one of u or v
* after ``start_line()`` and ``move(v)``, ``on_line(t)`` goes to a share t, (n,), of the way between
* ``walked_at`` and ``settled_at`` are what the training step needs of the points that were found, see
  ``first_layer.moved``

``reuse``: write every point over the one before it. Buffers have the layout of what is walked, see ``beside``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.search.head import Affine, RowNorm
from evenhand.search.mode import constant


class LinearWalk:
    """z = Z0 + (W A) u + W v, with Z0 = W x + b and W A made once per batch: in the subspace nothing touches d."""

    def __init__(self, weight: Tensor, z: Tensor, directions: Tensor, reuse: bool = False) -> None:
        self.z, self.weight, self.reuse = z, weight, reuse
        self.forth = weight.T
        self.low_rank = directions.T @ self.forth  # (W A)^T, (k, H)
        self.response = self.low_rank.T
        self.base = self.here = z
        self.settled = torch.empty_like(z) if reuse else None
        self.moved: Tensor | None = None
        self.line: tuple[Tensor, Tensor | None] = z, None
        self.u_slope = beside(z, directions.shape[1]) if reuse else None
        self.v_slope: Tensor | None = None

    def settle(self, u: Tensor) -> Tensor:
        self.base = self.here = torch.addmm(self.z, u, self.low_rank, out=self.settled)
        return self.here

    def move(self, v: Tensor, rows: Tensor | None = None) -> Tensor:
        """rows: where v is not zero; the large product only for these."""
        self.moved = torch.empty_like(self.z) if self.moved is None or not self.reuse else self.moved
        if rows is None or 2 * len(rows) > len(v):
            self.here = torch.addmm(self.base, v, self.forth, out=self.moved)
            return self.here
        self.here = self.moved.copy_(self.base)
        if len(rows):
            self.here[rows] += v[rows] @ self.forth
        return self.here

    def start_line(self) -> None:
        self.line = self.here, None
        self.moved = None  # the line may start in this buffer, which must then stay as it is

    def on_line(self, t: Tensor) -> Tensor:
        self.line = start, end = self.line[0], self.here if self.line[1] is None else self.line[1]
        self.here = torch.lerp(start, end, t[:, None])
        return self.here

    def slope_u(self, slope: Tensor) -> Tensor:
        return torch.mm(slope, self.response, out=self.u_slope)

    def slope_v(self, slope: Tensor) -> Tensor:
        if self.reuse and self.v_slope is None:
            self.v_slope = beside(self.z, self.weight.shape[1])
        return torch.mm(slope, self.weight, out=self.v_slope)

    def settled_at(self, u: Tensor, rows: Tensor) -> Tensor:
        """What is walked at x + A u by some of the rows, without going there."""
        return torch.addmm(self.z.T.index_select(1, rows).T, u, self.low_rank)

    def walked_at(self, u: Tensor, v: Tensor | None, current: Tensor) -> Tensor:
        """What is walked at x + A u + v; rows that are ``current`` are where the walk stands now."""
        z = self.here
        stale = (~current).nonzero()[:, 0]
        if len(stale):
            z[stale] = torch.addmm(self.z[stale], u[stale], self.low_rank)
        if v is not None:  # the large product only where there is something to multiply
            stale = stale[v[stale].any(dim=1).nonzero()[:, 0]]
            if len(stale):
                z[stale] += v[stale] @ self.forth
        return z


class NormedWalk:
    """z = s(x') y + b, where y = W P x' walks linearly, and 1/s^2 - eps = |P x'|^2 / d is a quadratic of u.

    Both are sums that begin at x. Where x' can be far smaller than x, as with a sensitive column in the hundred
    thousands beside columns about 1, their digits cancel, and s would make that large: see ``keeps_digits``.
    """

    def __init__(
        self, norm: RowNorm, bias: Tensor, walk: LinearWalk, x: Tensor, directions: Tensor, reuse: bool = False
    ) -> None:
        self.norm, self.bias, self.walk, self.directions = norm, bias, walk, directions
        self.width = x.shape[1]
        self.x = beside(x, self.width).copy_(norm.centred(x))  # P x
        self.across = norm.centred(directions.T)  # (P A)^T
        self.scratch = torch.empty_like(self.x)
        self.square = self._mean_square(self.x)
        self.tilt = beside(x, directions.shape[1]).copy_(self.x @ directions).div_(self.width)  # A^T P x / d
        self.bend = self.across @ directions / self.width  # A^T P A / d
        self.pull = torch.empty_like(self.tilt)
        self.z = torch.empty_like(walk.z) if reuse else None
        self.product = torch.empty_like(walk.z)
        self.u: Tensor | None = None
        self.base: Tensor | None = None  # P (x + A u), made when it is needed
        self.point: Tensor | None = self.x  # P x' where it is at hand
        self.moved: Tensor | None = None
        self.line: tuple[Tensor, Tensor | None] = self.x, None
        self.scale = norm.scale(self.square)[:, None]

    def keeps_digits(self) -> bool:
        """Whether |P x'|^2 is known to a ten thousandth of itself, or better, wherever u leads from x.

        It is least at the distance of x from the span of A, orthonormal, and of 1 where P centres.
        """
        least = self.square - self.tilt.square().sum(1) * self.width
        if self.norm.centres:
            ones = self.directions.sum(0)  # A^T 1; what of 1 is across A has the squared length d - |A^T 1|^2
            across = (self.width - ones.square().sum()).clamp_min(1e-6)
            least = least - (self.tilt @ ones).square() * self.width / across
        return bool((least + self.norm.eps >= 1e4 * torch.finfo(least.dtype).eps * self.square).all())

    def settle(self, u: Tensor) -> Tensor:
        self.u, self.base, self.point = u, None, None
        torch.addmm(self.tilt, u, self.bend, out=self.pull)  # A^T P x' / d, half the slope of |P x'|^2 / d
        square = (self.tilt + self.pull).mul_(u).sum(1).add_(self.square).clamp_min_(0)
        return self._finished(self.walk.settle(u), square)

    def move(self, v: Tensor, rows: Tensor | None = None) -> Tensor:
        self.moved = torch.empty_like(self.x) if self.moved is None else self.moved
        self.point = torch.add(self._settled(), v, out=self.moved)
        if self.norm.centres:
            self.point.sub_(self.point.mean(1, keepdim=True))
        return self._finished(self.walk.move(v, rows), self._mean_square(self.point))

    def start_line(self) -> None:
        self.line, self.moved = (self._point(), None), None  # a line may start in this buffer
        self.walk.start_line()

    def on_line(self, t: Tensor) -> Tensor:
        self.line = start, end = self.line[0], self._point() if self.line[1] is None else self.line[1]
        self.point = torch.lerp(start, end, t[:, None])
        return self._finished(self.walk.on_line(t), self._mean_square(self.point))

    def slope_u(self, slope: Tensor) -> Tensor:
        pull = self.pull if self.point is None else (self.point @ self.directions).div_(self.width)
        by_square = self._slope_of_square(slope)
        return self.walk.slope_u(slope).mul_(self.scale).addcmul_(pull, by_square)

    def slope_v(self, slope: Tensor) -> Tensor:
        by_square = self._slope_of_square(slope)
        return self.walk.slope_v(slope).mul_(self.scale).addcmul_(self._point(), by_square, value=1 / self.width)

    def settled_at(self, u: Tensor, rows: Tensor) -> Tensor:
        return self.walk.settled_at(u, rows)

    def walked_at(self, u: Tensor, v: Tensor | None, current: Tensor) -> Tensor:
        return self.walk.walked_at(u, v, current)

    def _finished(self, walked: Tensor, square: Tensor) -> Tensor:
        self.scale = self.norm.scale(square)[:, None]
        return torch.addcmul(self.bias, walked, self.scale, out=self.z)

    def _mean_square(self, point: Tensor) -> Tensor:
        return torch.mul(point, point, out=self.scratch).sum(1).div_(self.width)

    def _slope_of_square(self, slope: Tensor) -> Tensor:
        """Twice the slope of the gain with respect to |P x'|^2 / d, by s' = -s^3 / 2: (n, 1)."""
        by_scale = torch.mul(slope, self.walk.here, out=self.product).sum(1, keepdim=True)
        return by_scale.mul_(self.scale.pow(3)).neg_()

    def _point(self) -> Tensor:
        self.point = self._settled() if self.point is None else self.point
        return self.point

    def _settled(self) -> Tensor:
        if self.base is None:
            self.base = self.x if self.u is None else torch.addmm(self.x, self.u, self.across)
        return self.base


Walk = LinearWalk | NormedWalk


def walk_along(head: Affine, x: Tensor, walked: Tensor, directions: Tensor, reuse: bool = False) -> Walk:
    """How the head's output moves from x, from what ``head.walked`` gave there."""
    weight = constant(head.weight)
    if head.norm is None:
        return LinearWalk(weight, walked, directions, reuse)
    assert head.bias is not None
    walk = LinearWalk(weight, walked, directions, reuse=True)
    return NormedWalk(head.norm, constant(head.bias), walk, x, directions, reuse)


def beside(like: Tensor, width: int, n: int | None = None) -> Tensor:
    """An empty (n, width) matrix whose columns are contiguous: feature by feature, the individuals side by side."""
    n = like.shape[0] if n is None else n
    return like.new_empty_strided((n, width), (1, n))
