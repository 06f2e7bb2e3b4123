"""Plain training is logistic regression when there is no hidden layer."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from evenhand import ERMClassifier


def test_without_hidden_layer_it_is_class_balanced_logistic_regression():
    X, y = make_classification(600, 4, weights=[0.8], flip_y=0.2, random_state=0)
    model = ERMClassifier(hidden=(), steps=2500, batch_size=1200, lr=0.03, random_state=0).fit(X, y)
    exact = LogisticRegression(C=1e9, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=0.12)
