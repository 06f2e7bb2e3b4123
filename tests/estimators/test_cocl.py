import numpy as np
import pandas as pd
import pytest

from evenhand.estimators import CoCLClassifier
from evenhand.evaluation import tpr_gaps

SETTINGS = {"hidden": (16,), "steps": 300, "batch_size": 200, "lr": 0.01, "random_state": 0}


def biased(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    merit = rng.normal(size=n)
    y = (merit + 1.5 * (group - 0.5) + 0.3 * rng.normal(size=n) > 0).astype(int)
    return pd.DataFrame({"merit": merit, "group": group.astype(float)}), y


def test_narrows_the_gap_in_true_positive_rates():
    X, y = biased()
    held_out, y_held_out = biased(seed=1)
    gaps = [
        tpr_gaps(y_held_out, model.predict(held_out), held_out["group"]).rms
        for model in (CoCLClassifier(["group"], rho=rho, **SETTINGS).fit(X, y) for rho in (0.0, 5.0))
    ]
    assert gaps[0] > 0.1
    assert gaps[1] < gaps[0] / 2


def test_a_matrix_stands_for_the_indicators_and_follows_its_rows():
    X, y = biased(300)
    settings = {**SETTINGS, "steps": 30}
    by_name = CoCLClassifier(["group"], **settings).fit(X, y).predict_proba(X)
    indicators = np.eye(2)[X["group"].astype(int)]
    by_matrix = CoCLClassifier(**settings).fit(X, y, embedding=indicators).predict_proba(X)
    np.testing.assert_array_equal(by_name, by_matrix)
    order = np.random.default_rng(0).permutation(300)
    turned = CoCLClassifier(**settings).fit(X.iloc[order], y[order], embedding=indicators[order]).predict_proba(X)
    np.testing.assert_array_equal(by_name, turned)


def test_bad_input():
    X, y = biased(50)
    with pytest.raises(ValueError, match="name the sensitive attributes"):
        CoCLClassifier().fit(X, y)
    with pytest.raises(ValueError, match="3 rows but y has 50"):
        CoCLClassifier().fit(X, y, embedding=np.zeros((3, 2)))
