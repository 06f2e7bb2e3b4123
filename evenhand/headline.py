"""The numbers that cannot be lowered by squeezing the scores: how similar people fare compared with strangers.

``relative`` is R(h) over the mean d_Y of two strangers; ``decisions`` the share of people whose decision somebody
similar (d_X <= eps) could change; ``percentile`` by how many percentiles of the score somebody similar can differ, on
average. A model whose outputs are multiplied by anything has the same three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.dual.confidence import (
    UpperBound,
    betting_upper,
    clopper_pearson_lower,
    clopper_pearson_upper,
    lower_bound,
)
from evenhand.dual.order import seed_of, shuffled
from evenhand.dual.running import BlockMeans
from evenhand.judged.decisions import scores
from evenhand.output_distances import Described

STRANGERS = 20_000  # people whose outputs are kept, a random sample of all
PLACED = 2_000  # of them also where they are, for the mean d_X
STRANGERS_PART = 0.5  # of an error budget for the strangers of ``relative``, the rest is for R(h)


@dataclass(frozen=True)
class Bracketed:
    """A number between ``low`` and ``high`` on the sample, between ``lower`` and ``upper`` in the population, each side
    with its part of the stated confidence. An audit says nothing from above: ``high`` and ``upper`` are then as large
    as the number can be."""

    low: float
    high: float
    lower: float
    upper: float


class Strangers:
    """d_Y of two independent people, from pairs of a random sample of those that come by, in whatever order they come.

    ``cap`` only cuts the values that enter a lower bound, which can only lower it; it is chosen on tuning people.
    """

    def __init__(self, distance: Described, tuning: Tensor) -> None:
        self.distance, self.n = distance, 0
        self._h: NDArray[np.float64] | None = None
        self._x: NDArray[np.float64] | None = None
        self._draws: np.random.Generator | None = None
        self._mixed: tuple[int, Tensor] | None = None
        first, second = _pairs(tuning)
        self.cap = _best_cap(distance(first, second).numpy())

    def add(self, h: Tensor, x: Tensor) -> None:
        """Outputs (n, K) and the people themselves (n, d); everybody is kept with the same probability."""
        if self._h is None or self._x is None:
            self._h, self._x = np.zeros((0, h.shape[1])), np.zeros((0, x.shape[1]))
        room = max(0, min(STRANGERS - len(self._h), len(h)))
        self._h = np.concatenate([self._h, h[:room].numpy()])
        self._x = np.concatenate([self._x, x[: min(room, max(0, PLACED - len(self._x)))].numpy()])
        late = np.arange(room, len(h))
        if len(late) and self._draws is None:
            self._draws = np.random.default_rng(seed_of(self._x))
        drawn = self._draws.random(len(late)) if self._draws is not None else np.zeros(0)
        slots = (drawn * (self.n + late + 1)).astype(np.intp)
        for i, slot in zip(late[slots < STRANGERS], slots[slots < STRANGERS]):  # a few: the reservoir of Vitter 1985
            self._h[slot] = h[i].numpy()
            if slot < PLACED:
                self._x[slot] = x[i].numpy()
        self.n += len(h)

    @property
    def known(self) -> bool:
        return self._h is not None and len(self._h) >= 2

    def mean(self, shifts: int = 64) -> float:
        """On the sample: everybody paired with several others."""
        h = self._shuffled()
        steps = range(1, min(shifts, len(h) - 1) + 1)
        return float(np.mean([self.distance(h, h.roll(step, 0)).mean().item() for step in steps]))

    def mean_d_x(self, d_x: Any) -> float:
        """The mean fair distance of two of them; d_x: (n, d) moves -> (n,)."""
        assert self._x is not None
        x = torch.from_numpy(self._x[shuffled(len(self._x), seed_of(self._x))])
        return float(np.mean([d_x(x - x.roll(step, 0)).mean().item() for step in range(1, min(16, len(x) - 1) + 1)]))

    def lower(self, alpha: float, interval: UpperBound) -> float:
        """The population's mean d_Y is at least this with probability 1 - alpha: disjoint pairs are independent."""
        if self.cap <= 0:
            return 0.0
        return lower_bound(interval, np.minimum(self._values(), self.cap), self.cap, alpha)

    def upper(self, alpha: float, interval: UpperBound, largest: float) -> float:
        """And at most this, if d_Y is never above ``largest``."""
        largest = min(largest, self.distance.largest)
        if not math.isfinite(largest) or largest <= 0:
            return math.inf if largest > 0 else 0.0
        return interval(np.minimum(self._values(), largest), largest, alpha)

    def _shuffled(self) -> Tensor:
        if self._mixed is None or self._mixed[0] != self.n:
            self._mixed = self.n, self._mix()
        return self._mixed[1]

    def _mix(self) -> Tensor:
        assert self._h is not None
        assert self._x is not None
        return torch.from_numpy(self._h[shuffled(len(self._h), seed_of(self._x))])  # the same for any scale of outputs

    def _values(self) -> NDArray[np.float64]:
        first, second = _pairs(self._shuffled())
        return np.asarray(self.distance(first, second).numpy())


