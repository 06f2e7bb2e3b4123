"""The paper's search for the worst case: a subspace stage that costs nothing, then a full stage that pays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from evenhand.domain import FreeBox
from evenhand.fair_metrics.metric import FairMetric
from evenhand.ranks import rand_rows
from evenhand.search.ascent import AdamAscent, Ascent
from evenhand.search.mode import gradients_allowed
from evenhand.search.model_view import view_of
from evenhand.search.paths import Path
from evenhand.search.worst_cases import Bounds, Gain, Limits, Model, WorstCases, box, gain_at_x


@dataclass(frozen=True)
class GradientSearch:
    """Maximise gain(h(x')) - lam * d_X(x, x') over x' = x + A u + v, row by row.

    The subspace stage moves u (``subspace_steps`` of size ``subspace_step``; the paper's se and s), the full stage
    moves v with the distance term (``full_steps`` of ``full_step``; fe and f). With ``line_search`` a full step follows
    the slope itself and finds its own length, up to ``full_step`` times the square root of d: one such step does the
    work of several of the paper's, which are Adam steps (``line_search=False``). It starts from uniform noise of size
    ``noise`` in the subspace, because the squared distance is flat at x' = x, and keeps the best point of each row, so
    that it never ends below its start. ``reach`` limits each |u_j|, which an unbounded input space does not. ``starts``
    repeats the whole search from other noise. ``lam = inf`` allows only moves that cost nothing (eps = 0).

    The model is left as it was found. It may be in any mode, hold frozen layers, and be called under ``no_grad``.
    """

    subspace_step: float = 0.5
    subspace_steps: int = 3
    full_step: float = 0.3
    full_steps: int = 1
    line_search: bool = True
    noise: float = 0.1
    reach: float | None = None
    starts: int = 1
    ascent: Callable[[Tensor, float], Ascent] = AdamAscent
    fast: bool = True  # walk behind the first linear layer where the model has one (search/first_layer.py)

    def __call__(
        self,
        model: Model,
        gain: Gain,
        x: Tensor,
        fair_metric: FairMetric,
        lam: Tensor | float,
        bounds: Bounds = None,
        generator: torch.Generator | None = None,
        rows: Tensor | None = None,
    ) -> WorstCases:
        fair_metric.check_width(x)
        with gradients_allowed():
            view = view_of(model, x)
            with torch.no_grad(), view.autocast.off():
                x = view.x.detach().clone() if view.x.is_inference() else view.x.detach()
                fair_metric = fair_metric.matching(x)
                directions, back = _directions(fair_metric.directions, bounds)
                path = view.path(gain, directions, self.fast)
                moves = _Moves(directions, back, limits := box(bounds, x), _in_box(bounds, limits, x))
                climb = _Climb(self, path, x, fair_metric, moves, float(lam), gain_at_x(gain, view.h_x))
                for _ in range(self.starts):
                    climb.run(generator)
                return climb.found()


def _directions(directions: Tensor, bounds: Bounds) -> tuple[Tensor, Tensor | None]:
    """The metric's directions, turned so that those which the domain lets run freely come first; and the way back."""
    if not isinstance(bounds, FreeBox):
        return directions, None
    turned = bounds.turned(directions)
    if turned is None:
        raise ValueError(
            "a free direction of the bounds costs something under this metric; build them with its own directions: "
            "box.freed(fair_metric.directions, x)"
        )
    return turned


def _in_box(bounds: Bounds, limits: Limits | None, x: Tensor) -> Tensor:
    """p of x = M p + A z, (n, d): x itself, but for rows that lie outside the box and in the domain all the same."""
    if limits is None or not isinstance(bounds, FreeBox):
        return x
    if len(x) == 0 or bool(((x.amin(0) >= limits.low) & (x.amax(0) <= limits.high)).all()):
        return x
    beyond = ((x < limits.low) | (x > limits.high)).any(1).nonzero()[:, 0]
    p = bounds.lifted(x[beyond].cpu().to(torch.float64))
    return x.index_copy(0, beyond, p.to(x.dtype).to(x.device))


@dataclass(frozen=True)
class _Moves:
    """x' = x + A u + v: the columns of A, (d, k), of which the first run freely, and the limits of the domain."""

    directions: Tensor
    back: Tensor | None  # from the coordinates u to those of the metric's own directions
    limits: Limits | None
    p: Tensor  # (n, d) the people as the limits of the columns see them

    @property
    def freed(self) -> int:
        """How many of the directions have limits of their own."""
        return 0 if self.limits is None or self.limits.free is None else self.limits.free.shape[1]

    def held(self, u: Tensor) -> Tensor:
        """The part of A u that the columns' limits hold, (n, d)."""
        return u[:, self.freed :] @ self.directions[:, self.freed :].T

    def across(self, v: Tensor) -> Tensor:
        """v without what would move the free coordinates: x + A u + M v is in Dom when p + v is in the box."""
        if self.freed == 0:
            return v
        free = self.directions[:, : self.freed]
        return torch.addmm(v, v @ free, free.T, alpha=-1)


class _Climb:
    """One search of one batch: the current best of each row, and the two stages that improve it."""

    def __init__(
        self,
        search: GradientSearch,
        path: Path,
        x: Tensor,
        fair_metric: FairMetric,
        moves: _Moves,
        lam: float,
        gain_at_x: Tensor,
    ) -> None:
        self.search, self.path, self.x, self.metric, self.moves, self.lam = search, path, x, fair_metric, moves, lam
        self.limits = limits = moves.limits
        self.across = fair_metric.directions.T
        self.free_only = lam == float("inf")
        d, k = fair_metric.directions.shape
        self.best, self.u = gain_at_x.clone(), path.zeros(k)  # gain - lam * d_X; x' = x costs nothing
        self.here = gain_at_x  # the objective at the latest point
        self.v: Tensor | None = None  # only once a point was tried that may cost something
        self.current = torch.zeros_like(gain_at_x, dtype=torch.bool)  # rows whose best point is the latest one
        self.margins = self._margins_of(path.zeros(d)) if limits is not None else None
        self.free: tuple[Tensor, Tensor] | None = None  # gain and u where the subspace stage ended, if at no cost
        self.stays_inside = self._stays_inside()  # whatever u is, within its limits
        self.scratch: Tensor | None = None  # (n, d): fresh memory for every step costs more than the arithmetic in it
        self.rest: Tensor | None = None
        self.u_limits = self._u_limits()

    def run(self, generator: torch.Generator | None) -> None:
        u = self._noise(self.u.shape[1], self.search.noise, generator)
        if self.u_limits is not None:  # a coordinate at an end of its range begins the other way: it has no slope at x
            low, high = self.u_limits
            u.mul_(torch.where(u.clamp(low, high) == 0, -1.0, 1.0))
        if self.free_only and not self.stays_inside:
            stuck = ~self._free_part(u).any(dim=1)  # the noise leads out of the box, and at x' = x there is no slope
            u.mul_(torch.where(stuck[:, None], -1.0, 1.0))
        v = self._subspace_stage(u)
        if self.search.full_steps > 0 and not self.free_only:
            if self.v is None and u.shape[1] > 0:
                self.free = self.best.clone(), self.u.clone()  # nothing that was tried so far costs anything
            self._full_stage(u, v, generator)

    def found(self) -> WorstCases:
        x_worst, u = self._moved(self.x, self.u, self.v)
        one = self.free is not None and self.search.starts == self.search.full_steps == 1
        z = self.path.z_at(self.u, None if one else self.v, self.current)  # rows at an earlier point have no v then
        if self.v is None:
            return WorstCases(x_worst, torch.zeros_like(self.best), self.best, u, None, z)
        d_x = self._cost(self.v)
        free = None if self.free is None else self._free_of
        return WorstCases(x_worst, d_x, torch.add(self.best, d_x, alpha=self.lam), u, self.v, z, free)

    def _free_of(self, rows: Tensor | None) -> WorstCases:
        """Where the subspace stage ended, as worst cases among moves that cost nothing, of some of the rows."""
        assert self.free is not None
        rows = torch.arange(len(self.x), device=self.x.device) if rows is None else rows
        gain, free_u = (part[rows] for part in self.free)
        x_worst, u = self._moved(self.x[rows], free_u, None)
        return WorstCases(x_worst, torch.zeros_like(gain), gain, u, None, self.path.z_settled(free_u, rows))

    def _moved(self, x: Tensor, u: Tensor, v: Tensor | None) -> tuple[Tensor, Tensor]:
        """x + A u + v, (n, d), and u in the coordinates of the metric's own directions."""
        x_worst = torch.addmm(x, u, self.moves.directions.T)
        if v is not None:
            x_worst += v
        if self.limits is not None:  # rounding must not leave the box, in columns that nothing moves beyond it
            inside = torch.maximum(torch.minimum(x_worst, self.limits.high), self.limits.low)
            x_worst = inside if self.limits.free is None else torch.where(self.limits.free.any(1), x_worst, inside)
        return x_worst, u if self.moves.back is None else u @ self.moves.back.T

    def _subspace_stage(self, u: Tensor) -> Tensor | None:
        """Climb over u, in place, at no cost; returns what brings x + A u into the box where the stage ends, None if
        nothing had to."""
        self._clamp_u(u)
        v = self._visit(u)
        if u.shape[1] == 0:
            return v
        ascent = self.search.ascent(u, self.search.subspace_step)
        for _ in range(self.search.subspace_steps):
            ascent.climb(self.path.slope_u())
            self._clamp_u(u)
            v = self._visit(u)
        return v

    def _visit(self, u: Tensor) -> Tensor | None:
        """Go to x + A u, moved into the box, and keep it where it is best; returns what brings it into the box."""
        if self.free_only and not self.stays_inside:
            u.copy_(self._free_part(u))
        self.path.settle(u)
        into = None if self.stays_inside or self.free_only else self._back_into_box(u)
        if into is None:
            self._keep(self.path.value(), u, None)
            return None
        cut = into.any(dim=1).nonzero()[:, 0]  # the rows which the box holds back
        v = self.moves.across(into)
        self._keep(self.path.value(v, cut).sub(self._cost(v), alpha=self.lam), u, v)
        return into

    def _back_into_box(self, u: Tensor) -> Tensor | None:
        """What brings x + A u into the box, None where it is inside."""
        assert self.margins is not None
        into = self._into_box(self.moves.held(u), torch.zeros_like(self.margins[0]))
        return into if bool(into.any()) else None

    def _full_stage(self, u: Tensor, into: Tensor | None, generator: torch.Generator | None) -> None:
        """Climb over v = M into from where the subspace stage ended, now with the distance term."""
        d = self.x.shape[1]
        held = self.moves.held(u) if self.margins is not None else None
        if u.shape[1] == 0:  # there is no subspace to start from, and at x' = x the squared distance is flat
            into = self._into_box(held, self._noise(d, self.search.noise / d**0.5, generator))
            self.here = self.path.value(into).sub(self._cost(into), alpha=self.lam)
        price = None if into is None else self._price(into)
        into = self.path.zeros(d) if into is None else into
        ascent = None if self.search.line_search else self.search.ascent(into, self.search.full_step)
        moved = torch.zeros_like(self.current)
        best_v = self.v
        for step in range(self.search.full_steps):
            slope = self.path.slope_v()
            if price is not None:
                slope.sub_(price[1], alpha=2 * self.lam)
            slope = self.moves.across(slope)
            if ascent is None:
                into, objective = self._along_line(into, slope, price, held)
                price = self._price(into) if step + 1 < self.search.full_steps else None
            else:
                ascent.climb(slope)
                self._into_box(held, into)
                price = self._price(into)
                objective = self.path.value(self.moves.across(into)).sub(price[0], alpha=self.lam)
            self._keep(objective, None, self.moves.across(into))
            moved |= self.current
        if moved.any():
            torch.where(moved[:, None], u, self.u, out=self.u)  # u is the same in the whole stage
        else:
            self.v = best_v

    def _along_line(
        self, into: Tensor, slope: Tensor, price: tuple[Tensor, Tensor] | None, held: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Go uphill to the best of three points of the line: its start, its far end inside the box, and the top
        of the parabola through both. The path is cheap along a line, so this costs little more than the far end."""
        length = _squared(slope, self._scratch_for(slope)).sqrt_()[:, None].clamp_min_(torch.finfo(slope.dtype).tiny)
        far = torch.addcdiv(into, slope, length, value=self.search.full_step * into.shape[1] ** 0.5)
        self._into_box(held, far)
        self.path.start_line()
        d_x = self._cost(far)
        end = self.path.value(self.moves.across(far)).sub(d_x, alpha=self.lam)
        move = far.sub_(into)
        near, more = (None, None) if price is None else (price[0], 2 * (price[1] * move).sum(1))
        rise = (slope * move).sum(1)
        bend = self.here + rise - end
        t = torch.where(bend > 0, rise / (2 * bend), 1.0).clamp_(0.0, 1.0)
        inside = t < 1
        if not inside.any():
            return torch.add(into, move), end

        def objective(t: Tensor) -> Tensor:
            """d_X is the parabola near + t * more + t^2 * (d_x - near - more); from x itself t^2 * d_x."""
            paid = t * t * d_x if near is None or more is None else near + t * (more + t * (d_x - near - more))
            return self.path.value_on_line(t).sub(paid, alpha=self.lam)

        top = objective(t)
        beyond = inside & (end > top)
        if beyond.any():
            t = torch.where(beyond, 1.0, t)
            top = objective(t)
        return torch.addcmul(into, t[:, None], move), top

    def _price(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """d_X of the move, (n,), and half its gradient, Sigma v: both from one projection, without a (d, d) product.

        The gradient stays as it is until the next call."""
        if self.metric.factor is not None:
            rest = v @ self.metric.factor.T
            return rest.square().sum(1), rest @ self.metric.factor
        self.rest = torch.empty_like(v) if self.rest is None else self.rest
        rest = self._across_directions(v, self.rest)
        return _squared(rest, self._scratch_for(v)), rest

    def _cost(self, v: Tensor) -> Tensor:
        """d_X of the move alone, (n,)."""
        if self.metric.factor is not None:
            return (v @ self.metric.factor.T).square_().sum(1)
        rest = self._across_directions(v, self._scratch_for(v))
        return _squared(rest, rest)

    def _across_directions(self, v: Tensor, out: Tensor) -> Tensor:
        inside = torch.mm(self.across, v.T)  # (k, n): the thin product is faster this way round
        return torch.addmm(v, inside.T, self.across, alpha=-1, out=out)

    def _scratch_for(self, v: Tensor) -> Tensor:
        self.scratch = torch.empty_like(v) if self.scratch is None else self.scratch
        return self.scratch

    def _keep(self, objective: Tensor, u: Tensor | None, v: Tensor | None) -> None:
        """Remember this point in the rows where it beats the best so far."""
        self.here = objective
        better = self.current = objective > self.best
        if v is not None and self.v is None:
            self.v = torch.zeros_like(v)
        if bool(better.all()):  # most steps are, and a copy costs far less than a choice
            self.best.copy_(objective)
            if u is not None:
                self.u.copy_(u)
            if self.v is not None:
                self.v.zero_() if v is None else self.v.copy_(v)
            return
        torch.where(better, objective, self.best, out=self.best)
        if u is not None:
            torch.where(better[:, None], u, self.u, out=self.u)
        if self.v is not None:
            torch.where(better[:, None], self.v.new_zeros(()) if v is None else v, self.v, out=self.v)

    def _noise(self, width: int, size: float, generator: torch.Generator | None) -> Tensor:
        """Uniform noise (n, width) within +-size."""
        noise = rand_rows(len(self.x), width, generator, self.x)
        return self.path.zeros(width).copy_(noise.mul_(2).sub_(1).mul_(size))

    def _margins_of(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """How far each row may move down and up before it leaves the box, (n, d) twice."""
        assert self.limits is not None
        x.copy_(self.moves.p)
        return self.limits[0] - x, self.limits[1] - x

    def _stays_inside(self) -> bool:
        """Whether the limits of u alone keep every move along the directions in the box: everybody is inside, and each
        direction that the columns' limits hold is one column by itself."""
        if self.margins is None:
            return True
        held = self.moves.directions[:, self.moves.freed :].abs()
        alone = (held.amax(0) == 1).all() & (held.sum(0) == 1).all()
        return len(self.x) == 0 or bool(alone & (self.margins[0].amax() <= 0) & (self.margins[1].amin() >= 0))

    def _into_box(self, held: Tensor | None, v: Tensor) -> Tensor:
        """Project x + held + v onto the box by changing v, in place; v stays exact where nothing is cut off."""
        if self.margins is None or held is None:
            return v
        torch.maximum(v, self.margins[0] - held, out=v)
        return torch.minimum(v, self.margins[1] - held, out=v)

    def _u_limits(self) -> tuple[Tensor, Tensor] | None:
        """How far u may go: the range of the sensitive coordinate over the domain, and ``reach``."""
        reach = self.search.reach
        if self.margins is None:
            return None if reach is None else (torch.full_like(self.u, -reach), torch.full_like(self.u, reach))
        assert self.limits is not None
        plus, minus = self.moves.directions.clamp(min=0), self.moves.directions.clamp(max=0)
        down, up = self.margins
        low, high = self.path.zeros(self.u.shape[1]), self.path.zeros(self.u.shape[1])
        low.copy_(down @ plus + up @ minus)
        high.copy_(up @ plus + down @ minus)
        if self.limits.free is not None and self.limits.free_low is not None and self.limits.free_high is not None:
            z, freed = self.x @ self.limits.free, self.moves.freed
            low[:, :freed], high[:, :freed] = self.limits.free_low - z, self.limits.free_high - z
            low.clamp_(max=0), high.clamp_(min=0)  # a row outside the domain may stay where it is
        return (low, high) if reach is None else (low.clamp_min(-reach), high.clamp_max(reach))

    def _clamp_u(self, u: Tensor) -> None:
        if self.u_limits is not None:
            torch.maximum(u, self.u_limits[0], out=u)
            torch.minimum(u, self.u_limits[1], out=u)

    def _free_part(self, u: Tensor) -> Tensor:
        """As much of the move u, direction by direction, as stays inside the box without any correction."""
        assert self.margins is not None
        freed, directions = self.moves.freed, self.moves.directions[:, self.moves.freed :]
        cut_off = self._into_box(self.moves.held(u), torch.zeros_like(self.margins[0]))
        rows = cut_off.any(dim=1).nonzero()[:, 0]  # all others stay inside as they are
        if len(rows) == 0:
            return u
        down, up = (side.T[:, rows] for side in self.margins)  # (d, rows)
        kept = u.T[freed:, rows]
        for move, direction in zip(kept, directions.T):
            columns = direction.nonzero()[:, 0]
            along = direction[columns, None]
            one, other = down[columns] / along, up[columns] / along
            least, most = torch.minimum(one, other).amax(0), torch.maximum(one, other).amin(0)
            move.clamp_(least.clamp_(max=0), most.clamp_(min=0))
            down.index_add_(0, columns, along * move, alpha=-1)
            up.index_add_(0, columns, along * move, alpha=-1)
        free = u.clone()
        free[rows, freed:] = kept.T
        return free


def _squared(v: Tensor, out: Tensor) -> Tensor:
    """|v|^2 of each row, (n,); ``out`` is written over."""
    return torch.mul(v, v, out=out).sum(1)
