"""Scores against scikit-learn and scipy, intervals against repetition."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn import metrics

from evenhand.workflow import measures

RNG = np.random.default_rng(0)
N = 600
Y = RNG.integers(0, 2, N)
P1 = np.clip(0.5 + 0.25 * (2 * Y - 1) + 0.2 * RNG.normal(size=N), 0.01, 0.99)
P = np.stack([1 - P1, P1], 1)
CODES = (P1 >= 0.6).astype(int)


def test_scores_are_those_of_scikit_learn():
    found = measures.of_classes(Y, CODES, P, 1)
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(Y, CODES))
    assert found["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(Y, CODES))
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(Y, P1))
    assert found["log_loss"] == pytest.approx(metrics.log_loss(Y, P))
    assert found["brier"] == pytest.approx(2 * metrics.brier_score_loss(Y, P1))
    matrix = metrics.confusion_matrix(Y, CODES)
    assert found["false_positives"]["rate"] == pytest.approx(matrix[0, 1] / matrix[0].sum())
    assert found["false_negatives"]["rate"] == pytest.approx(matrix[1, 0] / matrix[1].sum())
    for name, (low, high) in found["intervals"].items():
        assert low < found[name] < high


def test_three_classes():
    y = RNG.integers(0, 3, N)
    p = RNG.dirichlet(np.ones(3), N)
    found = measures.of_classes(y, p.argmax(1), p, 2)
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, p, multi_class="ovr"))


def test_quantities():
    y = RNG.normal(size=N)
    predicted = y + RNG.normal(size=N)
    found = measures.of_quantities(y, predicted)
    assert found["r2"] == pytest.approx(metrics.r2_score(y, predicted))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(y, predicted))
    better = measures.difference(y, y, predicted, regression=True)
    assert better["difference"] == pytest.approx(1 - found["r2"])


def test_intervals_cover():
    """Of AUC, balanced accuracy and their pairs: 95 % intervals hold the truth in about 95 % of 300 samples."""
    rng = np.random.default_rng(1)
    hits = {"auc": 0, "balanced": 0, "pairs": 0}
    for _ in range(300):
        y = rng.integers(0, 2, 200)
        s, other = y + rng.normal(size=200), y + rng.normal(size=200)
        value, error = measures.auc_of(y == 1, s)
        hits["auc"] += abs(value - 0.7602) < measures.Z * error  # Phi(1 / sqrt 2)
        low, high = measures.balanced(y, ((s > 0.5) == y).astype(float))[1]
        hits["balanced"] += low < 0.6915 < high  # Phi(1 / 2)
        low, high = measures.difference(y, (s > 0.5).astype(int), (other > 0.5).astype(int), False)["interval"]
        hits["pairs"] += low < 0 < high
    assert all(0.91 < count / 300 < 0.985 for count in hits.values()), hits


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (123, 1000)])
def test_wilson_is_scipys(k, n):
    expected = binomtest(k, n).proportion_ci(method="wilson")
    assert measures.wilson(k, n) == pytest.approx([expected.low, expected.high], abs=1e-6)


def test_calibration():
    rng = np.random.default_rng(2)
    p = rng.random(20000)
    honest, shifted = rng.random(20000) < p, rng.random(20000) < np.clip(p - 0.3, 0, 1)
    assert measures.calibration_error(honest, p) < 0.02
    assert measures.calibration_error(shifted, p) > 0.2
    assert sum(row["n"] for row in measures.calibration_table(honest, p)) == 20000


def test_thresholds():
    group = {"sex": np.where(RNG.random(N) < 0.5, "f", "m")}
    rows = {row["threshold"]: row for row in measures.thresholds(Y, P1, group)}
    row = rows[0.6]
    assert row["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(Y, CODES))
    assert row["by_group"]["sex"]["f"] == pytest.approx(CODES[group["sex"] == "f"].mean())
    selected = [rows[t]["selected"] for t in sorted(rows)]
    assert selected == sorted(selected, reverse=True)
