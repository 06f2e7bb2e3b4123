"""Adversarial debiasing."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Self

import torch
from torch import Tensor

from evenhand.estimators.base import NeuralClassifier, parameters
from evenhand.estimators.sensitive import Sensitive, known_groups
from evenhand.objectives.adversarial import Adversarial
from evenhand.objectives.batch import Objective


@parameters()
class AdversarialClassifier(NeuralClassifier):
    """Training whose steps do not help an adversary to guess sensitive attributes from the output (Zhang et al. 2018).

    A method of group fairness. sensitive: names of columns of X (positions, such as [0], where names get lost on the
    way, as in scikit-learn's bagging), or a function of X that gives the attributes;
    ``fit(X, y, sensitive_features=...)`` takes the attributes themselves and goes before it. Several attributes, each
    with two groups or more. weight is the adversary's share of a step; given_label asks for equalised odds, otherwise
    for demographic parity. Held-out data (``validation_fraction``) is evaluated by the loss alone.
    """

    sensitive: Sensitive = field(default=None, kw_only=False)
    weight: float = 0.001
    given_label: bool = True
    adversary_lr: float = 1e-3
    warm_up: float = 0.0
    steps: int = 2000
    lr: float = 1e-3

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> Self:
        """Train on X, labels of any kind, and the sensitive attributes of the rows of X."""
        self._given = sensitive_features
        try:
            return super().fit(X, y, sample_weight)
        finally:
            self.__dict__.pop("_given"), self.__dict__.pop("_codes", None)

    def _learn_more(self, source: Any) -> None:
        codes, self.groups_ = known_groups(self._given, self.sensitive, source)
        if codes is None:
            raise ValueError(
                "name the sensitive attributes: AdversarialClassifier(['sex']) or fit(X, y, sensitive_features=...)"
            )
        self._codes = codes

    def _objective(self, search_generator: torch.Generator) -> Objective:
        return Adversarial(
            self._codes,
            len(self.classes_),
            self.weight,
            given_label=self.given_label,
            lr=self.adversary_lr,
            generator=torch.Generator().manual_seed(search_generator.initial_seed()),
        )

    def _align(self, objective: Objective, rows: Tensor) -> None:
        assert isinstance(objective, Adversarial)
        objective.sensitive = objective.sensitive[rows]
