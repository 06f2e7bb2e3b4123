import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import demographic_parity_difference
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from evenhand.estimators import AdversarialClassifier, ERMClassifier

SETTINGS = {"hidden": (16,), "steps": 300, "batch_size": 200, "lr": 0.01, "random_state": 0}


def biased(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    merit = rng.normal(size=n)
    y = np.where(merit + 1.5 * (group - 0.5) + 0.3 * rng.normal(size=n) > 0, "yes", "no")
    return pd.DataFrame({"merit": merit, "group": group.astype(float), "noise": rng.normal(size=n)}), y


def make(**options):
    return AdversarialClassifier(**{**SETTINGS, "given_label": False, "weight": 1.0, "adversary_lr": 0.02, **options})


def parity(model, X, y):
    return demographic_parity_difference(y == "yes", model.predict(X) == "yes", sensitive_features=X["group"])


def test_narrows_the_gap_that_fairlearn_measures():
    X, y = biased()
    held_out, y_held_out = biased(seed=1)
    plain = ERMClassifier(**SETTINGS).fit(X, y)
    fair = make(sensitive=["group"]).fit(X, y)
    assert parity(plain, held_out, y_held_out) > 0.35
    assert parity(fair, held_out, y_held_out) < 0.15
    assert fair.score(held_out, y_held_out) > 0.65
    assert {"loss", "adversary"} <= set(fair.history_)


def test_sensitive_by_name_by_function_or_by_value_is_the_same():
    X, y = biased(300)
    by_name = make(sensitive=["group"], steps=30).fit(X, y).predict_proba(X)
    by_function = make(sensitive=lambda X: X["group"], steps=30).fit(X, y).predict_proba(X)
    by_value = make(steps=30).fit(X, y, sensitive_features=X["group"].to_numpy()).predict_proba(X)
    np.testing.assert_array_equal(by_name, by_function)
    np.testing.assert_array_equal(by_name, by_value)


def test_order_of_rows_and_rows_of_weight_zero_do_not_matter():
    """The attribute follows its row wherever the training puts it."""
    X, y = biased(300)
    group = X["group"].to_numpy()
    plain = make(steps=30).fit(X, y, sensitive_features=group).predict_proba(X)
    order = np.random.default_rng(0).permutation(300)
    turned = make(steps=30).fit(X.iloc[order], y[order], sensitive_features=group[order]).predict_proba(X)
    np.testing.assert_array_equal(plain, turned)
    double, weight = pd.concat([X, X], ignore_index=True), np.r_[np.ones(300), np.zeros(300)]
    weighted = (
        make(steps=30).fit(double, np.r_[y, y], weight, sensitive_features=np.r_[group, 1 - group]).predict_proba(X)
    )
    held = make(steps=30).fit(X, y, np.ones(300), sensitive_features=group).predict_proba(X)
    np.testing.assert_allclose(weighted, held, atol=1e-6)


def test_cross_validation_and_early_stopping():
    X, y = biased(400)
    model = make(sensitive=["group"], steps=40, validation_fraction=0.2, patience=3)
    assert cross_val_score(clone(model), X, y, cv=2).min() > 0.5


def test_several_classes_and_attributes():
    X, _ = biased(300)
    y = np.digitize(X["merit"], [-0.5, 0.5])
    region = np.arange(300) % 3
    model = make(steps=200).fit(X, y, sensitive_features=pd.DataFrame({"group": X["group"], "region": region}))
    assert model.predict_proba(X).shape == (300, 3)
    assert [len(g) for g in model.groups_] == [2, 3]
    assert model.score(X, y) > 0.6


def test_without_attributes():
    X, y = biased(50)
    with pytest.raises(ValueError, match="name the sensitive attributes"):
        AdversarialClassifier().fit(X, y)
