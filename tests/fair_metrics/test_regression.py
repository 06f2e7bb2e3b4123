"""At the minimum the mean loss has the slope -l2 w, in any units."""

import numpy as np
import pytest

from evenhand.fair_metrics import from_classifier
from evenhand.fair_metrics.regression import regression


def test_many_unknowns_are_fitted_without_their_hessian():
    assert regression(1.0, np.array([0, 1]), (1000, 40)).solver == "newton-cholesky"
    assert regression(1.0, np.array([0, 1]), (1000, 4000)).solver == "lbfgs"
    assert regression(1.0, np.arange(100), (1000, 40)).solver == "lbfgs"


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("units", [(1.0, 1e8, 1.0), (1e-8, 1.0, 1e6)])
def test_units_that_differ_much_are_no_matter(units, groups):
    """At the minimum the slope of the mean loss is -l2 w; and nothing is warned of, which would be an error here."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, groups, 600)
    X = (rng.normal(size=(600, 3)) + group[:, None] * [1.0, 0.0, 0.5]) * units
    for l2 in (0.15, 1e-5):
        (found,) = from_classifier(X, predict={"group": group}, l2=l2).attribute_models
        p = found.estimator.predict_proba(X)[:, -found.directions.shape[1] :]
        wanted = np.eye(groups)[group][:, -found.directions.shape[1] :]
        slope = X.T @ (p - wanted) / len(X) + l2 * found.directions
        np.testing.assert_allclose(slope / np.array(units)[:, None], 0, atol=1e-6)


@pytest.mark.parametrize("units", [(1.0, 1e8, 1.0), (1e-8, 1.0, 1e6)])
def test_units_that_differ_much_are_no_matter_to_a_number(units):
    """Warned of by scikit-learn, which would be an error here."""
    rng = np.random.default_rng(0)
    age = 20 + 50 * rng.random(600)
    X = (rng.normal(size=(600, 3)) + age[:, None] * [0.1, 0.0, 0.05]) * units
    weight = rng.integers(1, 3, 600).astype(float)
    (found,) = from_classifier(X, predict={"age": age}, l2=0.1, sample_weight=weight).attribute_models
    error = found.estimator.predict(X) - age
    slope = X.T @ (weight * error) + 0.1 * weight.sum() * found.directions[:, 0]
    np.testing.assert_allclose(slope / np.array(units) / weight.sum(), 0, atol=1e-6)
    assert weight @ error / weight.sum() == pytest.approx(0, abs=1e-9)
