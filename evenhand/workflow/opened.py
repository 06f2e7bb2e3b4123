"""A model file of a run, opened for use: it takes tables as they come."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from evenhand.domain import Box
from evenhand.estimators.calibration import decision_threshold
from evenhand.fair_metrics.metric import FairMetric
from evenhand.files import ModelFileError, load, load_metadata
from evenhand.tables.encoder import strangers
from evenhand.tables.schema import Schema
from evenhand.workflow.seen import Seen
from evenhand.workflow.trained import in_chunks

MODEL = "model.evenhand"


@dataclass(frozen=True)
class TableModel:
    """A model that ``evenhand train`` wrote. ``predict`` and ``predict_proba`` take a table like the one it was made
    from, only with the columns that the model uses; decisions are the table's own values."""

    name: str
    pipeline: Pipeline
    schema: Schema
    fair_metric: FairMetric
    box: Box | None
    seen: Seen | None  # hashes of the rows it learned from

    @property
    def columns(self) -> Sequence[str]:
        return [column.name for column in self.schema.used]

    @property
    def threshold(self) -> float | None:
        """From which probability of the second class on it is decided for."""
        return None if self.schema.regression else decision_threshold(self.pipeline[-1])

    def predict(self, frame: pd.DataFrame) -> NDArray[Any]:
        """Decisions, as the target writes them; numbers where the target is one."""
        return in_chunks(self.pipeline.predict, self.schema.apply(frame))

    def predict_proba(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Probabilities (n, K) in the order of ``schema.classes``."""
        if self.schema.regression:
            raise ValueError(f"the target {self.schema.target!r} is a number: it has predictions, no probabilities")
        return in_chunks(self.pipeline.predict_proba, self.schema.apply(frame))

    def inside(self, clean: pd.DataFrame) -> pd.DataFrame:
        """The rows of a clean table whose categories training had: the others are outside the domain."""
        if self.box is None:
            return clean
        x = torch.tensor(np.asarray(in_chunks(self.pipeline[0].transform, clean), dtype=np.float64))
        kept: pd.DataFrame = clean[self.box.contains(x).numpy()]
        return kept

    def strangers(self, frame: pd.DataFrame) -> dict[str, int]:
        """How many values of each column are categories that training did not have; only where there are any."""
        return strangers(self.pipeline[0], self.schema.apply(frame))

    def codes(self, clean: pd.DataFrame) -> NDArray[Any]:
        """Class numbers (or quantities) of a clean table, for those who ask questions of the model."""
        predicted = in_chunks(self.pipeline.predict, clean[list(self.columns)])
        return predicted if self.schema.regression else np.searchsorted(self.pipeline[-1].classes_, predicted)

    def probabilities(self, clean: pd.DataFrame) -> NDArray[np.float64]:
        return in_chunks(self.pipeline.predict_proba, clean[list(self.columns)])


def load_model(path: str | os.PathLike[str]) -> TableModel:
    """The model of a run: its file, or the folder. Runs no code from it."""
    file = Path(path)
    file = file / MODEL if file.is_dir() else file
    model, kept = load(file), load_metadata(file)
    if "schema" not in kept or not isinstance(model, Pipeline):
        raise ModelFileError(
            f"{file} was saved from Python without the table it expects; use evenhand.files.load for it"
        )
    try:
        schema = Schema.from_json(kept["schema"])
        seen = Seen.from_json(kept["seen"]) if "seen" in kept else None
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{file}: what it says about its table is damaged ({error!r})") from error
    estimator = model[-1]
    return TableModel(str(file), model, schema, estimator.fair_metric_, estimator.bounds_, seen)
