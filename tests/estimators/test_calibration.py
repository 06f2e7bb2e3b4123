"""Probabilities that mean what they say; decisions at the threshold that is stated."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from evenhand.estimators import ERMClassifier
from evenhand.estimators.calibration import calibrate, decision_threshold, fit_softmax


def rare(n, seed):
    """One person in ten is positive."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-(1.5 * X[:, 0] - 3))), 2, 1)
    return X, y


@pytest.fixture
def fitted():
    return ERMClassifier(hidden=(8,), steps=150, random_state=0).fit(*rare(2000, 0))


def test_the_shift_of_balanced_training_is_undone(fitted):
    X, y = rare(4000, 1)
    X_new, y_new = rare(4000, 2)
    before = fitted.predict_proba(X_new)[:, 1].mean()
    calibrate(fitted, X, y)
    p, decided = fitted.predict_proba(X_new)[:, 1], fitted.predict(X_new)
    assert before > 0.3
    assert p.mean() == pytest.approx((y_new == 2).mean(), abs=0.015)
    t = decision_threshold(fitted)
    assert t == pytest.approx((y == 2).mean(), abs=0.001)  # each class counts equally from its share on
    assert ((p >= t) == (decided == 2)).all()


def test_a_shift_of_the_scores_costs_no_decision(fitted):
    """A network whose last bias is off (overfitted, or trained on other shares) decides as well as it can rank."""
    X, y = rare(4000, 1)
    X_new, y_new = rare(4000, 2)
    calibrate(fitted, X, y)
    right = balanced_accuracy_score(y_new, fitted.predict(X_new))
    with torch.no_grad():
        fitted.module_[-1].bias[1] -= 2.0
    off = balanced_accuracy_score(y_new, fitted.predict(X_new))
    calibrate(fitted, X, y)
    assert off < right - 0.05
    assert balanced_accuracy_score(y_new, fitted.predict(X_new)) == pytest.approx(right, abs=0.002)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_a_stated_threshold(fitted, threshold):
    X, y = rare(3000, 1)
    calibrate(fitted, X, y, threshold)
    p = fitted.predict_proba(X)[:, 1]
    assert decision_threshold(fitted) == pytest.approx(threshold)
    assert ((p >= threshold) == (fitted.predict(X) == 2)).all()
    assert p.mean() == pytest.approx((y == 2).mean(), abs=0.01)


def test_fitting_again_forgets_it(fitted):
    X, y = rare(500, 1)
    calibrate(fitted, X, y)
    assert not hasattr(fitted.fit(X, y), "offset_")


def test_the_fit_is_logistic_regression():
    rng = np.random.default_rng(0)
    m = rng.normal(size=5000)
    y = (rng.random(5000) < 1 / (1 + np.exp(-(2 * m - 1)))).astype(int)
    slope, offset = fit_softmax(np.stack([-m / 2, m / 2], 1), y)
    theirs = LogisticRegression(C=1e6).fit(m[:, None], y)
    assert slope == pytest.approx(theirs.coef_[0, 0], rel=0.01)
    assert offset[1] - offset[0] == pytest.approx(theirs.intercept_[0], abs=0.01)


def test_scores_without_a_mistake_stay_finite():
    h = np.stack([-np.linspace(-1, 1, 40), np.linspace(-1, 1, 40)], 1)
    slope, offset = fit_softmax(h, (h[:, 1] > 0).astype(int))
    assert 1 < slope < 50
    assert np.isfinite(offset).all()


def test_mistakes(fitted):
    X, y = rare(100, 1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibrate(fitted, X, y, 1.5)


@pytest.mark.parametrize("labels", [[3, 1], [1.5, 2], ["yes", "no"], []])
def test_labels_that_training_did_not_have_are_an_error(fitted, labels):
    X, _ = rare(2, 1)
    with pytest.raises(ValueError, match="labels that the estimator was trained with"):
        calibrate(fitted, X[: len(labels)], labels)
