"""What a certificate needs to know of a model, whatever its kind: upper bounds fixed before anybody is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from evenhand.search.geometry import Geometry


@dataclass(frozen=True)
class Bracket:
    """lower <= r_lam(x) <= upper for each person, with the x' that reaches lower."""

    lower: Tensor  # (n,)
    upper: Tensor  # (n,)
    witness: Tensor  # (n, d)

    @staticmethod
    def join(parts: list[Bracket]) -> Bracket:
        return Bracket(
            torch.cat([p.lower for p in parts]),
            torch.cat([p.upper for p in parts]),
            torch.cat([p.witness for p in parts]),
        )


class Bound(Protocol):
    """Upper bounds of a model's worst cases over Dom, row by row.

    What is said of a row depends on that row and on what the bound was built from (the model and tuning people), never
    on the other rows: that is what the confidence statement rests on. d_Y here is |f(x) - f(x')|^2 for the outputs f
    that the bound was made for; ``Readout.up`` turns it into other output distances.
    """

    @property
    def lam(self) -> float: ...

    @property
    def largest(self) -> float:
        """r_lam(x) <= largest for every x in Dom."""

    @property
    def everywhere(self) -> float:
        """At least lam' * eps + sup over Dom of r_lam' for some lam', eps the one that the bound was made for. So R(h)
        is at most this whatever the population, and so is d_Y(x, x') for all x, x' in Dom with d_X(x, x') <= eps."""

    def upper(self, x: Tensor) -> Bracket:
        """r_lam(x) = sup over x' in Dom of d_Y - lam * d_X from both sides: (n, d) -> n rows."""

    def near(self, x: Tensor, eps: float) -> Tensor:
        """sup of d_Y over x' in Dom with d_X(x, x') <= eps, at most: (n, d) -> (n,)."""

    def score_range(self, x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        """Between which two numbers the score of every x' with d_X(x, x') <= eps lies: (n, d) -> (n,), (n,).

        The score is the logit (one output), the second logit minus the first (two), or the logit of the person's own
        class minus the largest other one (more). Whose decision is proved to stand follows from it.
        """


@runtime_checkable
class Priced(Bound, Protocol):
    """A ``Bound`` that can be taken at any lam."""

    @property
    def confident(self) -> tuple[float, float]:
        """(lam', b) with lam' >= lam and r_lam'(x) <= b for every x in Dom: at which lam a confidence bound, whose
        price is the range b, should be smallest. r_lam' <= r_lam, so that ``upper`` bounds both."""

    def at(self, lam: float) -> Priced:
        """The same at another lam."""

    def upper(self, x: Tensor, reached: Tensor | None = None) -> Bracket:
        """reached (n,): what r_lam is known to be at least, by a search that looks at one row at a time."""


class Bounding(Protocol):
    """A model that can bound itself: ``certify`` takes any model with this method, whatever it is made of."""

    def evenhand_bound(self, geometry: Geometry, x_tune: Tensor, eps: float, scale: float) -> Bound:
        """A bound of scale * |f(x) - f(x')|^2 for its outputs f, over geometry.box with the d_X of the geometry.

        x_tune: people (n, d) on whom whatever is free may be chosen; nobody else is known yet.
        """
