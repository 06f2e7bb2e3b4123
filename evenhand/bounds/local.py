"""The local bound of r_lam: shells around the person, and beyond them the pieces of Dom that all people share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from evenhand.bounds.fibre import fibre_of
from evenhand.bounds.pace import Over, never
from evenhand.bounds.partition import Pieces, by_signs, split, whole
from evenhand.bounds.problem import Problem
from evenhand.bounds.refinement import Refinement, Views
from evenhand.bounds.shells import Shells, kept_numbers, radii

NEAR = 1.2  # shells are trusted as long as they stay within this factor of the innermost ones
INNERMOST = 2
AT_ONCE, SHARE = 64, 8  # pieces cut in a round, or one in so many of them
MOST_COLUMNS, MOST_RELUS = 64, 400
WORK, WORST = 1000, 16  # pieces that are made of each person's own worst ones, which are also looked at closer
LEAST_WORK, LARGEST_WORK = 300, 2000  # of a large network fewer are made, of a small one more
WORK_BY_SIGNS = 1200  # of a network that is cut by signs from the start
MATTERS = 0.3  # of a person's largest value
SLACK = 0.02  # of lam * eps
ENOUGH = 1.01  # times what r_lam is known to be at least: more work would not be worth it
FIRST_WORK, MOST_WORK = 2000, 80_000  # for the pieces that all people share, fewer of a large network
USUAL, FIXED = 13_000, 0.25  # multiplications of a network's weights for one piece, for which these numbers are
# made, and what a piece takes besides in times of a usual one
PEOPLE, FEWER = 192, 24  # tuning people whose worst pieces are cut; fewer where signs are split, which takes longer
COARSE = 4  # one of so many lam first
FEW = 24  # tuning people on whom shells alone are tried
REMEMBERED, KEPT = 8, 8_000_000  # groups of people whose shells are kept for the next lam, and numbers for each


@dataclass(frozen=True)
class Local:
    problem: Problem
    pieces: Pieces | None  # None: shells alone
    slack: float = 0.0  # less than this above the bound near a person is not worth any work

    @torch.no_grad()
    def upper(
        self, x: Tensor, lam: float, reached: Tensor | None = None, most: int | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """r_lam(x), at most, an x' that may come near it, and how many pieces were made: (n, d) -> (n,), (n, d), (n,).
        reached (n,): what r_lam is known to be at least, where work may stop; most: pieces that may be made for a
        person, if fewer than usual."""
        known = torch.zeros(len(x), dtype=torch.float64) if reached is None else reached
        work = self.work if most is None else min(self.work, most)
        found = [self._upper(x[i : i + 64], lam, known[i : i + 64], work) for i in range(0, len(x), 64)]
        if not found:
            return torch.zeros(0, dtype=torch.float64), x, torch.zeros(0, dtype=torch.long)
        upper, points, used = (torch.cat(each) for each in zip(*found, strict=True))
        return upper, points, used

    def _upper(self, x: Tensor, lam: float, reached: Tensor, work: int) -> tuple[Tensor, Tensor, Tensor]:
        near, inner, alone = around(self.problem, x, lam)
        goal, points, used = torch.maximum(near, reached) + self.slack, x.clone(), torch.zeros(len(x), dtype=torch.long)
        rows = (alone > ENOUGH * goal).nonzero()[:, 0]
        if self.refinement is not None and len(rows):
            views = _views(self.problem, x[rows], lam, inner[rows], goal[rows])
            far, points[rows], used[rows] = self.refinement.upper(views, work, WORST)
            alone[rows] = torch.minimum(alone[rows], torch.maximum(near[rows], far))
        return self._rounded(x, alone), points, used

    @property
    def work(self) -> int:
        """Pieces that may be made for a person."""
        if by_signs(self.problem.layers):
            return WORK_BY_SIGNS
        return min(LARGEST_WORK, max(LEAST_WORK, int(WORK / _size(self.problem))))

    @cached_property
    def refinement(self) -> Refinement | None:
        return Refinement(self.problem.layers, self.pieces) if self.pieces is not None else None

    @torch.no_grad()
    def quick(self, x: Tensor, lam: float) -> Tensor:
        """The same without cutting any further: (n, d) -> (n,)."""
        near, inner, alone = around(self.problem, x, lam)
        if self.pieces is not None:
            far = _views(self.problem, x, lam, inner, near).values(self.pieces).amax(1)
            alone = torch.minimum(alone, torch.maximum(near, far))
        return self._rounded(x, alone)

    def _rounded(self, x: Tensor, upper: Tensor) -> Tensor:
        """A little more, for what rounding may have taken away."""
        return upper + 1e-9 * upper.abs() + 1e-13 * self.problem.f(x).square().sum(1)


def _size(problem: Problem) -> float:
    """How long a piece takes, in times of a usual one."""
    shapes = [layer.weight.shape for layer in problem.layers]
    through = shapes[0].numel() + sum(rows * (columns + problem.d) for rows, columns in shapes[1:])
    return FIXED + through / USUAL


def around(problem: Problem, x: Tensor, lam: float) -> tuple[Tensor, Tensor, Tensor]:
    """The bound near each person, the radius up to which it holds, and the bound of shells alone: (n,) each."""
    running = _shells(problem, x).values([lam])[0].clamp(min=0).cummax(1).values
    count = (running <= NEAR * running[:, INNERMOST : INNERMOST + 1]).sum(1)
    near = running.gather(1, count[:, None] - 1)[:, 0]
    return near, radii(problem)[count], running[:, -1].clone()


_KEPT: WeakKeyDictionary[Problem, dict[bytes, Shells]] = WeakKeyDictionary()


def _shells(problem: Problem, x: Tensor) -> Shells:
    """The shells of these people: the last groups asked for are kept, for they are asked for again at other lam."""
    if fibre_of(problem) is None and kept_numbers(problem) * len(x) > KEPT:
        return Shells(problem, x)
    kept, key = _KEPT.setdefault(problem, {}), x.numpy().tobytes()
    found = kept.pop(key, None) or Shells(problem, x)
    kept[key] = found
    for old in list(kept)[:-REMEMBERED]:
        del kept[old]
    return found


def _views(problem: Problem, x: Tensor, lam: float, inner: Tensor, goal: Tensor) -> Views:
    return Views(x, problem.f(x)[:, 0], problem.sigma.diagonal(), lam, inner, ENOUGH * goal)


def can_be_cut(problem: Problem) -> bool:
    """Whether pieces serve: d_X by column, one output, and few enough columns and ReLUs."""
    one = problem.layers[-1].bias.shape[0] == 1
    one = one and not problem.smooth
    return problem.separable and one and problem.d <= MOST_COLUMNS and 0 < sum(problem.widths) <= MOST_RELUS


@torch.no_grad()
def cut(
    problem: Problem,
    x: Tensor,
    eps: float,
    lam: float,
    reached: Tensor | None = None,
    work: int = MOST_WORK,
    start: Pieces | None = None,
    progress: Callable[[str], None] | None = None,
    hoped: float = inf,
) -> Local:
    """Pieces that hold the bound of tuning people down at lam, made with so much work (``Pieces.cost``). reached (n,):
    what their r_lam is known to be at least; start: pieces to cut further; hoped: lam*eps + the mean bound of which
    this should come within reach, else it ends early. Ctrl-C ends the cutting; whatever there is by then is sound."""
    pieces, slack = whole(problem) if start is None else start, SLACK * lam * eps
    few = FEWER if by_signs(problem.layers) else PEOPLE
    x, reached = x[:few], None if reached is None else reached[:few]
    near, inner, _ = around(problem, x, lam)
    goal = (near if reached is None else torch.maximum(near, reached)) + slack
    views = _views(problem, x, lam, inner, goal)
    values, spent = views.values(pieces), int(pieces.cost.sum())
    work = int(work / max(1.0, _size(problem)))
    course: list[tuple[int, float]] = []
    try:
        while spent < work:
            over = (values - goal[:, None]).clamp(min=0)
            worth = over.sum(0) * (pieces.choice >= 0)
            count = min(max(AT_ONCE, len(pieces) // SHARE), int((worth > 0).sum()))
            now = lam * eps + goal.mean() + over.amax(1).mean()
            if progress is not None:
                progress(f"{len(pieces)} pieces of Dom, {spent / work:.0%} of the work: {now:.4g} at lam = {lam:.4g}")
            course.append((spent, float(now)))
            if count == 0 or over.amax(1).mean() <= 0.05 * now or _in_vain(course, work, hoped):
                break
            chosen = worth.topk(count).indices
            kept = torch.ones(len(pieces), dtype=torch.bool)
            kept[chosen] = False
            new = split(problem.layers, pieces[chosen])
            found = values[:, chosen][:, new.parent]
            # what is far below a person's largest value does not matter yet: it keeps the value of what it was cut from
            matters = torch.maximum(views.enough, MATTERS * values.amax(1))
            person, piece = (found > matters[:, None]).nonzero(as_tuple=True)
            found[person, piece] = torch.minimum(found[person, piece], views.pairs(new, person, piece)[0])
            values = torch.cat([values[:, kept], found], 1)
            pieces, spent = Pieces.join([pieces[kept], new]), spent + int(new.cost.sum())
    except KeyboardInterrupt:
        pass
    return Local(problem, pieces, slack)


def _in_vain(course: list[tuple[int, float]], work: int, hoped: float) -> bool:
    """Whether the rest of the work will not bring the bound down to what is hoped for, by a power of the work that is
    twice what was seen since a third of what has been done: of (work spent, bound) so far."""
    spent, now = course[-1]
    earlier = [(then, value) for then, value in course if 0 < 3 * then <= spent]
    if not earlier or now <= hoped:
        return False
    then, value = earlier[-1]
    power = log(max(value / now, 1.0)) / log(spent / then)
    return now * exp(2 * power * log(spent / work)) > hoped


def affordable(used: Tensor, mean: float) -> int:
    """How many pieces each person may have so that they are at most so many on average, given how many were used."""
    low, high = 1, int(used.max()) + 1
    while high - low > 1:
        middle = (low + high) // 2
        within = float(used.clamp(max=middle).double().mean()) <= mean
        low, high = (middle, high) if within else (low, middle)
    return low


@torch.no_grad()
def shells_lam(problem: Problem, x: Tensor, eps: float, lowest: float, over: Over = never) -> float:
    """The lam at which shells alone do best on tuning people, among lowest * 1.5^k, a few of them first."""
    lams, shells, objective = [lowest * 1.5**k for k in range(20)], Shells(problem, x[:FEW]), dict[float, float]()
    for lam in sorted(lams, key=lambda lam: (lams.index(lam) % COARSE, lam)):
        objective[lam] = lam * eps + float(shells.values([lam]).amax(2).clamp(min=0).mean())
        if over():
            break
    return min(sorted(objective), key=objective.__getitem__)
