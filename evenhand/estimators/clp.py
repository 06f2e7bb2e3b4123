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

CROSS_VALIDATED = (
    "for a cross-validation, which splits X, give an array (n, m, d) with the m versions of every row, which it splits "
    "too, or a function of X"
)

FEW_VALUES = 5  # of a column, with which it may look scaled by chance
EXACT = 1e-4  # of a column's spread


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
            variations = Variations(variations, rows=np.arange(len(variations)))
        n = len(source.x) if by_rule else len(source.kept)
        if len(variations) and variations.rows.max() >= n:
            raise ValueError(
                f"variations speak of row {variations.rows.max()} but X has {n} rows; "
                f"use variations.select(rows) for a part of the data; {CROSS_VALIDATED}"
            )
        self._training_variations = variations if by_rule else variations.select(source.kept)
        _check_belong(self._training_variations, source.x.cpu().numpy())

    def _objective(self, search_generator: torch.Generator) -> Objective:
        values = self._training_variations.values
        if values.ndim == 3 and values.shape[2] != self.n_features_in_:
            raise ValueError(
                f"variations have {values.shape[2]} features but X has {self.n_features_in_}; encode both alike"
            )
        if values.dtype.kind == "f":  # as X is: not every device has float64
            self._training_variations = Variations(values.astype(np.float32), self._training_variations.rows)
        return CLP(self._training_variations, self.rho, self._loss, self.output_distance, search_generator)

    def _align(self, objective: Objective, rows: Tensor) -> None:
        assert isinstance(objective, CLP)
        place = objective.place  # the last place is for all rows beyond
        objective.place = torch.cat([place[rows.clamp(max=len(place) - 1)], place[-1:]])


def _check_belong(variations: Variations, x: np.ndarray) -> None:
    """No row has the versions of another one, as where row numbers of all the data meet a part of them.

    A row is one of its versions, or close to them (a passage of a text for the text). Where rows are neither, and not
    even nearer to their own versions than to those of others, the versions are somebody else's.
    """
    given = variations.values
    if given.ndim != 3 or given.shape[2] != x.shape[1] or given.dtype.kind not in "fiu":
        return  # said elsewhere
    values, own = given.astype(x.dtype), x[variations.rows]
    rounding = 1e-5 * np.abs(x).max(0, initial=0.0)  # encoders give a row other last digits in another batch
    doubtful = np.flatnonzero(~(np.abs(values - own[:, None]) <= rounding).all(2).any(1))
    if len(doubtful) == 0:
        return
    originals = given[doubtful, 0].astype(np.float64)
    scaled = _in_another_unit(own[doubtful].astype(np.float64), originals) if np.isfinite(originals).all() else 0
    if scaled:
        raise ValueError(
            f"variations are not scaled as X is, in {scaled} of {x.shape[1]} columns: transform both alike, "
            "variations.map(scaler.transform), or scale before the versions are made"
        )
    rows = {row.tobytes() for row in x}
    found = sum(any(version.tobytes() in rows for version in values[i]) for i in doubtful)
    near, far = (_nearest(own[doubtful], values[np.roll(doubtful, shift)]) for shift in (0, 1))
    if found or (len(doubtful) > 1 and np.mean(near < far) < 0.75):
        raise ValueError(
            f"{found or len(doubtful)} of the {len(variations)} rows with versions have those of another row, or they "
            "are not scaled as X is: transform both alike; the row numbers of variations are those of the X that is "
            f"given here: use variations.select(rows) for a part of the data; {CROSS_VALIDATED}"
        )


def _in_another_unit(x: np.ndarray, originals: np.ndarray) -> int:
    """In how many columns the rows are their originals times a number other than one, plus a number: (g, d) each."""
    x, originals = x - x.mean(0), originals - originals.mean(0)
    squares = np.square(originals).sum(0)
    slope = (x * originals).sum(0) / np.where(squares > 0, squares, np.inf)
    exact = np.abs(x - slope * originals).max(0) < EXACT * x.std(0)
    scaled = np.flatnonzero(exact & (np.abs(slope - 1) > EXACT))
    return sum(len(np.unique(originals[:, j])) >= FEW_VALUES for j in scaled)  # a line goes through any two values


def _nearest(x: np.ndarray, versions: np.ndarray) -> np.ndarray:
    """The squared distance of each row to the nearest of some versions: (g, d), (g, m, d) -> (g,)."""
    return np.array([np.square(each - row).sum(1).min() for row, each in zip(x, versions)])


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
