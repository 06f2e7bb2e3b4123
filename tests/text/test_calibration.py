import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.text.calibration import Calibration


def test_two_classes_are_platts_logistic_regression():
    rng = np.random.default_rng(0)
    margin = rng.normal(size=4000) * 3
    codes = (rng.random(4000) < 1 / (1 + np.exp(-(0.4 * margin - 0.5)))).astype(int)
    found = Calibration.learned(np.stack([-margin / 2, margin / 2], axis=1), codes)
    plain = LogisticRegression(C=1e8).fit(margin[:, None], codes)
    assert found.slope == pytest.approx(plain.coef_[0, 0], rel=0.02)
    assert found.shift == pytest.approx(plain.intercept_[0], rel=0.05)
    p = found.probabilities(np.stack([-margin / 2, margin / 2], axis=1))[:, 1]
    assert p.mean() == pytest.approx(codes.mean(), abs=0.002)


def test_a_temperature_for_several_classes():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(6000, 4)) * 2
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(4, p=row) for row in p])
    assert Calibration.learned(5 * logits, codes).slope == pytest.approx(0.2, rel=0.06)


def test_perfect_separation_stays_finite():
    found = Calibration.learned(np.array([[1.0, -1.0], [-1.0, 1.0]] * 10), np.array([0, 1] * 10, dtype=np.intp))
    assert 0 < found.slope < 50


@pytest.mark.parametrize(("n", "classes"), [(4, 3), (30, 3), (10, 28)])
def test_perfect_separation_of_several_classes_is_as_sure_as_the_texts_are_many(n, classes):
    """Platt's target of n texts is (n + 1) / (n + 2); with equal margins the best slope meets it."""
    codes = np.repeat(np.arange(classes), n)
    found = Calibration.learned(np.eye(classes)[codes] * 3.0, codes)
    assert found.slope == pytest.approx(np.log((n + 1) * (classes - 1)) / 3.0, rel=1e-3)
    p = found.probabilities(np.eye(classes) * 3.0)
    assert p.diagonal() == pytest.approx((n + 1) / (n + 2), abs=1e-3)
