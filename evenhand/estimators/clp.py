"""CLP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from evenhand.estimators.base import NeuralClassifier, NeuralEstimator, NeuralRegressor, parameters
from evenhand.objectives.batch import Objective
from evenhand.objectives.clp import CLP
from evenhand.output_distances import OutputDistance, mean_squared_logits
from evenhand.variations import Variations


@parameters()
class CLPMethod(NeuralEstimator):
    """Parameters and objective of CLP, for classes and for numbers."""

    variations: Variations | Callable[[Any], Variations] | None = field(default=None, kw_only=False)
    rho: float = 5.0
    output_distance: OutputDistance = mean_squared_logits
    warm_up: float = 0.0
    steps: int = 2000
    lr: float = 1e-3

    def fit(self, X: Any, y: Any, sample_weight: Any = None, variations: Any = None) -> Self:
        """Train on X, labels of any kind, and the versions of the rows of X: ``Variations``, or an array (n, m, d) with
        the m versions of every row. A cross-validation splits the array with X; ``Variations`` it cannot split."""
        self._given = variations
        try:
            fitted: Self = super().fit(X, y, sample_weight)
            return fitted
        finally:
            self.__dict__.pop("_given"), self.__dict__.pop("_training_variations", None)

    def _learn_more(self, source: Any) -> None:
        given: Any = self._given if self._given is not None else self.variations
        by_rule = callable(given) and not isinstance(given, Variations)
        variations = given(source.X) if by_rule else given
        if variations is None:
            raise ValueError(
                "CLP needs versions of the rows of X: fit(X, y, variations=TokenSwap(tokens)(texts).map(embed))"
            )
        if not isinstance(variations, Variations):
            variations = Variations(np.asarray(variations), rows=np.arange(len(variations)))
        n = len(source.x) if by_rule else len(source.kept)
        if len(variations) and variations.rows.max() >= n:
            raise ValueError(
                f"variations speak of row {variations.rows.max()} but X has {n} rows; "
                "use variations.select(rows) for a part of the data; for a cross-validation, which splits X, give an "
                "array (n, m, d) with the m versions of every row, which it splits too"
            )
        self._training_variations = variations if by_rule else variations.select(source.kept)

    def _objective(self, search_generator: torch.Generator) -> Objective:
        values = self._training_variations.values
        if values.ndim == 3 and values.shape[2] != self.n_features_in_:
            raise ValueError(
                f"variations have {values.shape[2]} features but X has {self.n_features_in_}; encode both alike"
            )
        return CLP(self._training_variations, self.rho, self._loss, self.output_distance, search_generator)

    def _align(self, objective: Objective, rows: Tensor) -> None:
        assert isinstance(objective, CLP)
        place = objective.place  # the last place is for all rows beyond
        objective.place = torch.cat([place[rows.clamp(max=len(place) - 1)], place[-1:]])


@parameters()
class CLPClassifier(CLPMethod, NeuralClassifier):
    """Counterfactual logit pairing: loss + rho * d_Y(h(x), h(a random other version of x)) (Garg et al. 2019).

    variations: the versions of the rows of X as feature vectors, or a function of X that makes them (called anew in
        every fold of a cross-validation); ``fit(X, y, variations=...)`` goes before it. Rows without versions only
        have the loss. The other parameters are those of ``SenSeIClassifier``; the loss on held-out data
        (``validation_fraction``) is without the pairing.
    """


@parameters()
class CLPRegressor(CLPMethod, NeuralRegressor):
    """CLP for numbers: squared error + rho * the squared difference between versions; otherwise ``CLPClassifier``."""
