"""Choosing the shared multipliers on separate data: they decide how tight the bound is, never whether it is sound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from evenhand.bounds.branch import default_cells, halved
from evenhand.bounds.factors import Factor, definite, factor_of_s
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import (
    Facts,
    Multipliers,
    Rows,
    curvature,
    linear_part,
    make_rows,
    natural_size,
    start_multipliers,
)
from evenhand.bounds.solver import NotPositiveDefinite, Solver, penalty, verified_smallest_eigenvalue

WORTH, PATIENCE = 0.005, 20  # less of a gain than this share in so many steps (or a tenth): the pace is halved
SLOWEST, SLOWER, SHORTEST = 1 / 40, 1 / 200, 60  # of the first pace; steps for which another round is worth it
BARRIER, STRONG_BARRIER = 0.2, 1.0  # a strong one is slower and hardly ever stuck
TOLD = 20  # steps between two lines of progress, which may end it
FINER, LOOK = 80, 20  # steps during which the cells are cut finer, every so many of them
JUDGED, FAR_WORSE = 100, 1.2  # steps after which all cells are looked at again; then the best so far are taken up
MOST_CELLS = 12  # of a person, on average, that are still cut

Objective = Callable[[Multipliers, Factor, int], Tensor]  # multipliers, S, step -> scalar


@dataclass(frozen=True)
class Tuned:
    multipliers: Multipliers
    value: float  # the objective at these multipliers


def tune(
    problem: Problem,
    x: Tensor,
    eps: float,
    steps: int = 400,
    start: Multipliers | None = None,
    iterations: int = 8,
    lr: float = 0.5,
    refine: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Tuned:
    """min over (lam, eta, gam, th) of lam*eps + mean_i max_cells bound, on tuning rows x (n, d).

    The rows' own multipliers follow by a few ADMM iterations a step. Cells far below their person's largest bound are
    dropped on the way, and the others are cut finer (unless ``refine`` is False).
    """
    state = _Cells(problem, x, iterations, refine)

    def objective(m: Multipliers, s: Factor, step: int) -> Tensor:
        return m.lam * eps + state.bound(m, s, step).mean()

    first = start if start is not None else start_multipliers(problem)
    return descend(problem, objective, first, steps, lr, progress=progress, again=state.anew)


def uniform_bound(
    problem: Problem,
    eps: float,
    lam: float | None = None,
    start: Multipliers | None = None,
    steps: int = 500,
    progress: Callable[[str], None] | None = None,
) -> Tuned:
    """min of lam*eps + b with r_lam(x) <= b for *every* x in Dom, at a given lam or over all lam.

    With the person as reference and the whole fibre as one cell every linear term vanishes, and what is left is
    b = sum gam * width^2 + sum th * (high - low)^2. The ``problem`` must have no pinned columns (see ``unpinned``).
    """
    width = (problem.zeta_high - problem.zeta_low).square()
    span = (problem.free_box.high - problem.free_box.low).square()

    def objective(m: Multipliers, s: Factor, step: int) -> Tensor:
        return m.lam * eps + everybody(m)

    def everybody(m: Multipliers) -> Tensor:
        return (m.gam * width).sum() + (m.th * span).sum()

    first = start if start is not None else start_multipliers(problem)
    if lam is not None:
        first = _with_lam(problem, first, lam)
    fixed = lam is not None
    found = descend(
        problem, objective, first, steps, 0.5, fixed, progress, barrier_weight=STRONG_BARRIER, slowest=SLOWER
    )
    m = found.multipliers
    for _ in range(20):
        s = curvature(problem, m)
        try:
            verified_smallest_eigenvalue(s, natural_size(problem, m))
        except NotPositiveDefinite:
            m = Multipliers(m.lam, m.eta, m.gam, m.th + 1e-9 * s.diagonal().max())
        else:
            return Tuned(m, float(m.lam * eps + everybody(m)) * (1 + 1e-12))
    raise NotPositiveDefinite("no margin above zero was found for S; raise lam")


def descend(
    problem: Problem,
    objective: Objective,
    start: Multipliers,
    steps: int,
    lr: float,
    fixed_lam: bool = False,
    progress: Callable[[str], None] | None = None,
    again: Callable[[Multipliers], None] | None = None,
    barrier_weight: float = BARRIER,
    slowest: float = SLOWEST,
) -> Tuned:
    """Adam on the logarithms of the multipliers, inside S > 0.

    A step that would leave S > 0 is halved until it does not. Where nothing is gained for a while, the best multipliers
    are taken up again at half the pace; once that is slow, another round begins from the best, as long as this pays. A
    log-det barrier of the normalised S, weaker the slower the pace, keeps S away from singular.

    again: called with the best multipliers before each further round and every so many steps; the objective may be
    another one from then on. The best are those that were so by the objective as it was then.
    """
    log = start.map(lambda t: t.detach().log().clone().requires_grad_(True))
    moving = log.tensors()[1:] if fixed_lam else log.tensors()
    best_log = log.map(lambda t: t.detach().clone())
    best = first = math.inf  # of this round
    pace, idle, patience = lr, 0, max(2, min(PATIENCE, steps // 10))
    optimiser = torch.optim.Adam(moving, lr=pace, betas=(0.8, 0.98))
    judge = None if again is None else _Judge(problem, objective, again)
    for step in range(steps):
        if judge is not None and step and step % JUDGED == 0:
            _set(log, judge.better(best_log))
            best, idle, optimiser = math.inf, 0, torch.optim.Adam(moving, lr=pace, betas=(0.8, 0.98))
        m = log.map(torch.exp)
        s = factor_of_s(problem, m)
        value = objective(m, s, step)
        idle = 0 if value.item() < (1 - WORTH) * best else idle + 1
        if value.item() < best:
            first = value.item() if best == math.inf else first
            best, best_log = value.item(), log.map(lambda t: t.detach().clone())
        try:
            if progress is not None and step % TOLD == 0:
                progress(f"tuning step {step}/{steps}: {value.item():.4g}")
        except KeyboardInterrupt:
            break  # the best so far are sound
        if idle >= patience:
            pace, idle = pace / 2, 0
            _set(log, best_log)
            if pace < slowest * lr:
                if best > (1 - WORTH) * first or steps - step < SHORTEST:
                    break
                pace = lr / 4
                if judge is not None:
                    _set(log, judge.better(best_log))
                    best = math.inf
                first = best
            optimiser = torch.optim.Adam(moving, lr=pace, betas=(0.8, 0.98))
            continue
        optimiser.zero_grad(set_to_none=True)
        (value / value.detach().abs() + barrier_weight * (pace / lr) ** 1.5 * s.singularity()).backward()
        _careful_step(problem, log, optimiser)
    if judge is not None and judge.best is not None:
        judge.better(best_log)
        best, best_log = judge.value, judge.best
    return Tuned(best_log.map(torch.exp), best)


class _Judge:
    """The best of several multipliers by the objective as ``again`` makes it for each of them: what it has left out
    since may be what matters now."""

    def __init__(self, problem: Problem, objective: Objective, again: Callable[[Multipliers], None]) -> None:
        self.problem, self.objective, self.again = problem, objective, again
        self.value, self.best = math.inf, None

    value: float
    best: Multipliers | None

    @torch.no_grad()
    def better(self, log: Multipliers) -> Multipliers:
        """These (as logarithms), unless earlier ones were better by far; the objective is made for them."""
        m = log.map(torch.exp)
        self.again(m)
        value = float(self.objective(m, factor_of_s(self.problem, m), 0))
        if value < self.value:
            self.value, self.best = value, log.map(torch.clone)
        elif self.best is not None and value > FAR_WORSE * self.value:
            self.again(self.best.map(torch.exp))
            return self.best
        return log


def differentiable_value(problem: Problem, m: Multipliers, s: Factor, rows: Rows, u: Tensor) -> Tensor:
    """The bound of each row, differentiable in multipliers and weights."""
    facts = Facts(problem)
    c0, b = linear_part(problem, m, rows)
    return c0 + 0.25 * s.quadratic(b - facts.transpose(u)) + facts.support(u, rows)


def unpinned(problem: Problem) -> Problem:
    """The same problem on the convex hull, where no column is pinned."""
    from evenhand.fair_metrics.metric import FairMetric

    q = torch.linalg.eigh(problem.sigma)
    paid = q.eigenvalues.clamp(min=0)
    sigma = (q.eigenvectors * torch.where(paid > 1e-9 * paid.max(), paid, torch.zeros_like(paid))) @ q.eigenvectors.T
    return Problem(problem.layers, FairMetric(sigma=sigma), problem.box.hull())


class _Cells:
    """The cells that matter while tuning, with multipliers kept in units of the shared ones. Those far below their
    person's largest bound are dropped; what was dropped too early is back in the next round of the descent."""

    def __init__(self, problem: Problem, x: Tensor, iterations: int, refine: bool) -> None:
        self.problem, self.x, self.iterations, self.refine = problem, x, iterations, refine
        self.rows = make_rows(problem, x, problem.grid(x.shape[0], default_cells(problem)))
        self.relative: Tensor | None = None

    def bound(self, m: Multipliers, s: Factor, step: int) -> Tensor:
        units = penalty(self.problem, m)
        with torch.no_grad():
            solver = Solver(self.problem, m.map(torch.Tensor.detach), verify=False)
            self.relative = self._improved(solver, self.iterations)
        value = differentiable_value(self.problem, m, s, self.rows, self.relative * units)
        largest = self._largest(value)
        if step % LOOK == LOOK - 5:
            self._focus(solver, value.detach(), step < FINER)
        return largest

    @torch.no_grad()
    def anew(self, m: Multipliers) -> None:
        """The cells that matter at these multipliers, from the first grid on."""
        solver = Solver(self.problem, m, verify=False)
        self.rows = make_rows(self.problem, self.x, self.problem.grid(len(self.x), default_cells(self.problem)))
        self.relative = None
        for _ in range(FINER // LOOK):
            self.relative = self._improved(solver, 4 * self.iterations)
            self._focus(solver, solver.value(self.rows, self.relative * solver.rho), True)

    def _improved(self, solver: Solver, iterations: int) -> Tensor:
        u = None if self.relative is None else self.relative * solver.rho
        return solver.improve(self.rows, u, iterations)[0] / solver.rho

    def _largest(self, value: Tensor) -> Tensor:
        start = torch.zeros(len(self.x), dtype=torch.float64)
        return start.scatter_reduce(0, self.rows.cells.person, value, "amax")

    @torch.no_grad()
    def _focus(self, solver: Solver, value: Tensor, finer: bool) -> None:
        assert self.relative is not None
        keep = value >= 0.5 * self._largest(value)[self.rows.cells.person]
        self.rows, self.relative = self.rows[keep], self.relative[keep]
        if self.problem.k > 0 and self.refine and finer and len(self.rows) <= MOST_CELLS * len(self.x):
            self.rows, u = halved(solver, self.x, self.rows, self.relative * solver.rho)
            self.relative = u / solver.rho


def _set(log: Multipliers, to: Multipliers) -> None:
    with torch.no_grad():
        for now, then in zip(log.tensors(), to.tensors(), strict=True):
            now.copy_(then)


def _careful_step(problem: Problem, log: Multipliers, optimiser: torch.optim.Optimizer) -> None:
    before = [t.detach().clone() for t in log.tensors()]
    optimiser.step()
    with torch.no_grad():
        for _ in range(30):
            if definite(problem, log.map(torch.exp), 1e-9):
                return
            for now, then in zip(log.tensors(), before, strict=True):
                now.copy_((now + then) / 2)
        for now, then in zip(log.tensors(), before, strict=True):
            now.copy_(then)


def _with_lam(problem: Problem, m: Multipliers, lam: float) -> Multipliers:
    """The start at a given lam: gam and th are raised until S > 0."""
    m = Multipliers(torch.tensor(lam, dtype=torch.float64), m.eta, m.gam, m.th)
    for _ in range(100):
        if definite(problem, m):
            return m
        m = Multipliers(m.lam, m.eta, m.gam * 1.5, m.th * 1.5)
    raise ValueError(f"no multipliers make S positive definite at lam = {lam:g}; use a larger lam")
