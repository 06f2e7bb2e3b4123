"""scikit-learn estimators: fit, predict, and the fitted ``module_`` that gives the logits.

Each is imported at its first use: scikit-learn alone takes most of the time that torch takes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.estimators.adversarial import AdversarialClassifier
    from evenhand.estimators.boosting import SenSeIBoostingClassifier, SenSeIBoostingRegressor
    from evenhand.estimators.budro import BuDROClassifier
    from evenhand.estimators.clp import CLPClassifier, CLPRegressor
    from evenhand.estimators.cocl import CoCLClassifier
    from evenhand.estimators.erm import ERMClassifier
    from evenhand.estimators.metrics import ClassifierMetric, ColumnsMetric
    from evenhand.estimators.project import ProjectClassifier
    from evenhand.estimators.sensei import SenSeIClassifier, SenSeIRegressor
    from evenhand.estimators.sensr import SenSRClassifier, SenSRRegressor

__all__ = [
    "AdversarialClassifier",
    "BuDROClassifier",
    "CLPClassifier",
    "CLPRegressor",
    "ClassifierMetric",
    "CoCLClassifier",
    "ColumnsMetric",
    "ERMClassifier",
    "ProjectClassifier",
    "SenSRClassifier",
    "SenSRRegressor",
    "SenSeIBoostingClassifier",
    "SenSeIBoostingRegressor",
    "SenSeIClassifier",
    "SenSeIRegressor",
]
_HOMES = {
    "adversarial": ("AdversarialClassifier",),
    "boosting": ("SenSeIBoostingClassifier", "SenSeIBoostingRegressor"),
    "budro": ("BuDROClassifier",),
    "clp": ("CLPClassifier", "CLPRegressor"),
    "cocl": ("CoCLClassifier",),
    "erm": ("ERMClassifier",),
    "metrics": ("ClassifierMetric", "ColumnsMetric"),
    "project": ("ProjectClassifier",),
    "sensei": ("SenSeIClassifier", "SenSeIRegressor"),
    "sensr": ("SenSRClassifier", "SenSRRegressor"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
