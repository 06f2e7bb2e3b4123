"""The bound of a ReLU network: the smallest of the bounds that apply, behind one interface.

Three kinds: the quadratic dual, tuned for all people at once; the local bound, shells around each person and pieces of
Dom beyond them; the range of the outputs over Dom, which always exists. Which serve, and at which lam, is decided on
tuning people.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from evenhand.bounds.bound import Bracket
from evenhand.bounds.branch import bracket
from evenhand.bounds.crown import output_change
from evenhand.bounds.factors import LinAlgError, effective_size
from evenhand.bounds.fibre import fibre_of
from evenhand.bounds.layers import Layer, forward
from evenhand.bounds.local import FIRST_WORK, MOST_WORK, PEOPLE, Local, affordable, can_be_cut, cut, shells_lam
from evenhand.bounds.normal import Normal, normalised
from evenhand.bounds.pace import Over, never
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Multipliers, fits
from evenhand.bounds.ranges import DUAL_SIZE, Ranges, affordable_steps
from evenhand.bounds.shells import affordable_shells
from evenhand.bounds.solver import Solver
from evenhand.bounds.tuning import tune

WORTH = 0.99  # a bound is used when it lowers the mean on tuning people below this share of the others'
CLOSE = 1.05  # times what was reached from below: no other kind of bound is tried then
CLOSE_WIDE = 2.0  # times R(h) as it is seen from below: the same for a wide network, where the others take long
FAR = 1.5  # beyond so many times more tuning people are looked at
TRIED, TRIED_AGAIN = 32, 64  # tuning people on whom a lam is tried, and the chosen one once more; others are cut for
STEPS_UP = (1.0, 1.05, 1.12, 1.25, 1.4, 1.7, 2.2, 3.0, 4.5)  # times the lam at which R(h) has its minimum from below
HOPELESS, FEW = 4.0, 4  # times what was reached from below, on so many people: then much larger lam are tried first
MUCH_WORSE = 1.5  # times the least so far, which is convex in lam but for what the bound loses
STEP_DOWN = 1.2
MEAN_WORK = 0.4  # of the pieces that may be made for one person: so many on average
GIVEN_UP = 1.25  # times the least objective so far; a little more may be one person's, for whom the next cuts do
HOPED = 2.0  # times the same: where cutting for other people will not lead below this it ends
ON, MOST_STEPS = 1.4, 24  # and so on by this factor

Say = Callable[[str], None]


@dataclass(frozen=True)
class NetworkBound:
    """A ``Bound``: the network of ``normal`` for d_Y, its ``logits`` on the people of ``problem`` for decisions."""

    problem: Problem
    normal: Normal
    logits: list[Layer]
    lam: float
    largest: float
    everywhere: float
    ceiling: float  # of d_Y, so that it bounds r_lam at every lam
    confident: tuple[float, float]
    rounds: int
    eps: float
    dual: Solver | None
    local: Local | None
    most: int | None = None  # pieces that the local bound may make for a person, if fewer than usual

    def at(self, lam: float) -> NetworkBound:
        dual = self.dual
        if dual is not None:
            m = dual.m
            price = torch.tensor(lam / self.normal.scale**2, dtype=torch.float64)
            try:
                dual = Solver(dual.problem, Multipliers(price, m.eta, m.gam, m.th))
            except (ValueError, LinAlgError):
                dual = None
        largest = self.largest if lam >= self.lam else self.ceiling
        return replace(self, lam=lam, largest=largest, confident=(lam, largest), dual=dual)

    def upper(self, x: Tensor, reached: Tensor | None = None) -> Bracket:
        rows, square = x / self.normal.unit, self.normal.scale**2
        lower, witness = torch.zeros(len(x), dtype=torch.float64), x.clone()
        upper = torch.full((len(x),), self.largest, dtype=torch.float64)
        if self.dual is not None:
            found = bracket(self.dual, rows, rounds=self.rounds, paid=self.lam / square * self.eps)
            lower, witness = found.lower * square, self.problem.box.round(found.witness * self.normal.unit)
            upper = torch.minimum(upper, found.upper * square)
        if self.local is not None:
            known = lower if reached is None else torch.maximum(lower, reached)
            far, points, _ = self.local.upper(rows, self.lam / square, known / square, self.most)
            upper = torch.minimum(upper, far * square)
            points = self.problem.box.round(points * self.normal.unit)
            gain = self.problem.gain(x, points, self.lam)
            witness = torch.where((gain > lower)[:, None], points, witness)
            lower = torch.maximum(lower, gain)
        return Bracket(lower, torch.maximum(upper, lower), witness)

    def near(self, x: Tensor, eps: float) -> Tensor:
        low, high = _change_within(self.normal.problem, x / self.normal.unit, eps)
        return torch.maximum(low.square(), high.square()).sum(2).amax(1) * self.normal.scale**2

    def score_range(self, x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        if self.logits[-1].bias.shape[0] <= 2:
            return self._range(x, eps, None)
        own = forward(self.logits, x).argmax(1)
        low, high = torch.zeros(len(x), dtype=torch.float64), torch.zeros(len(x), dtype=torch.float64)
        for c in sorted(set(own.tolist())):
            rows = own == c
            low[rows], high[rows] = self._range(x[rows], eps, c)
        return low, high

    def _range(self, x: Tensor, eps: float, own: int | None) -> tuple[Tensor, Tensor]:
        problem = self.problem.with_layers(_margin_layers(self.logits, own))
        low, high = _change_within(problem, x, eps)
        score = problem.f(x)
        return (score + low.amin(1)).amin(1), (score + high.amax(1)).amin(1)


def bound_network(
    problem: Problem,
    logits: list[Layer],
    x_tune: Tensor,
    eps: float,
    *,
    n: int,
    alpha: float,
    tune_rows: int = 40,
    steps: int = 400,
    rounds: int = 6,
    start: Multipliers | None = None,
    lam_at_least: float | None = None,
    reached: Callable[[float], Tensor] | None = None,
    progress: Say | None = None,
    over: Over = never,
) -> NetworkBound:
    """The bound whose certificate for n people at error alpha should be smallest, chosen on the tuning people.

    lam_at_least: where R(h) seen from below has its lam, so that no smaller one needs to be tried; reached: lam ->
    what r_lam of each tuning person is known to be at least. Ctrl-C ends the choosing early, and so does ``over``,
    asked now and then; whatever there is by then is sound.
    """
    normal = normalised(problem)
    x, square = x_tune / normal.unit, normal.scale**2

    def known(lam: float) -> Tensor:
        return reached(lam * square) / square if reached is not None else torch.zeros(len(x), dtype=torch.float64)

    lowest = lam_at_least / square if lam_at_least else None
    chooser = _Chooser(normal, x, eps, lowest, known, progress, over)
    wide = fibre_of(normal.problem) is not None
    shells = wide or affordable_shells(normal.problem)
    local = chooser.try_local() if can_be_cut(normal.problem) else (chooser.try_shells() if shells else None)
    dual = None
    if local is None or not (over() or chooser.done(wide)):
        dual = _tuned_dual(normal, x[:tune_rows], eps, steps, start, progress)
        local = chooser.try_dual(dual, local)
    ranges = Ranges(normal.problem, eps, steps, over)
    chooser.look_again(local)
    chooser.try_nobody(ranges)
    chosen = min(chooser.trials, key=lambda trial: trial.objective)
    values = chosen.upper
    span = math.log(1 / alpha) + 0.5

    def stated(price: tuple[float, float]) -> float:
        """About what the confidence bound will be."""
        lam, b = price
        return lam * eps + float(values.clamp(max=b).mean()) + span * b / n

    prices = ranges.prices(chosen.lam, stated)
    confident, largest = min(prices, key=stated), ranges.largest(chosen.lam)
    everywhere = min(ranges.joint, *(lam * eps + b for lam, b in prices), ranges.ceiling)
    return NetworkBound(
        problem,
        normal,
        logits,
        chosen.lam * square,
        largest * square,
        everywhere * square,
        ranges.ceiling * square,
        (confident[0] * square, confident[1] * square),
        rounds,
        eps,
        chosen.dual,
        local if chosen.local else None,
        chooser.most,
    )


def _tuned_dual(
    normal: Normal, x: Tensor, eps: float, steps: int, start: Multipliers | None, progress: Say | None
) -> Solver | None:
    """The quadratic dual, or None where it is too large or S > 0 cannot be had."""
    problem = normal.problem
    size = len(problem.free) + sum(problem.widths)
    if size > DUAL_SIZE:
        return None
    steps = affordable_steps(steps, effective_size(problem))
    try:
        tuned = tune(problem, x, max(eps, 1e-9), steps=steps, progress=progress)
        if start is not None and bool((normal.unit == 1).all()) and len(start.eta) == len(normal.neurons):
            shapes = [len(e) for e in start.eta] == problem.widths
            first = normal.multipliers(start) if shapes else None
            if first is not None and fits(problem, first):
                again = tune(problem, x, max(eps, 1e-9), steps=steps, start=first, progress=progress)
                tuned = again if again.value < tuned.value else tuned
        return Solver(problem, tuned.multipliers)
    except (ValueError, LinAlgError, KeyboardInterrupt):
        return None  # other bounds exist


@dataclass(frozen=True)
class _Trial:
    lam: float
    objective: float  # lam*eps + mean bound on tuning people
    upper: Tensor  # of those it was tried on
    dual: Solver | None
    local: bool


class _Chooser:
    """What each kind of bound, and both together, give on tuning people at several lam.

    The mean over all of them is what was reached from below plus what the bound lies above that on a few.
    """

    def __init__(
        self,
        normal: Normal,
        x: Tensor,
        eps: float,
        lowest: float | None,
        reached: Callable[[float], Tensor],
        progress: Say | None,
        over: Over = never,
    ) -> None:
        self.over = over
        self.problem, self.x, self.eps, self.lowest = normal.problem, x, eps, lowest
        self.reached, self.progress = reached, progress
        self.trials: list[_Trial] = []
        self.most: int | None = None  # pieces for a person

    @property
    def least(self) -> float:
        return min((trial.objective for trial in self.trials), default=math.inf)

    def close(self, factor: float = CLOSE) -> bool:
        """Whether what was tried leaves little to gain."""
        best = min(self.trials, key=lambda trial: trial.objective)
        return best.objective <= factor * (best.lam * self.eps + float(self.reached(best.lam).mean()))

    def tight(self, factor: float) -> bool:
        """Whether what was tried is near R(h) as it is seen from below, at the lam that is best for that."""
        below = math.inf if self.lowest is None else self.lowest * self.eps + float(self.reached(self.lowest).mean())
        return self.lowest is not None and self.least <= factor * below

    def done(self, wide: bool) -> bool:
        """Whether no other kind of bound need be tried. Near what was reached at its own lam may be far from R(h), when
        only a large lam would do; what then helps is another kind of bound, which takes long for wide networks."""
        if wide:
            return self.tight(CLOSE_WIDE)
        return self.close() and (self.lowest is None or self.tight(FAR if can_be_cut(self.problem) else CLOSE))

    def try_local(self) -> Local:
        lowest = self.lowest or (shells_lam(self.problem, self.x, self.eps, 1e-3, self.over) if self.eps > 0 else 1e6)
        local = self._cut(STEPS_UP[1] * lowest, FIRST_WORK)
        few, reached = self.x[:FEW], self.reached(lowest)
        at_lowest = self._objective(lowest, local.upper(few, lowest, reached[:FEW], FIRST_WORK)[0])
        if at_lowest <= HOPELESS * (lowest * self.eps + float(reached.mean())):
            local = self._cut(STEPS_UP[1] * lowest, MOST_WORK, local)
            if not self._upwards(local, lowest, STEPS_UP[1:], 1.0):
                self._try(local, lowest)  # the bound is tightest where it was cut for, so this seldom pays
            return local
        return self._downwards(local, self._best_as_it_is(local, lowest), lowest)

    def try_shells(self) -> Local:
        local, lowest = Local(self.problem, None), self.lowest or 1e-3
        lam = shells_lam(self.problem, self.x, self.eps, lowest, self.over)
        self._upwards(local, max(lam / STEPS_UP[3], lowest))
        return local

    def _cut(self, lam: float, work: int, start: Local | None = None) -> Local:
        pieces = None if start is None else start.pieces
        others = slice(TRIED_AGAIN, TRIED_AGAIN + PEOPLE) if len(self.x) >= TRIED_AGAIN + FEW else slice(PEOPLE)
        known, hoped = self.reached(lam)[others], HOPED * self.least
        return cut(self.problem, self.x[others], self.eps, lam, known, work, pieces, self.progress, hoped)

    def _best_as_it_is(self, local: Local, lowest: float) -> float:
        """The lam that is best without further cuts; larger ones are tried until they are much worse."""
        best, least = lowest, math.inf
        for lam in (lowest * ON**i for i in range(MOST_STEPS)):
            value = self._objective(lam, local.quick(self.x[:TRIED], lam))
            if value > MUCH_WORSE * least:
                break
            best, least = (lam, value) if value < least else (best, least)
        return best

    def try_dual(self, dual: Solver | None, local: Local | None) -> Local:
        """The dual alone and with the local bound; where neither is to be had, shells alone."""
        pieces = local
        if local is None:
            local = Local(self.problem, None) if dual is not None else self.try_shells()
        for factor in (1.0, 1.1, 1.4) if dual is not None else ():
            assert dual is not None
            if self.trials and self.over():
                break
            solver = Solver(self.problem, Multipliers(dual.m.lam * factor, dual.m.eta, dual.m.gam, dual.m.th))
            lam, few = float(solver.m.lam), self.x[:TRIED]
            if lam * self.eps > self.least:
                break
            by_dual = bracket(solver, few, rounds=3, paid=lam * self.eps).upper
            alone = self._add(lam, by_dual, solver, False)
            if pieces is not None and alone < 2 * self.least:
                both = torch.minimum(by_dual, pieces.upper(few, lam, self.reached(lam)[:TRIED], self.most)[0])
                if self._objective(lam, both) < WORTH * alone:
                    self._add(lam, both, solver, True)
        return local

    def try_nobody(self, ranges: Ranges) -> None:
        """The bound that looks at nobody."""
        if ranges.for_all is not None:
            lam, most = ranges.for_all
            everybody = torch.tensor([most], dtype=torch.float64)
            self.trials.append(_Trial(lam, lam * self.eps + most, everybody, None, False))

    def look_again(self, local: Local | None) -> None:
        """A few people may decide on the mean who were not among those tried: more of them, and larger lam if the
        bound of some is far above the others'."""
        best = min(self.trials, key=lambda trial: trial.objective, default=None)
        more = self.x[:TRIED_AGAIN]
        if (
            best is None
            or not best.local
            or local is None
            or len(more) <= len(best.upper)
            or self.over()
            or self.close(FAR)
        ):
            return
        rest, reached = more[len(best.upper) :], self.reached(best.lam)[len(best.upper) : len(more)]
        upper = torch.cat([best.upper, local.upper(rest, best.lam, reached, self.most)[0]])
        if best.dual is not None:
            upper[len(best.upper) :].clamp_(max=bracket(best.dual, rest, rounds=3, paid=best.lam * self.eps).upper)
        others = [trial for trial in self.trials if not trial.local]
        self.trials = [replace(best, objective=self._objective(best.lam, upper), upper=upper), *others]
        for i in range(1, MOST_STEPS):
            lam = best.lam * STEP_DOWN**i
            if lam * self.eps > self.least or self.over():
                break
            reached = self.reached(lam)[: len(more)]
            far = upper > reached + lam * self.eps  # nobody's bound rises with lam
            if not bool(far.any()):
                break
            upper[far] = torch.minimum(upper[far], local.upper(more[far], lam, reached[far], self.most)[0])
            if self._add(lam, upper.clone(), None, True) > 1.1 * self.least:
                break

    def _downwards(self, local: Local, lam: float, lowest: float) -> Local:
        """Smaller and smaller lam, with pieces cut further for each, as long as that is worth it."""
        while lam >= lowest:
            before, local = local.pieces, self._cut(lam, MOST_WORK, local)
            further = local.pieces is not before  # else all the work is done, and what follows is convex in lam
            if self._try(local, lam) > (GIVEN_UP if further else 1.0) * self.least or self.over():
                break
            lam = lam / STEP_DOWN
        return local

    def _upwards(self, local: Local, lowest: float, first: tuple[float, ...] = STEPS_UP, bump: float = 1.03) -> bool:
        """Larger and larger lam until the objective, which is convex in lam but for what the bound loses, rises by more
        than ``bump``; whether any but the first was best."""
        further = [STEPS_UP[-1] * ON**i for i in range(1, MOST_STEPS)]
        lams = [factor * lowest for factor in (*first, *further)]
        for lam in lams:
            if self._try(local, lam) > bump * self.least or self.over():
                break
        return self.least < next(trial.objective for trial in self.trials if trial.lam == lams[0])

    def _try(self, local: Local, lam: float) -> float:
        """The local bound at lam. Where most people would take as long as anybody may, everybody is given less."""
        upper, _, used = local.upper(self.x[:TRIED], lam, self.reached(lam)[:TRIED], self.most)
        if float(used.double().mean()) > MEAN_WORK * local.work:
            self.most = affordable(used, MEAN_WORK * local.work)
        return self._add(lam, upper, None, True)

    def _add(self, lam: float, upper: Tensor, dual: Solver | None, local: bool) -> float:
        self.trials.append(_Trial(lam, self._objective(lam, upper), upper, dual, local))
        value = self.trials[-1].objective
        if self.progress is not None:
            with contextlib.suppress(KeyboardInterrupt):  # the time is over: asked for where the next one would begin
                self.progress(f"tried lam = {lam:.4g}: {value:.4g}")
        return value

    def _objective(self, lam: float, upper: Tensor) -> float:
        reached = self.reached(lam)
        return lam * self.eps + float(reached.mean() + (upper - reached[: len(upper)]).mean())


