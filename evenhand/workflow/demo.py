"""The main job on the embedded Adult data: the paper's features, metric and split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.datasets import adult, adult_frame
from evenhand.workflow.prepare import Task, prepare
from evenhand.workflow.questions import Flip
from evenhand.workflow.settings import Settings
from evenhand.workflow.trained import NAMES

FEATURES = [
    "age", "education-num", "capital-gain", "capital-loss", "hours-per-week",
    "workclass", "marital-status", "occupation", "relationship", "sex", "race",
]  # fmt: skip
SPOUSE = Flip("husband or wife", {"relationship": ["Husband", "Wife"]}, keep_original=False)
SETTINGS = Settings(rho=(5.0, 20.0), steps=1150, sensr=True, max_accuracy_loss=0.06, audit_rows=100, certify_rows=250)


@dataclass(frozen=True)
class Line:
    """One model in the demo's table, in the terms of the paper."""

    name: str
    balanced_accuracy: float
    spouse_consistency: float
    sex_race_consistency: float
    gap_sex: float
    gap_race: float
    relative: float | None  # of how differently strangers are treated; found by search
    decisions: float | None  # share that somebody similar changes; found by search


def demo_task(seed: int = 0) -> tuple[pd.DataFrame, Task]:
    """Adult with the paper's eleven columns (41 features), binary race, and its test part as the held-out part."""
    train, test = adult(seed)
    rows = np.sort(np.r_[train.X.index, test.X.index])
    frame = adult_frame().loc[rows, [*FEATURES, "income"]]
    frame["race"] = np.where(frame["race"] == "White", "White", "Non-White")
    held_out: NDArray[np.bool_] = np.isin(rows, test.X.index)
    task = prepare(
        frame, "income", ["sex", "race"], see_sensitive=True, proxy=["sex"], seed=seed, held_out=held_out,
        extra_questions=[SPOUSE],
    )  # fmt: skip
    return frame, task


def lines(metrics: dict[str, Any]) -> list[Line]:
    """The table of the paper: one line a model."""
    return [
        Line(
            NAMES[name],
            m["balanced_accuracy"],
            1 - m["changed"][SPOUSE.name]["share"],
            1 - m["changed"]["sex or race"]["share"],
            m["groups"]["sex"]["rms"],
            m["groups"]["race"]["rms"],
            m["audit"]["relative"],
            m["audit"]["decisions"],
        )
        for name, m in metrics["models"].items()
    ]
