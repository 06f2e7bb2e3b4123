"""What may be said of held-out people: looked at a part at a time, added up, and put into a ``Certificate``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.audit import check_inside
from evenhand.bounds.bound import Bound, Bracket, Priced
from evenhand.bounds.crown import output_range
from evenhand.bounds.problem import Problem
from evenhand.bounds.readout import Readout
from evenhand.bounds.trees import TreeBound
from evenhand.certify.certificate import Certificate
from evenhand.certify.closer import Uppers, draw_together
from evenhand.dual.confidence import UpperBound
from evenhand.dual.moves import choose_move
from evenhand.dual.pool import Pool
from evenhand.dual.running import BlockMeans, StreamedPool
from evenhand.fair_metrics.metric import FairMetric, free_share
from evenhand.headline import STRANGERS_PART, Headline
from evenhand.judged import Judged
from evenhand.output_distances import described
from evenhand.search.geometry import Geometry
from evenhand.search.thorough import Attack, candidates
from evenhand.search.within import Similar, within

ANOTHER_LAM = 0.05  # a lam at which what was found is lower by this share is worth another pass
LOOSE = 1.5  # times what was found: some bounds are loose then
STEP_UP, MOST_STEPS, FURTHER = 1.2, 20, 1.1
AGAIN = 1  # times everybody: who is looked at again at larger lam, which takes long for large networks
FEW_LOSE = 0.1  # of lam*eps: bounds nearer than this to what was found gain nothing
ROUNDING = 1e-12  # of an output: what the order of its sums may change
MOVES_FROM = 128  # tuning people on whom the move of the lower bound is chosen
Progress = bool | Callable[[str], None]


class Prepared(NamedTuple):
    """A model with everything that is fixed before held-out people are looked at."""

    judged: Judged
    problem: Geometry
    readout: Readout
    attack: Attack
    bound: Bound
    x_tune: Tensor
    lams: list[float]


class Statement:
    """Held-out people, and what may be said of them."""

    def __init__(
        self,
        prepared: Prepared,
        eps: float,
        interval: UpperBound,
        threshold: float | None,
        per_person: bool,
        progress: Progress,
    ) -> None:
        self.prepared, self.eps, self.interval, self.progress = prepared, eps, interval, progress
        judged, _, _, attack, bound, tuning, lams = prepared
        with torch.no_grad():
            h = attack.outputs(tuning)
        at, decides = judged.threshold(h.shape[1], threshold), judged.decides(tuning, h, threshold)
        self.headline = Headline(described(attack.output_distance), h, at, decides)
        self.rounding = rounding_of(attack, tuning)
        say(progress, f"the bound is tuned: lam = {bound.lam:.4g}, range {bound.largest:.4g}")
        self.move = choose_move(*_tuning_moves(attack, tuning[:MOVES_FROM], eps, lams), eps)
        self.per_person = per_person
        self.pool = Pool() if per_person else StreamedPool(lams[-1], 0.0)
        self.cap_lam, self.cap = bound.confident if isinstance(bound, Priced) else (bound.lam, bound.largest)
        self.above, self.capped, self.moved_y, self.moved_x = (BlockMeans() for _ in range(4))
        self.each_low: list[NDArray[np.float64]] = []
        self.each_high: list[NDArray[np.float64]] = []
        self.seen: list[Tensor] = []
        self.rbar: list[Tensor] = []

    @property
    def n(self) -> int:
        return self.pool.n

    def add(self, rows: Tensor) -> None:
        """Look at some people: search, bound, and add up."""
        _, problem, read, attack, bound, _, lams = self.prepared
        eps, lam = self.eps, bound.lam
        check_inside(problem.box, rows)
        points, d_y, d_x = searched(attack, rows, eps, lams)
        found = _upper(bound, problem, rows, points)
        similar, d_y, d_x = with_witness(attack, rows, points, d_y, d_x, found, eps)
        rbar = found.upper.numpy()
        low, high = similar.d_y.max(1).values.numpy(), read.up_each(lam * eps + rbar)
        check_order(0.0, 0.0, low, high, self.rounding)
        low = np.minimum(low, high)
        self.headline.add_bounded(rows, similar.h, *bound.score_range(rows, eps))
        self.above.add(rbar)
        self.capped.add(np.minimum(rbar, self.cap))
        self.pool.add(d_y, d_x)
        for means, values in zip((self.moved_y, self.moved_x), self.move(d_y, d_x)):
            means.add(values)
        if self.per_person:
            self.each_low.append(low)
            self.each_high.append(high)
            self.seen.append(rows)
            self.rbar.append(found.upper)
        say(self.progress, f"{self.n:,} individuals, R_high = {read.up(lam * eps + self.above.mean):.4g}")

    def upper(self, alpha: float) -> float:
        """R(h) is at most this, but for a chance of alpha."""
        bound = self.prepared.bound
        mean = self.interval(self.capped.values, self.cap, alpha)
        return self.prepared.readout.up(min(self.cap_lam * self.eps + mean, bound.everywhere))

    def lower(self, alpha: float) -> float:
        """R(h) is at least this, but for a chance of alpha."""
        found = self.move.lower(self.moved_y.values, self.moved_x.values, self.eps, alpha, self.interval)
        return min(found, self.upper(alpha))

    def bracket(self) -> tuple[float, float]:
        """R(h) of the people themselves, from both sides."""
        (_, _, read, attack, bound, _, lams), eps = self.prepared, self.eps
        low = self.pool.minimise(eps).value
        high = read.up(min(bound.lam * eps + self.above.mean, bound.everywhere))
        check_order(low, high, rounding=self.rounding)
        if isinstance(self.pool, Pool) and isinstance(bound, Priced) and read.g is None:  # squares are what d_Y is
            uppers = Uppers(bound.lam, torch.cat(self.rbar))
            with contextlib.suppress(KeyboardInterrupt):
                if isinstance(bound, TreeBound) and bound.exact and eps > 0:  # its x' are the worst, or nearly
                    x, told = torch.cat(self.seen), partial(say, self.progress)
                    draw_together(bound, attack, x, uppers, self.pool, eps, told)
                high = min(high, read.up(self._at_another_lam(bound, self.pool, lams[-1])))
            low, high = self.pool.minimise(eps).value, min(high, read.up(uppers.least(eps)))
            check_order(low, high, rounding=self.rounding)
        return min(low, high), high

    def _at_another_lam(self, bound: Priced, pool: Pool, tuned: float) -> float:
        """lam*eps + mean bound at another lam, which suits these people better than the tuning people's. It is about
        the sample: no confidence may rest on it."""
        x, rbar, eps = torch.cat(self.seen), torch.cat(self.rbar), self.eps

        def found(lam: float) -> float:
            return lam * eps + float(pool.gains(lam).mean())

        def bounds_at(lam: float, who: Tensor) -> Tensor:
            return bound.at(lam).upper(x[who], torch.from_numpy(pool.gains(lam))[who]).upper

        best = bound.lam * eps + float(rbar.mean())
        if best <= LOOSE * found(bound.lam):  # as far above the minimiser of what was found as for tuning people
            lam = pool.minimise(eps).lam * max(1.0, bound.lam / tuned)
            if eps > 0 and 0 < lam < np.inf and found(bound.lam) > (1 + ANOTHER_LAM) * found(lam):
                say(self.progress, f"once more at lam = {lam:.4g}, which suits these people; Ctrl-C leaves it out")
                best = min(best, lam * eps + float(bounds_at(lam, torch.ones(len(x), dtype=torch.bool)).mean()))
            return best
        again = 0
        for step in range(1, MOST_STEPS):  # the bounds of a few are loose, and nobody's rises with lam
            lam = bound.lam * STEP_UP**step
            who = rbar > torch.from_numpy(pool.gains(lam)) + FEW_LOSE * lam * eps
            if lam * eps >= best or not bool(who.any()):
                break
            again += int(who.sum())
            if again > AGAIN * len(x):
                break
            say(self.progress, f"{int(who.sum())} individuals once more at lam = {lam:.4g}; Ctrl-C leaves it out")
            rbar[who] = torch.minimum(rbar[who], bounds_at(lam, who))
            value = lam * eps + float(rbar.mean())
            best = min(best, value)
            if value > FURTHER * best:
                break
        return best

    def certificate(
        self,
        confidence: float,
        back: NDArray[np.intp],
        places: NDArray[np.intp] | None,
        fair_metric: FairMetric | None,
    ) -> Certificate:
        """back: from the order in which people were added to their own; places: which rows they were, as added."""
        judged, problem, read, _, bound, tuning, _ = self.prepared
        headline, interval, eps = self.headline, self.interval, self.eps
        r_low, r_high = self.bracket()
        each = (1 - confidence) / 2  # two sides, at once
        for_r = (1 - STRANGERS_PART) * each
        ceiling = output_range(problem) if isinstance(problem, Problem) else np.inf
        widest = read.up(min(bound.largest + bound.lam * most_d_x(problem), ceiling))  # d_Y <= r_lam + lam * d_X
        mean_d_x = headline.strangers.mean_d_x(problem.d_x) if headline.strangers.known else 0.0
        low_of, high_of = (np.concatenate([*values, np.zeros(0)]) for values in (self.each_low, self.each_high))
        back = back if self.per_person else np.zeros(0, dtype=np.intp)
        return Certificate(
            r_low=r_low,
            r_high=r_high,
            lower=self.lower(each),
            upper=self.upper(each),
            relative=headline.relative(r_low, r_high, self.lower(for_r), self.upper(for_r), each, interval, widest),
            decisions=headline.decisions(each, each),
            percentile=headline.percentile(each, each, interval),
            strangers=headline.strangers.mean() if headline.strangers.known else float("nan"),
            yardstick=eps / mean_d_x if mean_d_x > 0 else float("nan"),
            free_share=free_share(judged.metric(fair_metric), tuning),
            lam=bound.lam,
            r_lam_max=bound.largest,
            delta_everywhere=read.up(bound.everywhere),
            eps=eps,
            n=self.n,
            confidence=confidence,
            distance=read.name,
            each_low=low_of[back],
            each_high=high_of[back],
            rows=places[back] if self.per_person and places is not None else np.zeros(0, dtype=np.intp),
            tuning_rows=len(tuning),
        )


Searched = tuple[Tensor, NDArray[np.float64], NDArray[np.float64]]  # points (n, m, d), their d_Y and d_X (n, m)


def searched(attack: Attack, x: Tensor, eps: float, lams: list[float]) -> Searched:
    """All that a search finds for each person."""
    parts = []
    for rows in torch.split(x, 512):
        points = candidates(attack, rows, eps, lams)
        parts.append((points, *attack.distances(rows, points)))
    points, d_y, d_x = (torch.cat(each) for each in zip(*parts, strict=True))
    return points, d_y.numpy(), d_x.numpy()


def with_witness(
    attack: Attack, x: Tensor, points: Tensor, d_y: NDArray[Any], d_x: NDArray[Any], found: Bracket, eps: float
) -> tuple[Similar, NDArray[np.float64], NDArray[np.float64]]:
    """Who is within eps, and d_Y and d_X of all candidates (n, m), the branch and bound's own among them."""
    more = found.witness[:, None]
    more_y, more_x = attack.distances(x, more)
    all_y, all_x = (torch.cat([torch.from_numpy(a), b], 1) for a, b in ((d_y, more_y), (d_x, more_x)))
    similar = within(attack, x, torch.cat([points, more], 1), eps)
    return similar, *similar.joined(all_y, all_x)