def _change_within(problem: Problem, x: Tensor, eps: float, chunk: int = 64) -> tuple[Tensor, Tensor]:
    """CROWN's bounds of f(x') - f(x) within d_X <= eps, cell by cell: two (n, cells, K)."""
    lows, highs = [], []
    cells = [{0: 1, 1: 16, 2: 4}.get(problem.k, 1)] * problem.k
    for start in range(0, max(len(x), 1), chunk):
        rows = x[start : start + chunk]
        grid = problem.grid(len(rows), cells)
        with torch.no_grad():
            radius = torch.full((len(grid),), eps**0.5, dtype=torch.float64)
            low, high = output_change(problem, rows, grid, radius)
        each = len(grid) // len(rows) if len(rows) else 1
        lows.append(low.reshape(len(rows), each, -1))
        highs.append(high.reshape(len(rows), each, -1))
    return torch.cat(lows), torch.cat(highs)


def _margin_layers(logits: list[Layer], own: int | None) -> list[Layer]:
    """The network whose outputs are the margins: the logit, the second minus the first, or ``own`` minus each other."""
    weight, bias = logits[-1].weight, logits[-1].bias
    k = bias.shape[0]
    if k == 1:
        return logits
    if k == 2:
        return [*logits[:-1], Layer(weight[1:] - weight[:1], bias[1:] - bias[:1])]
    assert own is not None
    others = [j for j in range(k) if j != own]
    return [*logits[:-1], Layer(weight[own] - weight[others], bias[own] - bias[others])]
