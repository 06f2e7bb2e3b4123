"""The local bound of r_lam: shells around the person, and beyond them the pieces of Dom that all people share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from evenhand.bounds.partition import Pieces, Refinement, Views, split, whole
from evenhand.bounds.problem import Problem
from evenhand.bounds.shells import radii, shell_values

NEAR = 1.2  # shells are trusted as long as they stay within this factor of the innermost ones
INNERMOST = 2
AT_ONCE = 64  # pieces cut in a round
MOST_COLUMNS, MOST_RELUS = 64, 400
ROUNDS, WORST = 60, 16  # each person's own worst pieces are looked at closer, or cut; so often at most
FEWEST_ROUNDS, RELU_ROUNDS = 4, 6000  # so many rounds times ReLUs; those behind the first layer count more
DEEP = 12  # of them double the work
SLACK = 0.02  # of lam * eps
ENOUGH = 1.01  # times what r_lam is known to be at least: more work would not be worth it
MOST_PIECES = 1000
PEOPLE = 24  # tuning people whose worst pieces are cut


@dataclass(frozen=True)
class Local:
    problem: Problem
    pieces: Pieces | None  # None: shells alone
    slack: float = 0.0  # less than this above the bound near a person is not worth any work

    @torch.no_grad()
    def upper(self, x: Tensor, lam: float, reached: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """r_lam(x), at most, and an x' that may come near it: (n, d) -> (n,), (n, d). reached (n,): what r_lam is known
        to be at least, where work may stop."""
        known = torch.zeros(len(x), dtype=torch.float64) if reached is None else reached
        found = [self._upper(x[i : i + 64], lam, known[i : i + 64]) for i in range(0, len(x), 64)]
        if not found:
            return torch.zeros(0, dtype=torch.float64), x
        return torch.cat([upper for upper, _ in found]), torch.cat([point for _, point in found])

    def _upper(self, x: Tensor, lam: float, reached: Tensor) -> tuple[Tensor, Tensor]:
        near, inner, alone = around(self.problem, x, lam)
        goal, points = torch.maximum(near, reached) + self.slack, x.clone()
        rows = (alone > ENOUGH * goal).nonzero()[:, 0]
        if self.pieces is not None and len(rows):
            views = _views(self.problem, x[rows], lam, inner[rows], goal[rows])
            far, points[rows] = Refinement(self.problem.layers, self.pieces).upper(views, self._rounds, WORST)
            alone[rows] = torch.minimum(alone[rows], torch.maximum(near[rows], far))
        return self._rounded(x, alone), points

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

    @property
    def _rounds(self) -> int:
        widths = self.problem.widths
        work = sum(widths) * max(1.0, sum(widths[1:]) / DEEP)
        return min(ROUNDS, max(FEWEST_ROUNDS, int(RELU_ROUNDS / work)))


def around(problem: Problem, x: Tensor, lam: float) -> tuple[Tensor, Tensor, Tensor]:
    """The bound near each person, the radius up to which it holds, and the bound of shells alone: (n,) each."""
    running = shell_values(problem, x, [lam])[0].clamp(min=0).cummax(1).values
    count = (running <= NEAR * running[:, INNERMOST : INNERMOST + 1]).sum(1)
    near = running.gather(1, count[:, None] - 1)[:, 0]
    return near, radii(problem)[count], running[:, -1].clone()


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
    most: int = MOST_PIECES,
    start: Pieces | None = None,
    progress: Callable[[str], None] | None = None,
) -> Local:
    """At most so many pieces that hold the bound of tuning people down at lam. reached (n,): what their r_lam is known
    to be at least; start: pieces to cut further. Ctrl-C ends the cutting; whatever there is by then is sound."""
    x = x[:PEOPLE]
    pieces, slack = whole(problem) if start is None else start, SLACK * lam * eps
    near, inner, _ = around(problem, x, lam)
    goal = (near if reached is None else torch.maximum(near, reached[:PEOPLE])) + slack
    views = _views(problem, x, lam, inner, goal)
    values = views.values(pieces)
    try:
        while len(pieces) < most:
            over = (values - goal[:, None]).clamp(min=0)
            worth = over.sum(0) * (pieces.relu_loss.amax(1) > 0)
            count = min(AT_ONCE, int((worth > 0).sum()))
            now = lam * eps + goal.mean() + over.amax(1).mean()
            if progress is not None:
                progress(f"{len(pieces)} of at most {most} pieces of Dom: {now:.4g} at lam = {lam:.4g}")
            if count == 0 or over.amax(1).mean() <= 0.05 * now:
                break
            chosen = worth.topk(count).indices
            kept = torch.ones(len(pieces), dtype=torch.bool)
            kept[chosen] = False
            new = split(problem.layers, pieces[chosen])
            found = views.values(new)
            values = torch.cat([values[:, kept], torch.minimum(found, values[:, chosen][:, new.parent])], 1)
            pieces = Pieces.join([pieces[kept], new])
    except KeyboardInterrupt:
        pass
    return Local(problem, pieces, slack)


@torch.no_grad()
def shells_lam(problem: Problem, x: Tensor, eps: float, lowest: float) -> float:
    """The lam at which shells alone do best on tuning people, among lowest * 1.5^k."""
    lams = [lowest * 1.5**k for k in range(20)]
    mean = shell_values(problem, x[:PEOPLE], lams).amax(2).clamp(min=0).mean(1)
    objective = torch.tensor(lams, dtype=torch.float64) * eps + mean
    return lams[int(objective.argmin())]
