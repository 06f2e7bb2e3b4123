"""Linear functions above and below a network on parts of Dom, propagated backwards (CROWN, Zhang et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from evenhand.bounds.activations import Lines, lines
from evenhand.bounds.backward import above_and_below, mostly_on
from evenhand.bounds.layers import Layer
from evenhand.bounds.parts import Part

CHORDS = 8  # pieces into which the range of one output's change is cut


@dataclass(frozen=True)
class Linear:
    """below . delta + floor <= f(x + delta) <= above . delta + ceiling on each part."""

    above: Tensor  # (N, K, d)
    ceiling: Tensor  # (N, K)
    below: Tensor
    floor: Tensor


def linear_bounds(layers: list[Layer], part: Part, x: Tensor) -> Linear:
    """The bounds around each row of x (N, d), on the part of the same row."""
    start = x @ layers[0].weight.T + layers[0].bias
    shared = layers[0].weight[None]
    if len(layers) == 1:
        wide = shared.expand(len(x), -1, -1)
        return Linear(wide, start, wide, start)
    low = start - part.upper(-shared)
    high = start + part.upper(shared)
    units: list[Lines] = []
    for last in range(1, len(layers)):
        high = torch.maximum(low, high)  # of a part that holds nobody any will do
        units.append(lines(low, high, layers[last - 1].after, mostly_on(layers)))
        a, c = above_and_below(layers, last, units, start)
        width = layers[last].bias.shape[0]
        if last == len(layers) - 1:
            return Linear(a[:, :width], c[:, :width], -a[:, width:], -c[:, width:])
        top = c + part.upper(a)
        low, high = -top[:, width:], top[:, :width]
    raise AssertionError("a network ends in an affine layer")


def gain(part: Part, linear: Linear, f_x: Tensor, lam: float) -> Tensor:
    """An upper bound of |f(x + delta) - f(x)|^2 - lam * d_X(delta) on each part: (N,); f_x (N, K).

    A square is below the chord over any interval that holds its argument, so each output becomes a linear function,
    whose supremum less lam * d_X is known. One output is cut into pieces, which leaves next to nothing.
    """
    ceiling, floor = linear.ceiling - f_x, linear.floor - f_x
    at_least = lam * part.inner.square()
    if f_x.shape[1] > 1:
        high = ceiling + part.upper(linear.above)
        low = torch.minimum(floor - part.upper(-linear.below), high)
        slope = low + high
        a = torch.where((slope > 0)[..., None], linear.above, linear.below)
        c = torch.where(slope > 0, ceiling, floor)
        functional = (slope[..., None] * a).sum(1, keepdim=True)
        chord = part.upper(functional, lam)[:, 0] + (slope * c - low * high).sum(1)
        return torch.minimum(chord, torch.maximum(low.square(), high.square()).sum(1) - at_least)
    up = _one_side(part, linear.above, ceiling, lam)
    down = _one_side(part, -linear.below, -floor, lam)
    return torch.maximum(up, down)


def _one_side(part: Part, a: Tensor, c: Tensor, lam: float) -> Tensor:
    """sup of t^2 - lam d_X for t = a . delta + c >= 0."""
    top = (c + part.upper(a)).clamp(min=0)
    steps = torch.arange(CHORDS, dtype=torch.float64) / CHORDS
    low, high = top * steps, top * (steps + 1 / CHORDS)
    slope = low + high
    chord = part.upper(slope[..., None] * a, lam) + slope * c - low * high
    return torch.minimum(chord, high.square() - lam * part.inner.square()[:, None]).amax(1)
