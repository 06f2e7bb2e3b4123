"""Steps uphill: how a search moves along a slope. Each is made per call, so its state is reset for every batch."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor


class Ascent(Protocol):
    def __init__(self, point: Tensor, step: float) -> None: ...

    def climb(self, slope: Tensor) -> None:
        """Move the point, in place."""


class AdamAscent:
    """Adam, as in the paper.

    The mean of squares is kept times 0.999^-t, where it only grows: one pass over memory less, and the inverse of its
    root is cheaper than the root.
    """

    def __init__(self, point: Tensor, step: float) -> None:
        self.point, self.step, self.t = point, step, 0
        self.mean, self.inverse_root = torch.zeros_like(point), torch.empty_like(point)
        self.square = torch.full_like(point, 1e-19)  # not zero: stands for Adam's eps of 1e-8 beside the root

    def climb(self, slope: Tensor) -> None:
        self.t += 1
        kept = 0.999**self.t
        self.mean.lerp_(slope, 0.1)
        self.square.addcmul_(slope, slope, value=0.001 / kept)
        torch.rsqrt(self.square, out=self.inverse_root)
        length = self.step * math.sqrt((1 - kept) / kept) / (1 - 0.9**self.t)
        self.point.addcmul_(self.mean, self.inverse_root, value=length)


class SignAscent:
    """The sign of the slope: the first step of Adam, and cheaper."""

    def __init__(self, point: Tensor, step: float) -> None:
        self.point, self.step = point, step

    def climb(self, slope: Tensor) -> None:
        self.point.add_(slope.sign(), alpha=self.step)


class NormalisedAscent:
    """A step of fixed length along each row's slope."""

    def __init__(self, point: Tensor, step: float) -> None:
        self.point, self.step = point, step

    def climb(self, slope: Tensor) -> None:
        length = slope.norm(dim=1, keepdim=True).clamp_min(torch.finfo(slope.dtype).tiny)
        self.point.addcdiv_(slope, length, value=self.step)