class Headline:
    """Counts people for ``decisions``, ``percentile`` and ``relative``; the scores' distribution and the threshold are
    fixed on tuning people."""

    def __init__(self, distance: Described, tuning: Tensor, threshold: float | None, decides: bool = True) -> None:
        """tuning: outputs (n, K) of tuning people. threshold: of the score; None where nothing is decided. decides:
        False where decisions are made in a way that is not known."""
        self.strangers = Strangers(distance, tuning)
        self.threshold, self.decides = threshold, decides and (threshold is not None or tuning.shape[1] > 2)
        self._known = np.sort(scores(tuning).numpy())
        self._turned = self._undecided = self.n = 0
        self._moved, self._movable = BlockMeans(), BlockMeans()

    def add(self, x: Tensor, h: Tensor, allowed: Tensor | None = None, most: Tensor | None = None) -> None:
        """People x (n, d) with the outputs (n, m, K) of themselves and of somebody similar; version 0 is themselves.

        ``allowed`` marks those that are surely similar, ``most`` those that may be; without them all are.
        """
        self.strangers.add(h[:, 0], x)
        everybody = torch.ones(h.shape[:2], dtype=torch.bool)
        allowed = everybody if allowed is None else allowed
        most = allowed if most is None else most
        turned, moved = self._decisions(h), self._moves(h)
        self._count((turned & allowed).any(1).numpy(), (turned & most).any(1).numpy())
        self._moved.add(torch.where(allowed, moved, torch.zeros_like(moved)).amax(1).numpy())
        self._movable.add(torch.where(most, moved, torch.zeros_like(moved)).amax(1).numpy())

    def add_bounded(self, x: Tensor, h: Tensor, low: Tensor, high: Tensor) -> None:
        """The same with bounds from above: the score of everybody similar lies between low and high, (n,) each."""
        self.strangers.add(h[:, 0], x)
        turned, moved = self._decisions(h).any(1).numpy(), self._moves(h).amax(1).numpy()
        rank = self._rank(scores(h[:, 0]))
        reach = np.maximum(self._rank(high) - rank, rank - self._rank(low))
        self._count(turned, ~stands(h[:, 0], low, high, self.threshold).numpy() | turned)
        self._moved.add(moved)
        self._movable.add(np.maximum(reach, moved))

    def _count(self, turned: NDArray[np.bool_], undecided: NDArray[np.bool_]) -> None:
        self._turned, self._undecided = self._turned + int(turned.sum()), self._undecided + int(undecided.sum())
        self.n += len(turned)

    def _decisions(self, h: Tensor) -> Tensor:
        """Which of the outputs decide otherwise than the first: (n, m, K) -> (n, m)."""
        if h.shape[-1] > 2:
            decision = h.argmax(-1)
        elif self.threshold is None:
            return torch.zeros(h.shape[:2], dtype=torch.bool)
        else:
            decision = (scores(h) > self.threshold).long()
        return decision != decision[:, :1]

    def _moves(self, h: Tensor) -> Tensor:
        """By how much of the known distribution the score of each differs from the first: (n, m, K) -> (n, m)."""
        own = h[:, :1].argmax(-1).expand(h.shape[:2])
        rank = torch.from_numpy(self._rank(scores(h, own)))
        return (rank - rank[:, :1]).abs()

    def _rank(self, score: Tensor) -> NDArray[np.float64]:
        """The share of tuning people with no higher score."""
        return np.searchsorted(self._known, score.numpy(), side="right") / len(self._known)

    def decisions(self, alpha_low: float, alpha_high: float | None) -> Bracketed | None:
        """None where nothing is decided. alpha_high None: nothing is known from above."""
        if self.n == 0 or not self.decides:
            return None
        low, high = self._turned / self.n, self._undecided / self.n
        lower = clopper_pearson_lower(self._turned, self.n, alpha_low)
        if alpha_high is None:
            return Bracketed(low, 1.0, lower, 1.0)
        return Bracketed(low, high, lower, clopper_pearson_upper(self._undecided, self.n, alpha_high))

    def percentile(self, alpha_low: float, alpha_high: float | None, interval: UpperBound) -> Bracketed | None:
        if self.n == 0:
            return None
        low, high = 100 * self._moved.mean, 100 * self._movable.mean
        lower = 100 * lower_bound(interval, self._moved.values, 1.0, alpha_low)
        if alpha_high is None:
            return Bracketed(low, 100.0, lower, 100.0)
        return Bracketed(low, high, lower, 100 * interval(self._movable.values, 1.0, alpha_high))

    def relative(
        self,
        r_low: float,
        r_high: float,
        lower: float,
        upper: float,
        alpha: float,
        interval: UpperBound,
        largest: float = math.inf,
    ) -> Bracketed | None:
        """R(h) over the mean d_Y of two strangers; lower and upper at their part of the budget, alpha that of each
        side. None where strangers are treated alike, so that there is nothing to compare with."""
        if not self.strangers.known:
            return None
        mean = self.strangers.mean()
        if not mean > 0:
            return None
        least = min(self.strangers.lower(STRANGERS_PART * alpha, interval), mean)  # never at odds with the sample
        most = max(self.strangers.upper(STRANGERS_PART * alpha, interval, largest), mean)
        top = upper / least if least > 0 else math.inf
        return Bracketed(r_low / mean, r_high / mean, lower / most if most > 0 else 0.0, top)


