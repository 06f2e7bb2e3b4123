"""CoCL."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from evenhand.estimators.base import NeuralClassifier, parameters
from evenhand.estimators.sensitive import Sensitive, known_groups
from evenhand.frames import numbers
from evenhand.objectives.batch import Objective
from evenhand.objectives.cocl import CoCL


@parameters()
class CoCLClassifier(NeuralClassifier):
    """loss + rho * the covariance, within each class, of the true class's probability with an auxiliary embedding.

    A method of group fairness (Romanov et al. 2019). sensitive: names or positions of columns of X, or a function of X
    that gives attributes, whose group indicators are the embedding; ``fit(X, y, sensitive_features=...)`` takes the
    attributes themselves, ``fit(X, y, embedding=...)`` any matrix (n, m) instead, for example embeddings of names, and
    they go before it. Held-out data (``validation_fraction``) is evaluated by the loss alone.
    """

    sensitive: Sensitive = field(default=None, kw_only=False)
    rho: float = 5.0
    warm_up: float = 0.0
    steps: int = 2000
    lr: float = 1e-3

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None, embedding: Any = None
    ) -> Self:
        """Train on X, labels of any kind, and a matrix (n, m) or the indicators of the sensitive attributes."""
        self._given = sensitive_features, embedding
        try:
            return super().fit(X, y, sample_weight)
        finally:
            self.__dict__.pop("_given"), self.__dict__.pop("_embedding", None)

    def _learn_more(self, source: Any) -> None:
        sensitive, embedding = self._given
        if embedding is not None:
            matrix = numbers(embedding, "embedding", np.float32)
            if len(matrix) != len(source.kept):
                raise ValueError(
                    f"embedding has {len(matrix)} rows but y has {len(source.kept)}; it needs one for each"
                )
            self._embedding = matrix[source.kept]
            return
        codes, groups = known_groups(sensitive, self.sensitive, source)
        if codes is None:
            raise ValueError("name the sensitive attributes: CoCLClassifier(['sex']) or fit(X, y, embedding=matrix)")
        self._embedding = np.concatenate([np.eye(len(g), dtype=np.float32)[c] for c, g in zip(codes.T, groups)], axis=1)

    def _objective(self, search_generator: torch.Generator) -> Objective:
        return CoCL(self._embedding, self.rho)

    def _align(self, objective: Objective, rows: Tensor) -> None:
        assert isinstance(objective, CoCL)
        objective.embedding = objective.embedding[rows]
