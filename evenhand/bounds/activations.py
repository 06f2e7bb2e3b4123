"""What may follow an affine map, unit by unit, and the two lines between which it lies on an interval.

ReLU has lines of its own. Any other activation is known by how much it bends, |f''| <= bend, and by the straight lines
that it follows outside of [-core, core]; that is enough for sound lines on every interval.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

CELLS = 16  # into which an interval is cut to find how far an activation lies from a line
ROUNDING = 1e-14  # of the numbers that are added up


@dataclass(frozen=True)
class Kind:
    """An activation f with |f''| <= bend (f' may jump nowhere) and f' between the two ``slopes``.

    On each side beyond [-core, core] it is within ``error`` of a straight line.
    """

    name: str
    f: Callable[[Tensor], Tensor]
    bend: float
    core: float
    slopes: tuple[float, float] = (0.0, 1.0)
    error: float = 1e-15

    def lines(self, low: Tensor, high: Tensor) -> Lines:
        """The chord's slope, and how far the activation gets above and below it: at most what it is at the ends of
        small cells plus bend * width^2 / 8, which a function that bends so little cannot exceed between them."""
        middle, width = (low + high) / 2, high - low
        tangent = (self.f(middle + 1e-4) - self.f(middle - 1e-4)) / 2e-4
        slope = torch.where(width > 1e-3, (self.f(high) - self.f(low)) / width.clamp(min=1e-3), tangent)
        start, end = low.clamp(-self.core, self.core), high.clamp(-self.core, self.core)
        ends = torch.stack([self.f(low) - slope * low, self.f(high) - slope * high])  # what a straight tail reaches
        top, bottom = ends.amax(0), ends.amin(0)
        for k in range(CELLS + 1):
            z = start + (end - start) * (k / CELLS)
            off = self.f(z) - slope * z
            top, bottom = torch.maximum(top, off), torch.minimum(bottom, off)
        far = torch.maximum(low.abs(), high.abs())
        size = slope.abs() * far + self.f(low).abs() + self.f(high).abs()
        more = self.bend * ((end - start) / CELLS).square() / 8 + 2 * self.error + ROUNDING * (1 + size)
        return Lines(slope, top + more, slope, bottom - more)


@dataclass(frozen=True)
class Lines:
    """slope z + offset above and under z + floor below, for low <= z <= high."""

    slope: Tensor
    offset: Tensor
    under: Tensor
    floor: Tensor | None  # None: 0


RELU = Kind("ReLU", torch.relu, math.inf, 0.0)
IDENTITY = Kind("Identity", lambda z: z, 0.0, 0.0, (1.0, 1.0))
TANH = Kind("Tanh", torch.tanh, 0.77, 20.0)
SIGMOID = Kind("Sigmoid", torch.sigmoid, 0.0963, 40.0, (0.0, 0.25))
GELU = Kind("GELU", F.gelu, 0.798, 12.0, (-0.13, 1.13))
GELU_TANH = Kind("GELU", lambda z: F.gelu(z, approximate="tanh"), 0.8, 12.0, (-0.13, 1.13))
SILU = Kind("SiLU", F.silu, 0.5001, 45.0, (-0.1, 1.1))
MISH = Kind("Mish", F.mish, 0.65, 45.0, (-0.113, 1.089), 1e-8)
SOFTPLUS = Kind("Softplus", F.softplus, 0.2501, 20.0, error=3e-9)  # torch's is z beyond 20
ELU = Kind("ELU", F.elu, 1.0001, 40.0)
SOFTSIGN = Kind("Softsign", F.softsign, 2.0001, math.inf)

Units = tuple[tuple[Kind, int], ...]  # which activation follows, for so many units, one run after the other


def activate(z: Tensor, after: Units | None) -> Tensor:
    """(..., H) -> (..., H); None is ReLU throughout."""
    if after is None:
        return torch.relu(z)
    runs = _runs(z, after)
    return torch.cat([kind.f(part) for (kind, _), part in zip(after, runs, strict=True)], -1)


def _runs(z: Tensor, after: Units) -> list[Tensor]:
    ends = [0, *itertools.accumulate(count for _, count in after)]
    return [z[..., start:end] for start, end in itertools.pairwise(ends)]


def slopes(after: Units | None) -> tuple[Tensor, Tensor] | None:
    """Between which two slopes each unit stays, (H,) each; None for ReLUs, of which more is known."""
    if after is None:
        return None
    each = [torch.tensor([kind.slopes], dtype=torch.float64).expand(count, 2) for kind, count in after]
    found = torch.cat(each)
    return found[:, 0], found[:, 1]


def lines(low: Tensor, high: Tensor, after: Units | None, mostly_on: float = 1.0) -> Lines:
    """The lines of each unit whose input is between low and high: (..., H) each; mostly_on as in ``relaxation``."""
    if after is None:
        slope, offset, under = relaxation(low, high, mostly_on)
        return Lines(slope, offset, under, None)
    found = []
    for (kind, _), one, two in zip(after, _runs(low, after), _runs(high, after), strict=True):
        if kind is RELU:
            slope, offset, under = relaxation(one, two, mostly_on)
            found.append(Lines(slope, offset, under, torch.zeros_like(one)))
        elif kind is IDENTITY:
            same, none = torch.ones_like(one), torch.zeros_like(one)
            found.append(Lines(same, none, same, none))
        else:
            found.append(kind.lines(one, two))
    floors = [each.floor for each in found if each.floor is not None]
    return Lines(
        torch.cat([each.slope for each in found], -1),
        torch.cat([each.offset for each in found], -1),
        torch.cat([each.under for each in found], -1),
        torch.cat(floors, -1),
    )


def relaxation(low: Tensor, high: Tensor, mostly_on: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """relu(z) <= slope z + offset and relu(z) >= under z for low <= z <= high. The line below is z where
    high > mostly_on * -low, else 0; both are true, and 1 loses least between the lines of a single unit."""
    on, off = low >= 0, high <= 0
    chord = high / (high - low).clamp(min=1e-300)
    one, zero = torch.ones_like(low), torch.zeros_like(low)
    slope = torch.where(on, one, torch.where(off, zero, chord))
    offset = torch.where(on | off, zero, -chord * low)
    under = torch.where(on, one, torch.where(off, zero, (high > -mostly_on * low).to(low.dtype)))
    return slope, offset, under