def pool_distances(
    attack: Attack, x: Tensor, eps: float, lams: list[float], found: Bracket
) -> tuple[Similar, NDArray[np.float64], NDArray[np.float64]]:
    return with_witness(attack, x, *searched(attack, x, eps, lams), found, eps)


def _tuning_moves(
    attack: Attack, x: Tensor, eps: float, lams: list[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """d_Y and d_X of what is found for tuning people, those within eps among it."""
    points, d_y, d_x = searched(attack, x, eps, lams)
    return within(attack, x, points, eps).joined(torch.from_numpy(d_y), torch.from_numpy(d_x))


def _upper(bound: Bound, problem: Geometry, x: Tensor, points: Tensor) -> Bracket:
    """r_lam of each person from both sides; no work is spent on what a search has reached already."""
    if not (isinstance(bound, Priced) and isinstance(problem, Problem)):
        return bound.upper(x)
    return bound.upper(x, problem.gain(x[:, None], points, bound.lam).amax(1).clamp(min=0))


def most_d_x(problem: Geometry) -> float:
    """At least the largest d_X of two people in Dom."""
    span = problem.box.high - problem.box.low
    return float(torch.linalg.eigvalsh(problem.sigma)[-1].clamp(min=0) * span.square().sum())


def rounding_of(attack: Attack, x: Tensor) -> float:
    """The d_Y of outputs, those of x (n, d), and the same outputs but for rounding: all that lies below is 0."""
    h = attack.h(x)
    return float(attack.output_distance(h, h * (1 + ROUNDING)).max()) if len(h) else 0.0


def check_order(r_low: float, r_high: float, each_low: Any = 0.0, each_high: Any = 0.0, rounding: float = 0.0) -> None:
    slack = 1e-9 * max(abs(r_high), float(np.max(each_high, initial=0.0))) + rounding
    ordered = r_low <= r_high * (1 + 1e-7) + slack and bool(np.all(each_low <= each_high * (1 + 1e-7) + slack))
    if not ordered:  # a NaN is not ordered either
        raise RuntimeError(
            f"a lower bound ({r_low:.6g}) lies above an upper one ({r_high:.6g}): please report this model"
        )


def say(progress: Progress, text: str) -> None:
    if callable(progress):
        progress(text)
    elif progress:
        print(f"certify: {text}", file=sys.stderr)
