"""Adversarial debiasing."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from evenhand.estimators.base import ModuleFactory, NeuralClassifier
from evenhand.estimators.sensitive import Sensitive, group_numbers
from evenhand.objectives.adversarial import Adversarial
from evenhand.objectives.batch import Objective


class AdversarialClassifier(NeuralClassifier):
    """Training whose steps do not help an adversary to guess sensitive attributes from the output (Zhang et al. 2018).

    A method of group fairness. sensitive: names of columns of X, or a function of X that gives the attributes;
    ``fit(X, y, sensitive=...)`` takes the attributes themselves and goes before it. Several attributes, each with two
    groups or more. weight is the adversary's share of a step; given_label asks for equalised odds, otherwise for
    demographic parity. Held-out data (``validation_fraction``) is evaluated by the loss alone.
    """

    def __init__(
        self,
        sensitive: Sensitive = None,
        hidden: tuple[int, ...] = (100,),
        weight: float = 0.001,
        random_state: Any = None,
        *,
        given_label: bool = True,
        adversary_lr: float = 1e-3,
        module: nn.Module | ModuleFactory | None = None,
        warm_up: float = 0.0,
        steps: int = 2000,
        batch_size: int = 500,
        lr: float = 1e-3,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        device: str = "cpu",
        progress: bool = False,
    ) -> None:
        self.sensitive = sensitive
        self.hidden = hidden
        self.weight = weight
        self.random_state = random_state
        self.given_label = given_label
        self.adversary_lr = adversary_lr
        self.module = module
        self.warm_up = warm_up
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive: Any = None) -> Self:
        """Train on X, labels of any kind, and the sensitive attributes of the rows of X."""
        sensitive = self.sensitive if sensitive is None else sensitive
        if sensitive is None:
            raise ValueError(
                "name the sensitive attributes: AdversarialClassifier(['sex']) or fit(X, y, sensitive=...)"
            )
        codes, self.groups_ = group_numbers(sensitive, X, len(np.asarray(y)))
        kept = slice(None) if sample_weight is None else np.asarray(sample_weight) > 0
        self._codes = codes[kept]
        try:
            return super().fit(X, y, sample_weight)
        finally:
            del self._codes

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
