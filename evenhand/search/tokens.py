"""The search of ``GradientSearch`` for sequences of tokens, of which each moves by itself: see ``per_token``.

x' = x + A u + v as everywhere, but with a u and a v for every token that the mask says is there, and directions A that
are those of one token: nothing of the size of a whole sequence's directions is ever made. The others stay what they
are, to the bit, so that it does not matter how far a batch was padded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from evenhand.fair_metrics.metric import FairMetric
from evenhand.fair_metrics.tokens import TokenMetric
from evenhand.ranks import largest_of_all, rand_rows
from evenhand.search.gradient import GradientSearch
from evenhand.search.mode import constant, gradients_allowed
from evenhand.search.model_view import ModelView
from evenhand.search.paths import PlainPath
from evenhand.search.worst_cases import Bounds, Gain, Model, Search, WorstCases, gain_at_x


@dataclass(frozen=True)
class TokenSearch:
    """``GradientSearch`` with a metric per token: its stages and steps, of which the lengths are for each token."""

    stages: GradientSearch

    def __call__(
        self,
        model: Model,
        gain: Gain,
        x: Tensor,
        fair_metric: Any,
        lam: Tensor | float,
        bounds: Bounds = None,
        generator: torch.Generator | None = None,
        rows: Tensor | None = None,
    ) -> WorstCases:
        view = model
        if not isinstance(view, ModelView) or view.tokens is None or not isinstance(fair_metric, TokenMetric):
            raise TypeError("sequences of tokens are searched by FairRegularizer, which knows where tokens are")
        with gradients_allowed(), torch.no_grad(), view.autocast.off():
            here = view.tokens.to(view.x.dtype)[:, :, None]
            x = constant(view.x)
            metric = fair_metric.matching(x.reshape(*view.tokens.shape, fair_metric.d))
            climb = _Climb(self.stages, view, gain, x, here, metric, float(lam))
            for _ in range(self.stages.starts):
                climb.run(generator)
            return climb.found()


def of_tokens(search: Search, fair_metric: Any, bounds: Bounds) -> Search:
    """The same search, for a metric per token."""
    if not isinstance(fair_metric, TokenMetric) or isinstance(search, TokenSearch):
        return search
    if not isinstance(search, GradientSearch):
        raise TypeError(f"with a metric per token the search is a GradientSearch, got {type(search).__name__}")
    if bounds is not None:
        raise ValueError(
            "fair_metric is one per token, of sequences (n, T, K): these have no bounds, leave them out and limit how "
            "far a token moves along each direction with GradientSearch(reach=...). Estimators cannot use it"
        )
    return TokenSearch(search)


def tokens_in(x: Any, view: ModelView, fair_metric: TokenMetric) -> Tensor:
    """Which tokens of what moves are there, (n, T), by the mask among the model's inputs."""
    fair_metric.check_width(view.given)
    shape, name = view.given.shape[:2], fair_metric.mask
    if name is None or isinstance(x, Tensor):
        return torch.ones(shape, dtype=torch.bool, device=view.x.device)
    given = dict(x) if isinstance(x, Mapping) else dict(enumerate(x))
    mask = given.get(name)
    if not isinstance(mask, Tensor):
        raise ValueError(
            f"which tokens are there? The model is called with {list(given)}, of which none is the mask {name!r}; name "
            "it with per_token(metric, mask=...), or None where every token is there"
        )
    if mask.shape != shape or not bool(((mask == 0) | (mask == 1)).all()):
        raise ValueError(
            f"the mask {name!r} must say by 1 and 0 which of the {shape[1]} tokens of each of {shape[0]} rows are "
            f"there; it is {mask.dtype} of shape {tuple(mask.shape)}"
        )
    return mask == 1


