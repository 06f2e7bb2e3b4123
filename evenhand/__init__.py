"""evenhand: train, audit and certify models that treat similar people similarly.

Public names in the order a user meets them. Optional dependencies are imported where they are used.
"""

from evenhand import counterfactuals, datasets, evaluation, fair_metrics, output_distances
from evenhand.audit import Audit, audit
from evenhand.bounds.domain import Box
from evenhand.certify import Certificate, certify, certify_individuals
from evenhand.estimators import (
    AdversarialClassifier,
    CLPClassifier,
    CoCLClassifier,
    ERMClassifier,
    ProjectClassifier,
    SenSeIClassifier,
    SenSeIRegressor,
    SenSRClassifier,
)
from evenhand.fair_metrics import FairMetric
from evenhand.regularizer import FairRegularizer, gradient_rule, ratio_rule
from evenhand.search import CandidateSearch, GradientSearch
from evenhand.train import train
from evenhand.variations import Variations

__version__ = "0.1.0"

__all__ = [
    "AdversarialClassifier",
    "Audit",
    "Box",
    "CLPClassifier",
    "CandidateSearch",
    "Certificate",
    "CoCLClassifier",
    "ERMClassifier",
    "FairMetric",
    "FairRegularizer",
    "GradientSearch",
    "ProjectClassifier",
    "SenSRClassifier",
    "SenSeIClassifier",
    "SenSeIRegressor",
    "Variations",
    "__version__",
    "audit",
    "certify",
    "certify_individuals",
    "counterfactuals",
    "datasets",
    "evaluation",
    "fair_metrics",
    "gradient_rule",
    "output_distances",
    "ratio_rule",
    "train",
]
