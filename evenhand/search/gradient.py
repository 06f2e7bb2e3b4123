"""The paper's search for the worst case: a subspace stage that costs nothing, then a full stage that pays."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from evenhand.fair_metrics.metric import FairMetric
from evenhand.search.ascent import AdamAscent, Ascent
from evenhand.search.found import Bounds, DistanceGain, Found, Gain, Model, box
from evenhand.search.mode import eval_mode, gradients_allowed
from evenhand.search.split import Path, PlainPath, split


@dataclass(frozen=True)
class GradientSearch:
    """Maximise gain(h(x')) - lam * d_X(x, x') over x' = x + A u + v, row by row.

    The subspace stage moves u (``subspace_steps`` of size ``subspace_step``; the paper's se and s), the full stage moves
    v with the distance term (``full_steps`` of ``full_step``; fe and f). It starts from uniform noise of size ``noise``
    in the subspace, because the squared distance is flat at x' = x, and keeps the best point of each row, so that it
    never ends below its start. ``reach`` limits each |u_j|, which an unbounded input space does not. ``starts`` repeats
    the whole search from other noise. ``lam = inf`` allows only moves that cost nothing (eps = 0).

    The model is left as it was found. It may be in any mode, hold frozen layers, and be called under ``no_grad``.
    """

    subspace_step: float = 0.5
    subspace_steps: int = 5
    full_step: float = 0.05
    full_steps: int = 5
    noise: float = 0.1
    reach: float | None = None
    starts: int = 1
    ascent: Callable[[Tensor, float], Ascent] = AdamAscent
    fast: bool = True  # use the split paths of search/split.py where they apply
    first_layer: str | None = None  # name of the model's first linear layer where it cannot be found by itself
    _agreed: weakref.WeakKeyDictionary[object, bool] = field(
        default_factory=weakref.WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __call__(
        self,
        model: Model,
        gain: Gain,
        x: Tensor,
        fair_metric: FairMetric,
        lam: Tensor | float,
        bounds: Bounds = None,
        generator: torch.Generator | None = None,
    ) -> Found:
        fair_metric.check_width(x)
        with gradients_allowed(), eval_mode(model):
            x = x.detach().clone() if x.is_inference() else x.detach()
            path = self._path(model, gain, x, fair_metric)
            climb = _Climb(self, path, x, fair_metric, float(lam), box(bounds, x), _gain_at_x(model, gain, x))
            for _ in range(self.starts):
                climb.run(generator)
            return climb.found()

    def _path(self, model: Model, gain: Gain, x: Tensor, fair_metric: FairMetric) -> Path:
        directions = fair_metric.directions
        if self.fast:
            cut = split(model, self.first_layer)
            if cut is not None and model not in self._agreed:
                self._agreed[model] = cut.agrees(model, x[:64])
            if cut is not None and self._agreed[model]:
                return cut.path(gain, x, directions)
        return PlainPath(model, gain, x, directions)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_agreed"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _agreed=weakref.WeakKeyDictionary())


def _gain_at_x(model: Model, gain: Gain, x: Tensor) -> Tensor:
    if isinstance(gain, DistanceGain):
        return x.new_zeros(len(x))  # d_Y(h(x), h(x)) = 0
    with torch.no_grad():
        return gain(model(x))


class _Climb:
    """One search of one batch: the current best of each row, and the two stages that improve it."""

    def __init__(
        self,
        search: GradientSearch,
        path: Path,
        x: Tensor,
        fair_metric: FairMetric,
        lam: float,
        limits: tuple[Tensor, Tensor] | None,
        gain_at_x: Tensor,
    ) -> None:
        self.search, self.path, self.x, self.metric, self.lam = search, path, x, fair_metric, lam
        self.down, self.up = (None, None) if limits is None else (limits[0] - x, limits[1] - x)
        self.free_only = lam == float("inf")
        k = fair_metric.directions.shape[1]
        self.best, self.gain, self.d_x = gain_at_x, gain_at_x, torch.zeros_like(gain_at_x)  # x' = x costs nothing
        self.u, self.v = x.new_zeros(len(x), k), None if limits is None else torch.zeros_like(x)
        self.u_limits = self._u_limits()

    def run(self, generator: torch.Generator | None) -> None:
        u = torch.rand(self.u.shape, generator=generator, dtype=self.x.dtype, device=self.x.device)
        u = self._clamp_u(u.mul_(2).sub_(1).mul_(self.search.noise))
        if self.search.subspace_steps > 0 or self.search.full_steps == 0:
            u = self._subspace_stage(u)
        if self.search.full_steps > 0 and not self.free_only:
            self._full_stage(u)

    def found(self) -> Found:
        delta = self.u @ self.metric.directions.T
        if self.v is not None:
            delta = delta + self.v
        x_worst = self.x + delta
        if self.down is not None and self.up is not None:  # rounding of x + delta must not leave the box
            x_worst = torch.maximum(torch.minimum(x_worst, self.x + self.up), self.x + self.down)
        return Found(x_worst, self.d_x, self.gain, self.u, self.v)

    def _subspace_stage(self, u: Tensor) -> Tensor:
        """Climb over u at no cost; returns where the stage ended."""
        if u.shape[1] == 0:
            return u
        ascent = self.search.ascent(u, self.search.subspace_step)
        for step in range(self.search.subspace_steps + 1):
            value, slope, rest = self._at_u(u)
            self._keep(value, self._cost(rest), u, rest)
            if step < self.search.subspace_steps:
                ascent.climb(slope)
                self._clamp_u(u)
        return u

    def _full_stage(self, u: Tensor) -> None:
        """Climb over v from the end of the subspace stage, now with the distance term."""
        free = u @ self.metric.directions.T
        v = self._into_box(free, torch.zeros_like(self.x))
        ascent = self.search.ascent(v, self.search.full_step)
        for step in range(self.search.full_steps + 1):
            value, slope = self.path.full(free + v)
            self._keep(value, self.metric.cost(v), u, v)
            if step < self.search.full_steps:
                ascent.climb(slope - self.lam * self.metric.cost_gradient(v))
                self._into_box(free, v)

    def _at_u(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Gain and slope at x + A u, moved into the box; also what the box added to A u."""
        if self.down is None or self.up is None:
            value, slope = self.path.subspace(u)
            return value, slope, None
        if self.free_only:
            u.copy_(self._free_part(u))
        free = u @ self.metric.directions.T
        rest = self._into_box(free, torch.zeros_like(self.x))
        value, slope = self.path.full(free + rest)
        return value, slope @ self.metric.directions, rest

    def _into_box(self, free: Tensor, v: Tensor) -> Tensor:
        """Project x + free + v onto the box by changing v, in place; v stays exact where nothing is cut off."""
        if self.down is None or self.up is None:
            return v
        torch.maximum(v, self.down - free, out=v)
        return torch.minimum(v, self.up - free, out=v)

    def _cost(self, rest: Tensor | None) -> Tensor:
        return self.metric.cost(rest) if rest is not None else torch.zeros_like(self.best)

    def _keep(self, gain: Tensor, d_x: Tensor, u: Tensor, v: Tensor | None) -> None:
        """Remember this point in the rows where it beats the best so far."""
        objective = gain if self.free_only else gain - self.lam * d_x
        better = objective > self.best
        if self.free_only and v is not None:
            better &= d_x <= 1e-9
        column = better[:, None]
        self.best = torch.where(better, objective, self.best)
        self.gain, self.d_x = torch.where(better, gain, self.gain), torch.where(better, d_x, self.d_x)
        self.u = torch.where(column, u, self.u)
        if v is not None:
            self.v = torch.where(column, v, torch.zeros_like(v) if self.v is None else self.v)

    def _u_limits(self) -> tuple[Tensor, Tensor] | None:
        """How far u may go: the range of the sensitive coordinate over the box, and ``reach``."""
        reach = self.search.reach
        if self.down is None or self.up is None:
            return None if reach is None else (-reach * torch.ones_like(self.u), reach * torch.ones_like(self.u))
        plus, minus = self.metric.directions.clamp(min=0), self.metric.directions.clamp(max=0)
        low = self.down @ plus + self.up @ minus
        high = self.up @ plus + self.down @ minus
        return (low, high) if reach is None else (low.clamp_min(-reach), high.clamp_max(reach))

    def _clamp_u(self, u: Tensor) -> Tensor:
        if self.u_limits is not None:
            torch.maximum(u, self.u_limits[0], out=u)
            torch.minimum(u, self.u_limits[1], out=u)
        return u

    def _free_part(self, u: Tensor) -> Tensor:
        """As much of the move u, direction by direction, as stays inside the box without any correction."""
        assert self.down is not None and self.up is not None
        delta, kept = torch.zeros_like(self.x), torch.zeros_like(u)
        for j in range(u.shape[1]):
            move = u[:, j : j + 1] * self.metric.directions[:, j]
            room = torch.where(move > 0, self.up - delta, self.down - delta)
            share = torch.where(move == 0, torch.ones_like(move), room / torch.where(move == 0, 1.0, move))
            kept[:, j] = u[:, j] * share.amin(dim=1).clamp(0, 1)
            delta = delta + kept[:, j : j + 1] * self.metric.directions[:, j]
        return kept