def stands(h: Tensor, low: Tensor, high: Tensor, threshold: float | None) -> Tensor:
    """Whose decision stays the same wherever the score is between low and high: outputs (n, K) -> (n,) bool."""
    if h.shape[-1] > 2:
        return low > 0  # the score is how far the person's own class is ahead
    at = 0.0 if threshold is None else threshold
    return torch.where(scores(h) > at, low > at, high <= at)


def percent(share: float) -> str:
    """0.0034 -> 0.34%, to two digits."""
    return f"{100 * share:.2g}%" if abs(share) < 0.995 else f"{100 * share:.0f}%"


def statement_table(title: str, statement: str, rows: list[tuple[str, str]]) -> str:
    """A statement with its numbers, for notebooks."""
    cells = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<p><b>{escape(title)}.</b> {escape(statement)}</p><table>{cells}</table>"


def _pairs(h: Tensor) -> tuple[Tensor, Tensor]:
    half = len(h) // 2
    return h[:half], h[half : 2 * half]


def _best_cap(values: NDArray[np.float64]) -> float:
    """Where to cut on tuning pairs, so that the lower bound of more pairs of this kind is largest."""
    if len(values) == 0 or values.max() <= 0:
        return 0.0
    caps = [float(np.quantile(values, q)) for q in (0.8, 0.9, 0.97, 1.0)]
    caps = [cap for cap in caps if cap > 0]
    many = np.tile(values, max(1, 200 // len(values)))
    return max(caps, key=lambda cap: lower_bound(betting_upper, np.minimum(many, cap), cap, 0.01))
