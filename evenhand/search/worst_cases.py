"""What a search is given and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from evenhand.domain import Box, FreeBox
from evenhand.fair_metrics.metric import FairMetric
from evenhand.output_distances import OutputDistance, mean_squared_logits

Model = Callable[[Tensor], Tensor]
Gain = Callable[[Tensor], Tensor]  # logits (n, K) -> (n,)
Bounds = Box | tuple[Any, Any] | None  # the set of possible people: a Box, or (low, high), each a scalar or (d,)


@dataclass(frozen=True)
class WorstCases:
    """The worst case of each row: x_worst = x + A u + v, its price and its gain."""

    x_worst: Tensor  # (n, d)
    d_x: Tensor  # (n,) fair distance, from the perturbation rather than from x_worst - x
    gain: Tensor  # (n,)
    u: Tensor | None = None  # (n, k) move inside the subspace
    v: Tensor | None = None  # (n, d) the rest; None when the whole move lies in the subspace
    z: Tensor | None = None  # (n, H) what ``Affine.walked`` gives at x_worst, for the training step
    free: Callable[[Tensor | None], WorstCases] | None = None  # those among moves that cost nothing, of some rows or of
    # all, where the search has met them on its way


class Search(Protocol):
    """``search(model, gain, x, fair_metric, lam)`` maximises gain(h(x')) - lam * d_X(x, x') over x', row by row.

    rows: (n,) which rows of the data x holds, for searches that know more about them; None means that x is the data.
    """

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
    ) -> WorstCases: ...


class DistanceGain:
    """The gain of SenSeI and of audits: d_Y(h(x), h(x')), the mean over tokens where a person has several outputs.

    tokens: (n, T) which of them are there, None for all. The outputs of the others, (n, T, K), do not count.
    """

    def __init__(
        self, h_x: Tensor, output_distance: OutputDistance = mean_squared_logits, tokens: Tensor | None = None
    ) -> None:
        self.h_x, self.output_distance, self.tokens = h_x, output_distance, tokens

    def __call__(self, h: Tensor) -> Tensor:
        if h.ndim == 2:
            return self._each(self.h_x, h)
        each = self._each(self.h_x.flatten(0, -2), h.flatten(0, -2))
        if self.tokens is None or self.tokens.shape != h.shape[:2]:
            return each.reshape(len(h), -1).mean(1)
        each = each.reshape(*h.shape[:2], -1).mean(2)
        return torch.where(self.tokens, each, 0.0).sum(1) / self.tokens.sum(1).clamp(min=1)

    def _each(self, h_x: Tensor, h: Tensor) -> Tensor:
        """(n, K), (n, K) -> (n,)."""
        value = self.output_distance(h_x, h)
        if value.shape != h.shape[:1]:
            raise ValueError(
                f"output_distance must give one number for each row, ({len(h)},), but gave {tuple(value.shape)}; leave "
                "the rows apart, for example lambda h, other: (h - other).square().mean(-1)"
            )
        return value

    def at_x(self) -> Tensor:
        """d_Y(h(x), h(x)) = 0, without asking the model."""
        return self.h_x.new_zeros(len(self.h_x))


def gain_at_x(gain: Gain, h_x: Callable[[], Tensor]) -> Tensor:
    """The gain of not moving, (n,)."""
    return gain.at_x() if isinstance(gain, DistanceGain) else gain(h_x()).detach()


def value_and_slope(gain: Gain, h: Tensor) -> tuple[Tensor, Tensor]:
    """Gain (n,) and its gradient with respect to the logits (n, K)."""
    with torch.enable_grad():
        h = h.detach().requires_grad_(True)
        value = gain(h)
        (slope,) = torch.autograd.grad(value.sum(), h)
    return value.detach(), slope


class Limits(NamedTuple):
    """A Box as a search on the device and in the dtype of x needs it: x' = M p + A z, low <= p <= high.

    Binary columns and blocks count by their hull here.
    """

    low: Tensor  # (d,)
    high: Tensor
    free: Tensor | None = None  # A, (d, k)
    free_low: Tensor | None = None  # (k,)
    free_high: Tensor | None = None


def pair(bounds: Any) -> tuple[Any, Any]:
    """Bounds as (low, high), or a word about what they are instead."""
    if isinstance(bounds, str) or not hasattr(bounds, "__iter__"):
        raise TypeError(f"bounds must be None, a Box or a pair (low, high); got {bounds!r}")
    sides = tuple(bounds)
    if len(sides) != 2 or any(side is None or isinstance(side, str) for side in sides):
        raise ValueError(f"bounds must be a pair (low, high), each a number or one value per column; got {bounds!r}")
    return sides


def box(bounds: Bounds, x: Tensor) -> Limits | None:
    """The bounds as tensors that fit x, or None."""
    if bounds is None:
        return None
    if isinstance(bounds, FreeBox):
        inner = box(bounds.box, x)
        assert inner is not None
        free = (t.to(x.dtype).to(x.device) for t in (bounds.free, bounds.free_low, bounds.free_high))
        return Limits(inner.low, inner.high, *free)
    low, high = (torch.as_tensor(side, dtype=x.dtype) for side in pair(bounds))  # in one step: float32 would round
    if low.device != high.device:
        low, high = low.cpu(), high.cpu()
    for name, side in (("low", low), ("high", high)):
        if side.ndim > 1 or (side.ndim == 1 and side.shape[0] != x.shape[1]):
            raise ValueError(
                f"bounds: {name} must be a number or hold {x.shape[1]} values; got shape {tuple(side.shape)}"
                + ("; those of images or sequences are given flat, as x_train.flatten(1).amin(0)" * (side.ndim > 1))
            )
    if not (low <= high).all():
        raise ValueError("bounds: low must not exceed high, and neither may be NaN")
    return Limits(low.to(x.device).expand(x.shape[1]), high.to(x.device).expand(x.shape[1]))