class _Climb:
    """One search of one batch. Points, moves and slopes are (n, T, .); ``here`` (n, T, 1) is 0 for what stays."""

    def __init__(
        self,
        stages: GradientSearch,
        view: ModelView,
        gain: Gain,
        x: Tensor,
        here: Tensor,
        metric: FairMetric,
        lam: float,
    ) -> None:
        self.stages, self.x, self.here, self.metric, self.lam = stages, x, here, metric, lam
        self.directions = metric.directions
        self.path = PlainPath(view, gain, x, self.directions)
        self.best = gain_at_x(gain, view.h_x).clone()  # gain - lam * d_X; x' = x costs nothing
        self.d_x = torch.zeros_like(self.best)
        self.move = x.new_zeros(*here.shape[:2], metric.d)

    def run(self, generator: torch.Generator | None) -> None:
        u = self._noise(self.directions.shape[1], generator) * self.stages.noise
        self._subspace_stage(u)
        if self.stages.full_steps > 0 and self.lam != float("inf"):
            self._full_stage(u, generator)

    def found(self) -> WorstCases:
        return WorstCases(self.x + self.move.flatten(1), self.d_x, self.best + self._paid(self.d_x))

    def _subspace_stage(self, u: Tensor) -> None:
        """Climb over u, in place, at no cost."""
        free, reach = torch.zeros_like(self.best), self.stages.reach
        climber = self.stages.ascent(u.flatten(1), self.stages.subspace_step) if u.numel() else None
        for step in range(self.stages.subspace_steps + 1 if climber is not None else 1):
            if step > 0 and climber is not None:
                climber.climb((self._slope() @ self.directions).flatten(1))
            if reach is not None:
                u.clamp_(-reach, reach)
            move = u @ self.directions.T
            self._keep(self._value(move), move, free)

    def _full_stage(self, u: Tensor, generator: torch.Generator | None) -> None:
        """Climb over v from where the subspace stage ended, now with the distance term."""
        base, sizes = u @ self.directions.T, (self.here.sum((1, 2)) * self.metric.d).clamp(min=1)  # numbers that move
        v, cost = torch.zeros_like(base), torch.zeros_like(self.best)
        if u.shape[2] == 0:  # there is no subspace to start from, and at x' = x the squared distance is flat
            v = self._noise(self.metric.d, generator) * (self.stages.noise / sizes.sqrt())[:, None, None]
            cost = self.metric.cost(v)
        objective = self._value(base + v) - self._paid(cost)
        climber = None if self.stages.line_search else self.stages.ascent(v.flatten(1), self.stages.full_step)
        for _ in range(self.stages.full_steps):
            pull = self.metric.cost_gradient(v)
            slope = self._slope() - self.lam * pull
            if climber is None:
                v, objective = self._along_line(base, v, slope, objective, cost, pull, sizes)
            else:
                climber.climb(slope.flatten(1))
                objective = self._value(base + v) - self._paid(self.metric.cost(v))
            cost = self.metric.cost(v)
            self._keep(objective, base + v, cost)

    def _along_line(
        self, base: Tensor, v: Tensor, slope: Tensor, start: Tensor, cost: Tensor, pull: Tensor, sizes: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Go uphill to the best of three points of the line, as ``GradientSearch`` does: its start, its end, and the
        top of the parabola through both."""
        length = slope.flatten(1).norm(dim=1).clamp_min(torch.finfo(slope.dtype).tiny)
        move = slope * (self.stages.full_step * sizes.sqrt() / length)[:, None, None]
        self.path.start_line()
        end = self._value(base + v + move) - self._paid(self.metric.cost(v + move))
        rise = (slope * move).sum((1, 2))
        bend = start + rise - end
        t = torch.where(bend > 0, rise / (2 * bend), 1.0).clamp(0.0, 1.0)
        more, much = (pull * move).sum((1, 2)), self.metric.cost(move)

        def objective(t: Tensor) -> Tensor:
            return self.path.value_on_line(t) - self._paid(cost + t * (more + t * much))

        top = objective(t)
        beyond = end > top
        if bool(beyond.any()):
            t = torch.where(beyond, 1.0, t)
            top = objective(t)
        return v + t[:, None, None] * move, top

    def _value(self, move: Tensor) -> Tensor:
        """The gain at x + move, (n,)."""
        return self.path.value(move.flatten(1))

    def _slope(self) -> Tensor:
        """Its gradient where it was asked for last, zero for what stays."""
        return self.path.slope_v().view_as(self.move) * self.here

    def _paid(self, d_x: Tensor) -> Tensor:
        return torch.zeros_like(d_x) if self.lam == float("inf") else self.lam * d_x

    def _keep(self, objective: Tensor, move: Tensor, d_x: Tensor) -> None:
        """Remember this point in the rows where it beats the best so far."""
        better = objective > self.best
        self.best, self.d_x = torch.where(better, objective, self.best), torch.where(better, d_x, self.d_x)
        self.move = torch.where(better[:, None, None], move, self.move)

    def _noise(self, width: int, generator: torch.Generator | None) -> Tensor:
        """Uniform within +-1, (n, T, width): the same for the tokens that are there, however many are not."""
        place = self.here[:, :, 0].cumsum(1).long()  # 1 for a row's first token
        most = largest_of_all(len(place), int(place.max()) if place.numel() else 0)
        drawn = rand_rows(len(place), most * width, generator, self.x).to(self.x.dtype).view(len(place), most, width)
        drawn = torch.cat([drawn.new_zeros(len(place), 1, width), drawn.mul_(2).sub_(1)], 1)
        return drawn.gather(1, place[:, :, None].expand(-1, -1, width)) * self.here
