"""Baseline."""

from __future__ import annotations

import torch

from evenhand.estimators.base import NeuralClassifier, parameters
from evenhand.objectives.batch import Objective
from evenhand.objectives.erm import ERM


@parameters()
class ERMClassifier(NeuralClassifier):
    """Plain training of the same network on the same class-balanced batches: the point of comparison."""

    def _objective(self, search_generator: torch.Generator) -> Objective:
        return ERM(self._loss)
