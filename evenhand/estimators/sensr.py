"""SenSR."""

from __future__ import annotations

from evenhand.estimators.base import NeuralClassifier, NeuralRegressor, parameters
from evenhand.estimators.fair import SenSRMethod


@parameters()
class SenSRClassifier(SenSRMethod, NeuralClassifier):
    """Distributionally robust training: the loss on the worst case of each individual (Yurochkin et al. 2020).

    eps is its only trade-off parameter; the other parameters are those of ``SenSeIClassifier``.
    """


@parameters()
class SenSRRegressor(SenSRMethod, NeuralRegressor):
    """SenSR for numbers: the squared error on the worst case of each individual; parameters of ``SenSRClassifier``."""
