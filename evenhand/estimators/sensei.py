"""SenSeI, the method of the paper, for classes and for numbers."""

from __future__ import annotations

from evenhand.estimators.base import NeuralClassifier, NeuralRegressor, parameters
from evenhand.estimators.fair import SenSeIMethod
from evenhand.output_distances import OutputDistance, squared_error


@parameters()
class SenSeIClassifier(SenSeIMethod, NeuralClassifier):
    """A classifier that treats similar people similarly: loss + rho * R(h).

    fair_metric: who is similar. rho weighs fairness against accuracy; eps is the mean fair distance within which people
    count as similar. bounds: the set of possible people, by default drawn from the training data: each column within
    its range, columns of zeros and ones at these two values, and the learned sensitive directions over the whole range
    that their coordinate takes, even where single columns would end. The remaining parameters are explained where they
    are said: ``SenSeIMethod``, ``Searching``, ``WithMetric`` and ``NeuralEstimator``.
    Fitted: ``module_`` (gives logits), ``classes_``, ``fair_metric_``, ``bounds_`` (a ``Box``), ``lam_``,
    ``history_``, and ``multipliers_`` after certified fine-tuning.
    """


@parameters()
class SenSeIRegressor(SenSeIMethod, NeuralRegressor):
    """A regressor that treats similar people similarly: squared error + rho * R(h).

    One number for each person, or several, y (n, K), whose squared errors and differences are summed. Targets are
    standardised for training, so that rho means the same whatever their unit; ``module_`` gives predictions in the
    original units, (n, 1) or (n, K). Parameters as for ``SenSeIClassifier``.
    """

    rho: float = 5.0
    output_distance: OutputDistance = squared_error
