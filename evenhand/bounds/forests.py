"""Forests of classifiers: trees that vote, so that their sum is a probability and no logit; d_Y is the total variation.

Of two classes it is the larger of p' - p and p - p', of few classes the largest change of the votes for any set of
classes together, each a branch and bound of its own; of many, half the sum of the changes of each class.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.bounds.bound import Bracket
from evenhand.bounds.pace import Over, Pace
from evenhand.bounds.trees import TreeBound, people
from evenhand.domain import FreeBox
from evenhand.ensembles.trees import TreeEnsemble
from evenhand.ensembles.worst_case import Found, People, worst_case
from evenhand.search.geometry import Geometry

FAR = 1e9  # beyond the logarithm of any probability that is told apart from 0
FEW = 4  # classes, of which all sets are looked at
BOXES = 1000
GRID = (1e-6, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0)  # lam, over the budget
CLOSED = 1e-3  # a bracket of the total variation this narrow is not worth more work

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ForestBound:
    """A ``Bound`` of the total variation of the mean vote p (n, K). Scores are told in log-odds, as those of all models
    that only give probabilities are."""

    ensemble: TreeEnsemble
    people: People
    lam: float
    everywhere: float
    exact: bool  # Dom is the box that is searched; otherwise it lies inside, and what is found may not be in it
    boxes: int = BOXES
    largest: float = 1.0

    @property
    def confident(self) -> tuple[float, float]:
        return self.lam, self.largest

    def at(self, lam: float) -> ForestBound:
        return replace(self, lam=lam)

    def upper(self, x: Tensor, reached: Tensor | None = None) -> Bracket:
        return self._worst(x.numpy(), self.lam, np.inf)

    def near(self, x: Tensor, eps: float) -> Tensor:
        return self._worst(x.numpy(), 0.0, eps).upper

    def _worst(self, x: Array, lam: float, radius: float) -> Bracket:
        """sup of the total variation minus lam * d_X over d_X <= radius."""
        k, lower, witness = self.ensemble.outputs, np.zeros(len(x)), x.copy()
        if k > FEW:  # half the sum over the classes, each of which pays its part of the price
            upper = np.zeros(len(x))
            for c in range(k):
                up, down = (self._along(x, sign * np.eye(k)[c], 2 * lam / k, radius).upper for sign in (1.0, -1.0))
                upper += 0.5 * np.maximum(up, down)
        else:
            upper = np.zeros(len(x))
            for weights in _sets(k):
                found = self._along(x, weights, lam, radius)
                upper, better = np.maximum(upper, found.upper), (found.lower > lower) & self.exact
                lower, witness = np.where(better, found.lower, lower), np.where(better[:, None], found.witness, witness)
        upper = np.maximum(np.minimum(upper, self.largest), lower)
        return Bracket(torch.from_numpy(lower), torch.from_numpy(upper), torch.from_numpy(witness))

    def _along(self, x: Array, weights: Array, lam: float, radius: float) -> Found:
        return worst_case(
            self.ensemble, self.people, x, lam=lam, radius=radius, weights=weights, boxes=self.boxes, floor=CLOSED
        )

    def score_range(self, x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        votes = TreeBound(self.ensemble, self.people, self.lam, 1.0, 1.0, 1.0, exact=self.exact, boxes=self.boxes)
        low, high = (side.clamp(-1, 1) for side in votes.score_range(x, eps))  # by how much one vote is ahead
        if self.ensemble.outputs == 2:
            return _log_odds(low), _log_odds(high)
        # Of more classes, the two that are compared have at most all votes together: p / q >= (1 + p - q) / (1 - p + q)
        # where p is ahead; where it is not, nothing is known.
        far = torch.full_like(low, FAR)
        return torch.where(low > 0, _log_odds(low), -far), torch.where(high < 0, _log_odds(high), far)


def bound_forest(
    ensemble: TreeEnsemble, geometry: Geometry, x_tune: Tensor, eps: float, seconds: float | None = None
) -> ForestBound:
    """Chooses lam on tuning people: where lam * eps + their mean bound is smallest. seconds: as for ``bound_trees``."""
    arrays, k = people(geometry), ensemble.outputs
    each = 2 * k if k > FEW else len(_sets(k))
    pace = Pace.of(ensemble, arrays, x_tune.numpy(), BOXES, seconds, (len(GRID) + 3) * each, each + 2 * max(1, k - 1))
    x_tune = x_tune[: pace.rows]
    spread = float(geometry.d_x(x_tune - x_tune.roll(1, 0)).mean()) if len(x_tune) > 1 else 1.0
    budget = max(eps, 1e-6 * spread) or 1.0
    trial = ForestBound(
        ensemble, arrays, 1 / budget, 1.0, not isinstance(geometry.box, FreeBox), boxes=min(pace.tuning, 200)
    )

    def objective(lam: float) -> float:
        return lam * eps + float(trial.at(lam).upper(x_tune).upper.mean())

    best = _least(objective, [factor / budget for factor in GRID], pace.over)
    lam = _least(objective, [0.6 * best, best, 1.7 * best], pace.over)
    return replace(trial, lam=lam, boxes=pace.boxes)


def _least(objective: Callable[[float], float], lams: list[float], over: Over) -> float:
    """The lam that is best, of those that there is time for: the largest ones, which are soon done."""
    tried: dict[float, float] = {}
    for lam in reversed(lams):
        tried[lam] = objective(lam)
        if over():
            break
    return min((lam for lam in lams if lam in tried), key=tried.__getitem__)


def _sets(k: int) -> list[Array]:
    """Which classes' votes are counted together: the total variation is the largest change of any such count."""
    if k == 2:
        return [np.array([0.0, 1.0]), np.array([0.0, -1.0])]
    return [np.array(chosen, dtype=np.float64) for chosen in itertools.product((0.0, 1.0), repeat=k)][1:-1]


def _log_odds(ahead: Tensor) -> Tensor:
    """log p - log q of two votes that are all votes, from p - q; outwards where one of them is 0."""
    return torch.log(((1 + ahead) / 2).clamp(min=1e-300)) - torch.log(((1 - ahead) / 2).clamp(min=1e-300))
