"""scikit-learn's own checks of every estimator, with no expected failure."""

import warnings

import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from evenhand import ERMClassifier, ProjectClassifier, SenSeIClassifier, SenSeIRegressor, SenSRClassifier

SMALL = {"hidden": (20,), "steps": 40, "batch_size": 32, "lr": 0.03, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose

with warnings.catch_warnings():
    warnings.simplefilter("ignore", SkipTestWarning)
    checks = parametrize_with_checks(
        [
            ERMClassifier(**SMALL),
            ProjectClassifier(**SMALL),
            SenSRClassifier(**SMALL),
            SenSeIClassifier(**SMALL),
            SenSeIRegressor(**SMALL),
        ]
    )


@checks
def test_scikit_learn_check(estimator, check):
    check(estimator)
