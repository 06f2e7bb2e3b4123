"""How hard to work where there is only so much time: fewer boxes of a branch and bound for everybody alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.ensembles.trees import TreeEnsemble
from evenhand.ensembles.worst_case import People, worst_case

FEWEST = 16  # boxes of a person, however little time there is
TRIED_ON, TRIED_WITH = 4, 60  # people and boxes on which it is seen how long a box takes
FEW = 12  # tuning people where there is little time
TUNING, JUDGING = 0.35, 0.35  # of the time: for what is chosen on tuning people, and for the first held-out people
PART = 32  # held-out people who are looked at together

Over = Callable[[], bool]


def never() -> bool:
    """There is all the time in the world."""
    return False


def ending(over: Over) -> Callable[[str], None]:
    """Progress that says nothing, and ends what it is told of when the time is over."""

    def tell(text: str) -> None:
        if over():
            raise KeyboardInterrupt

    return tell


@dataclass(frozen=True)
class Pace:
    """Boxes for each of ``rows`` tuning people, and for each held-out one."""

    rows: int
    tuning: int
    boxes: int
    over: Over = never

    @classmethod
    def of(
        cls,
        ensemble: TreeEnsemble,
        people: People,
        x: NDArray[np.float64],
        boxes: int,
        seconds: float | None,
        searches: int,
        each: int,
    ) -> Pace:
        """searches: of each tuning person; each: of a held-out one. Without a limit everybody is given all boxes."""
        if seconds is None or not len(x):
            return cls(len(x), boxes, boxes)
        end = time.perf_counter() + seconds / 2
        per_box = seconds_of_a_box(ensemble, people, x)
        visits = max(1.0, TUNING * seconds / (per_box * searches))  # boxes, of everybody together
        rows = len(x) if visits >= 4 * FEWEST * len(x) else min(len(x), FEW)
        tuning, judging = visits / rows, JUDGING * seconds / (per_box * each * PART)
        fewest = min(FEWEST, boxes)
        limited = (int(min(boxes, max(fewest, count))) for count in (tuning, judging))
        return cls(rows, next(limited), next(limited), lambda: time.perf_counter() > end)


def seconds_of_a_box(ensemble: TreeEnsemble, people: People, x: NDArray[np.float64]) -> float:
    for boxes in (1, TRIED_WITH):  # the first call may have to be compiled
        began = time.perf_counter()
        used = worst_case(ensemble, people, x[:TRIED_ON], lam=1.0, boxes=boxes, tolerance=0.0).boxes
    return (time.perf_counter() - began) / max(1, int(used.sum()))
