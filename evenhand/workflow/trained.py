"""A model of a run, whatever it is made of: decisions and calibrated probabilities for a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from evenhand.estimators.calibration import decided_from, decision_threshold, fit_softmax
from evenhand.report.names import NAMES, WITHOUT_FAIRNESS
from evenhand.workflow.views import Part, View

__all__ = ["NAMES", "WITHOUT_FAIRNESS", "Ours", "Trained", "Trees", "in_chunks"]
CHUNK = 100_000


@dataclass(frozen=True)
class Encoded:
    """A model behind the encoder of its view."""

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


@dataclass(frozen=True)
class Ours(Encoded):
    """A model of ours, network or boosted trees."""

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
class Trees(Encoded):
    """Boosted trees of scikit-learn behind the same encoder, trained with balanced classes and calibrated like ours."""

    slope: float = 1.0
    offset: NDArray[np.float64] | None = None
    weighed: NDArray[np.float64] | None = None  # logarithms of the probabilities beside which a decision weighs them

    @classmethod
    def calibrated(cls, name: str, pipeline: Pipeline, view: View, validation: Part, threshold: float | None) -> Trees:
        if view.schema.regression:
            return cls(name, pipeline, view)
        slope, offset = fit_softmax(
            np.log(pipeline.predict_proba(validation.frame[view.columns]).clip(1e-12)), validation.y
        )
        weighed = decided_from(np.asarray(validation.y), len(offset), threshold)
        return cls(name, pipeline, view, slope, offset, weighed)

    @property
    def threshold(self) -> float | None:
        if self.weighed is None or len(self.weighed) != 2:
            return None
        return float(1 / (1 + np.exp(self.weighed[0] - self.weighed[1])))

    @property
    def score_threshold(self) -> float | None:
        """The log-odds of the trees themselves from which on the second class is decided for."""
        if self.weighed is None or self.offset is None or len(self.weighed) != 2:
            return None
        wanted, fitted = self.weighed[1] - self.weighed[0], self.offset[1] - self.offset[0]
        return float((wanted - fitted) / self.slope)

    def codes(self, frame: pd.DataFrame) -> NDArray[Any]:
        if self.view.schema.regression:
            return in_chunks(self.pipeline.predict, frame[self.columns])
        weighed = np.zeros(1) if self.weighed is None else self.weighed
        return np.asarray((np.log(self.probabilities(frame).clip(1e-300)) - weighed).argmax(1))

    def probabilities(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        z = self.slope * np.log(in_chunks(self.pipeline.predict_proba, frame[self.columns]).clip(1e-12)) + self.offset
        e = np.exp(z - z.max(1, keepdims=True))
        return np.asarray(e / e.sum(1, keepdims=True))


Trained = Ours | Trees


def in_chunks(predict: Any, frame: pd.DataFrame) -> NDArray[Any]:
    """predict(frame), so many rows at a time that the encoded ones fit into memory."""
    return np.concatenate([np.asarray(predict(frame.iloc[i : i + CHUNK])) for i in range(0, max(len(frame), 1), CHUNK)])
