"""What r_lam of nobody in Dom exceeds: the range that a confidence bound needs, and a bound that looks at nobody."""

from __future__ import annotations

import math
from collections.abc import Callable

from evenhand.bounds.crown import output_range
from evenhand.bounds.factors import LinAlgError, effective_size
from evenhand.bounds.pace import Over, ending, never
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Multipliers
from evenhand.bounds.steepness import steepness
from evenhand.bounds.tuning import uniform_bound, unpinned

DUAL_SIZE = 3000  # columns and ReLUs: beyond this the quadratic dual takes too long
EASY_SIZE, FULL_SIZE = 300, 1100  # beyond these it is tuned in fewer steps, which cost as the cube of the size
FEWEST_STEPS = 20
RANGE_STEPS, MORE_STEPS = 600, 200  # for the range at the lam that is best for it, and from there on to others
RANGE_SIZE = 600  # up to here the range is worked out for each lam on its own
REFINED_SIZE, REFINED = 300, 2  # up to here more lam are tried, in so many rounds
CONFIDENT = (1.0, 1.3, 2.0, 4.0, 10.0, 40.0)  # times lam, for the confidence statement


class Ranges:
    """What r_lam of nobody in Dom exceeds, at a lam."""

    def __init__(self, problem: Problem, eps: float, steps: int, over: Over = never) -> None:
        self.problem, self.eps, self.steps = problem, eps, min(3 * steps, RANGE_STEPS)
        self.ceiling, self.over = output_range(problem), over
        self.joint, self.start, self.hull = self.ceiling, None, unpinned(problem)
        self.known: dict[float, float] = {}
        self.tuned: dict[float, Multipliers] = {}
        self.steep = steepness(self.hull, self.ceiling)
        size = len(problem.free) + len(problem.pinned) + sum(problem.widths)
        self.small, self.tiny = size <= RANGE_SIZE, size <= REFINED_SIZE
        if size <= DUAL_SIZE and not over():
            steps = self.steps if self.small else affordable_steps(steps, effective_size(self.hull))
            try:
                joint = uniform_bound(self.hull, max(eps, 1e-9), steps=steps, progress=ending(over))
                self.joint, self.start = min(joint.value, self.ceiling), joint.multipliers
                self.tuned[float(joint.multipliers.lam)] = joint.multipliers
                self.known[float(joint.multipliers.lam)] = joint.value - float(joint.multipliers.lam) * max(eps, 1e-9)
            except (ValueError, LinAlgError, KeyboardInterrupt):
                pass

    @property
    def for_all(self) -> tuple[float, float] | None:
        """The bound that looks at nobody: (lam, sup of r_lam over Dom) at the lam that is best for lam*eps + that."""
        if self.start is None:
            return None
        lam = float(self.start.lam)
        return lam, self.known[lam]

    def prices(self, lowest: float, stated: Callable[[tuple[float, float]], float]) -> list[tuple[float, float]]:
        """Some (lam, b) with lam >= lowest and r_lam <= b everywhere, more of them about the one that is ``stated``
        smallest."""
        lams = [lowest * c for c in CONFIDENT] + [max(lowest, self.steep.best_lam(self.eps))]
        found = [(lam, self.largest(lam)) for lam in lams]
        for _ in range(REFINED if self.tiny else 0):
            found.sort()
            best = min(range(len(found)), key=lambda i: stated(found[i]))
            for other in (best - 1, best + 1):
                if 0 <= other < len(found):
                    lam = (found[best][0] * found[other][0]) ** 0.5
                    found.append((lam, self.largest(lam)))
        return found

    def largest(self, lam: float) -> float:
        if lam not in self.known:
            self.known[lam] = self.steep.largest(lam)
            if self.small and self.tuned and not self.over():
                nearest = self.tuned[min(self.tuned, key=lambda at: abs(math.log(at / lam)))]
                try:
                    steps, tell = min(self.steps, MORE_STEPS), ending(self.over)
                    found = uniform_bound(self.hull, 0.0, lam, nearest, steps=steps, progress=tell)
                    self.known[lam], self.tuned[lam] = min(found.value, self.known[lam]), found.multipliers
                except (ValueError, LinAlgError, KeyboardInterrupt):
                    pass
            self.known[lam] = min(b for at, b in self.known.items() if at <= lam)  # r_lam falls as lam rises
        return self.known[lam]


def affordable_steps(steps: int, size: int) -> int:
    """Of so many steps those that a dual of this size is given."""
    return max(FEWEST_STEPS, int(steps * min(1.0, EASY_SIZE / size) * min(1.0, FULL_SIZE / size) ** 2))
