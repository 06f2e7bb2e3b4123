"""A model of a run, whatever it is made of: decisions and calibrated probabilities for a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from evenhand.estimators.calibration import decision_threshold, fit_softmax
from evenhand.report.names import NAMES, WITHOUT_FAIRNESS
from evenhand.workflow.views import Part, View

__all__ = ["NAMES", "WITHOUT_FAIRNESS", "Ours", "Trained", "Trees", "in_chunks"]
CHUNK = 100_000


@dataclass(frozen=True)
class Ours:
    """A model of ours, network or boosted trees, behind its encoder."""

    name: str
    pipeline: Pipeline
    view: View

    @property
    def columns(self) -> Sequence[str]:
        return self.view.columns

    @property
    def judged(self) -> Pipeline:
        """What an audit looks at: its decision is the largest output."""
        return self.pipeline

    @property
    def threshold(self) -> float | None:
        return None if self.view.schema.regression else decision_threshold(self.pipeline[-1])

    def codes(self, frame: pd.DataFrame) -> NDArray[Any]:
        """Class numbers, or quantities."""
        predicted = in_chunks(self.pipeline.predict, frame[self.columns])
        return predicted if self.view.schema.regression else np.searchsorted(self.pipeline[-1].classes_, predicted)

    def probabilities(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        return in_chunks(self.pipeline.predict_proba, frame[self.columns])


@dataclass(frozen=True)
class Trees:
    """Boosted trees of scikit-learn behind the same encoder, trained with balanced classes and calibrated like ours."""

    name: str
    pipeline: Pipeline
    view: View
    slope: float = 1.0
    offset: NDArray[np.float64] | None = None

    @classmethod
    def calibrated(cls, name: str, pipeline: Pipeline, view: View, validation: Part, threshold: float | None) -> Trees:
        if view.schema.regression:
            return cls(name, pipeline, view)
        slope, offset = fit_softmax(
            np.log(pipeline.predict_proba(validation.frame[view.columns]).clip(1e-12)), validation.y
        )
        if threshold is None:
            return cls(name, pipeline, view, slope, offset)
        logit = np.log(threshold / (1 - threshold))
        return cls(name, pipeline, view, slope, np.array([-logit / 2, logit / 2]))

    @property
    def columns(self) -> Sequence[str]:
        return self.view.columns

    @property
    def judged(self) -> Pipeline:
        return self.pipeline

    @property
    def threshold(self) -> float | None:
        if self.offset is None or len(self.offset) != 2:
            return None
        return float(1 / (1 + np.exp(self.offset[0] - self.offset[1])))

    def codes(self, frame: pd.DataFrame) -> NDArray[Any]:
        if self.view.schema.regression:
            return in_chunks(self.pipeline.predict, frame[self.columns])
        return np.asarray(in_chunks(self.pipeline.predict_proba, frame[self.columns]).argmax(1))

    def probabilities(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        z = self.slope * np.log(in_chunks(self.pipeline.predict_proba, frame[self.columns]).clip(1e-12)) + self.offset
        e = np.exp(z - z.max(1, keepdims=True))
        return np.asarray(e / e.sum(1, keepdims=True))


Trained = Ours | Trees


def in_chunks(predict: Any, frame: pd.DataFrame) -> NDArray[Any]:
    """predict(frame), so many rows at a time that the encoded ones fit into memory."""
    return np.concatenate([np.asarray(predict(frame.iloc[i : i + CHUNK])) for i in range(0, max(len(frame), 1), CHUNK)])
