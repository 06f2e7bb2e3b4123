"""How steep a network is over the whole of Dom, and what follows for r_lam of everybody.

The slope of f on the way from x to x' stays within an interval [g_low, g_high], column by column, worked out backwards
through the layers from which of the units are on, off, or either, anywhere in Dom. So with d_X = rho^2

    |f(x') - f(x)| <= jump + steep * rho,

``jump`` for the moves that cost nothing, over their whole range, ``steep`` for the others. It is crude where a network
has many layers, and needs no large matrix to be positive definite: where few units can be both on and off it is tight.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from evenhand.bounds.activations import slopes
from evenhand.bounds.crown import entering
from evenhand.bounds.layers import Layer
from evenhand.bounds.problem import Problem

SAFE = 1 + 1e-9  # for what rounding may have taken away


@dataclass(frozen=True)
class Steepness:
    jump: float
    steep: float
    ceiling: float  # |f(x) - f(x')|^2 over Dom, at most
    reach: float  # sqrt(d_X) over Dom, at most

    def largest(self, lam: float) -> float:
        """r_lam(x) <= this for every x in Dom: the largest min(ceiling, (jump + steep rho)^2) - lam rho^2."""
        most = self.ceiling**0.5
        if self.jump >= most:
            return self.ceiling
        until = min(self.reach, (most - self.jump) / self.steep if self.steep > 0 else self.reach)
        over = lam - self.steep**2
        rho = min(until, self.steep * self.jump / over) if over > 0 else until
        return min(self.ceiling, SAFE * ((self.jump + self.steep * rho) ** 2 - lam * rho**2))

    def best_lam(self, eps: float) -> float:
        """Where lam * eps + largest(lam) is smallest, as far as (jump + steep rho)^2 decides; a little more where that
        is the end of what is infinite."""
        return self.steep**2 * SAFE + (self.steep * self.jump / eps**0.5 if eps > 0 else 0.0)


@torch.no_grad()
def steepness(problem: Problem, ceiling: float) -> Steepness:
    """Of a ``problem`` without pinned columns (see ``unpinned``)."""
    low, high = slopes_over_dom(problem)
    middle, half = (low + high) / 2, (high - low) / 2
    along = (middle @ problem.basis).abs() + half @ problem.basis.abs()  # (K, k)
    jump = (along * (problem.zeta_high - problem.zeta_low)).sum(1).norm()
    paid, length = problem.seen
    across = ((middle @ paid).abs() + half @ paid.abs()) * length
    return Steepness(SAFE * float(jump), SAFE * float(across.norm()), ceiling, problem.reach)


def slopes_over_dom(problem: Problem) -> tuple[Tensor, Tensor]:
    """Between which two numbers the slope of each output along each column stays: two (K, d)."""
    centre = ((problem.box.low + problem.box.high) / 2)[None]
    everywhere = torch.full((1,), 1e9, dtype=torch.float64)
    bounds = entering(problem, centre, problem.grid(1, [1] * problem.k), everywhere)
    low = high = problem.layers[-1].weight
    for layer, (least, most) in zip(reversed(problem.layers[:-1]), reversed(bounds[:-1]), strict=True):
        low, high = _times(low, high, *_of_units(layer, least[0], most[0]))
        middle, half = (low + high) / 2 @ layer.weight, (high - low) / 2 @ layer.weight.abs()
        low, high = middle - half, middle + half
    return low, high


def _of_units(layer: Layer, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    """Slopes of the units of a layer whose inputs stay between two numbers: (H,) each."""
    known = slopes(layer.after)
    return ((least > 0).to(least), (most >= 0).to(least)) if known is None else known


def _times(low: Tensor, high: Tensor, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    """The product of two intervals."""
    ends = torch.stack([low * least, low * most, high * least, high * most])
    return ends.amin(0), ends.amax(0)
