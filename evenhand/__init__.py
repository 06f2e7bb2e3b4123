"""evenhand: train, audit and certify models that treat similar people similarly.

Public names in the order a user meets them, each loaded when it is first used: ``import evenhand`` alone is quick.
Optional dependencies are imported where they are used.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand import counterfactuals, datasets, evaluation, fair_metrics, output_distances
    from evenhand.audit import Audit, audit
    from evenhand.certify.certificate import Certificate
    from evenhand.certify.certify import certify, certify_individuals
    from evenhand.domain import Box
    from evenhand.estimators import (
        AdversarialClassifier,
        BuDROClassifier,
        CLPClassifier,
        CLPRegressor,
        CoCLClassifier,
        ERMClassifier,
        ProjectClassifier,
        SenSeIBoostingClassifier,
        SenSeIBoostingRegressor,
        SenSeIClassifier,
        SenSeIRegressor,
        SenSRClassifier,
        SenSRRegressor,
    )
    from evenhand.estimators.senstir import SenSTIRRanker
    from evenhand.fair_metrics import FairMetric
    from evenhand.frontier import Frontier, frontier
    from evenhand.postprocess import glif
    from evenhand.regularizer import FairRegularizer, gradient_rule, ratio_rule
    from evenhand.search import CandidateSearch, GradientSearch
    from evenhand.training.loop import train
    from evenhand.variations import Variations

__version__ = "0.1.0"

__all__ = [
    "AdversarialClassifier",
    "Audit",
    "Box",
    "BuDROClassifier",
    "CLPClassifier",
    "CLPRegressor",
    "CandidateSearch",
    "Certificate",
    "CoCLClassifier",
    "ERMClassifier",
    "FairMetric",
    "FairRegularizer",
    "Frontier",
    "GradientSearch",
    "ProjectClassifier",
    "SenSRClassifier",
    "SenSRRegressor",
    "SenSTIRRanker",
    "SenSeIBoostingClassifier",
    "SenSeIBoostingRegressor",
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
    "frontier",
    "glif",
    "gradient_rule",
    "output_distances",
    "ratio_rule",
    "train",
]

_FROM = {  # module: names that it gives
    "audit": ("Audit", "audit"),
    "domain": ("Box",),
    "certify.certify": ("certify", "certify_individuals"),
    "certify.certificate": ("Certificate",),
    "estimators": (
        "AdversarialClassifier",
        "CLPClassifier",
        "CLPRegressor",
        "CoCLClassifier",
        "ERMClassifier",
        "ProjectClassifier",
        "SenSRClassifier",
        "SenSRRegressor",
        "BuDROClassifier",
        "SenSeIBoostingClassifier",
        "SenSeIBoostingRegressor",
        "SenSeIClassifier",
        "SenSeIRegressor",
    ),
    "fair_metrics": ("FairMetric",),
    "frontier": ("Frontier", "frontier"),
    "postprocess": ("glif",),
    "estimators.senstir": ("SenSTIRRanker",),
    "regularizer": ("FairRegularizer", "gradient_rule", "ratio_rule"),
    "search": ("CandidateSearch", "GradientSearch"),
    "training.loop": ("train",),
    "variations": ("Variations",),
}
_HOME = {name: module for module, names in _FROM.items() for name in names}


class _Package(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name in _HOME:
            value = getattr(import_module(f"evenhand.{_HOME[name]}"), name)
            super().__setattr__(name, value)
            return value
        if name in __all__:
            return import_module(f"evenhand.{name}")
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Importing evenhand/training/loop.py must not put the module in the place of the function train, and so on."""
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
