"""scikit-learn models as modules: softmax of their outputs is predict_proba, or the outputs are the predictions."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from evenhand.bounds.fitted import fitted_module

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
SCORE = X @ np.array([1.0, -2.0, 0.5])
PERCEPTRON = {"hidden_layer_sizes": (5, 4), "max_iter": 2000, "tol": 1e-2, "random_state": 0}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        *(MLPClassifier(**PERCEPTRON, activation=a) for a in ("relu", "tanh", "logistic", "identity")),
    ],
    ids=["logistic", "relu", "tanh", "sigmoid", "identity"],
)
def test_classifiers(model, classes):
    y = np.digitize(SCORE, [0.0] if classes == 2 else [-1.0, 1.0])
    model.fit(X, y)
    with torch.no_grad():
        p = fitted_module(model)(torch.from_numpy(X)).softmax(1).numpy()
    np.testing.assert_allclose(p, model.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), MLPRegressor(**PERCEPTRON)], ids=lambda m: str(m)[:5])
def test_regressors(model):
    model.fit(X, SCORE)
    with torch.no_grad():
        np.testing.assert_allclose(fitted_module(model)(torch.from_numpy(X))[:, 0].numpy(), model.predict(X))


def test_anything_else_is_none():
    labels = np.stack([SCORE > 0, SCORE > 1], 1)
    several = MLPClassifier(hidden_layer_sizes=(3,), max_iter=2000, tol=1e-2).fit(X, labels)
    assert fitted_module(several) is None
    assert fitted_module(RandomForestClassifier(n_estimators=2).fit(X, SCORE > 0)) is None
    assert fitted_module(LogisticRegression()) is None
    assert fitted_module(len) is None
