"""The network of a `TextClassifier` whose texts have several versions: SenSeI, the worst case being one of them."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import torch
from numpy.typing import NDArray

from evenhand.estimators.base import NeuralClassifier, parameters
from evenhand.objectives.batch import Objective
from evenhand.objectives.versions import WorstVersion

__all__ = ["WorstVersionClassifier"]


@parameters()
class WorstVersionClassifier(NeuralClassifier):
    """Loss + rho * E[max over versions of d_Y] (`objectives.versions.WorstVersion`).

    kinds: the versions as vectors, each (g, m, d). drawn: of how many of each kind a step looks at versions.
    """

    kinds: tuple[NDArray[Any], ...] = field(default=(), kw_only=False)
    rho: float = 2.0
    drawn: int = 64

    def _objective(self, search_generator: torch.Generator) -> Objective:
        return WorstVersion(self.kinds, self.rho, self._loss, generator=search_generator, drawn=self.drawn)

    def __getstate__(self) -> dict[str, Any]:
        """Without the versions: they are only needed to fit, and are data."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, "kinds": ()}
