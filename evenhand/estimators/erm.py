"""Baseline."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from evenhand.estimators.base import ModuleFactory, NeuralClassifier
from evenhand.objectives.batch import Objective
from evenhand.objectives.erm import ERM


class ERMClassifier(NeuralClassifier):
    """Plain training of the same network on the same class-balanced batches: the point of comparison."""

    def __init__(
        self,
        hidden: tuple[int, ...] = (100,),
        random_state: Any = None,
        *,
        module: nn.Module | ModuleFactory | None = None,
        steps: int = 1000,
        batch_size: int = 500,
        lr: float = 2e-3,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        device: str = "cpu",
        progress: bool = False,
    ) -> None:
        self.hidden = hidden
        self.random_state = random_state
        self.module = module
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.progress = progress

    def _objective(self, search_generator: torch.Generator) -> Objective:
        return ERM()
