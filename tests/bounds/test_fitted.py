"""scikit-learn models as modules: softmax of their outputs is predict_proba, or the outputs are the predictions."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    MultiTaskLasso,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC, LinearSVC

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


@pytest.mark.parametrize("model", [HuberRegressor(), MultiTaskLasso(0.01)], ids=["huber", "several targets"])
def test_whatever_has_coefficients_and_answers_by_them(model):
    y = np.stack([SCORE, -SCORE], 1) if isinstance(model, MultiTaskLasso) else SCORE
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model.fit(frame, y)
    with torch.no_grad():
        outputs = fitted_module(model)(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(outputs.reshape(y.shape), model.predict(frame))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [RidgeClassifier(), LinearSVC(), SGDClassifier(), LinearDiscriminantAnalysis()],
    ids=lambda model: type(model).__name__,
)
def test_linear_classifiers_decide_as_they_did(model, classes):
    y = np.digitize(SCORE, [0.0] if classes == 2 else [-1.0, 1.0])
    model.fit(X, y)
    with torch.no_grad():
        h = fitted_module(model)(torch.from_numpy(X)).numpy()
    assert h.shape == (60, classes)
    assert np.array_equal(h.argmax(1), model.predict(X))
    score = h[:, 1] - h[:, 0] if classes == 2 else h
    np.testing.assert_allclose(score, model.decision_function(X), atol=1e-12)


def test_coefficients_that_the_answers_do_not_follow_are_no_model():
    assert fitted_module(PoissonRegressor().fit(X, np.exp(SCORE / 5))) is None  # a logarithm lies between
    three = np.digitize(SCORE, [-1.0, 1.0])
    assert fitted_module(SVC(kernel="linear").fit(X, three)) is None  # one against one
    assert fitted_module(SVC(kernel="linear").fit(X, SCORE > 0)) is not None


def test_anything_else_is_none():
    labels = np.stack([SCORE > 0, SCORE > 1], 1)
    several = MLPClassifier(hidden_layer_sizes=(3,), max_iter=2000, tol=1e-2).fit(X, labels)
    assert fitted_module(several) is None
    assert fitted_module(RandomForestClassifier(n_estimators=2).fit(X, SCORE > 0)) is None
    assert fitted_module(LogisticRegression()) is None
    assert fitted_module(len) is None
