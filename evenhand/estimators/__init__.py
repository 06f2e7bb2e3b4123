"""scikit-learn estimators: fit, predict, and the fitted ``module_`` that gives the logits."""

from evenhand.estimators.adversarial import AdversarialClassifier
from evenhand.estimators.clp import CLPClassifier, CLPRegressor
from evenhand.estimators.cocl import CoCLClassifier
from evenhand.estimators.erm import ERMClassifier
from evenhand.estimators.metrics import ClassifierMetric, ColumnsMetric
from evenhand.estimators.project import ProjectClassifier
from evenhand.estimators.sensei import SenSeIClassifier, SenSeIRegressor
from evenhand.estimators.sensr import SenSRClassifier, SenSRRegressor

__all__ = [
    "AdversarialClassifier",
    "CLPClassifier",
    "CLPRegressor",
    "ClassifierMetric",
    "CoCLClassifier",
    "ColumnsMetric",
    "ERMClassifier",
    "ProjectClassifier",
    "SenSRClassifier",
    "SenSRRegressor",
    "SenSeIClassifier",
    "SenSeIRegressor",
]
