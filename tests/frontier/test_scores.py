import numpy as np
import pytest
import torch
from torch import nn

from evenhand import ERMClassifier, FairMetric, SenSeIClassifier, SenSeIRegressor
from evenhand.datasets import synthetic
from evenhand.frontier import SearchedUnfairness, accuracy
from evenhand.output_distances import mean_squared_logits

FIRST_FREE = FairMetric([[1.0], [0.0]])


def linear(w):
    model = nn.Linear(2, 2)
    with torch.no_grad():
        model.weight.copy_(torch.tensor(w))
    return model


def test_a_model_that_ignores_the_free_direction_has_none_at_eps_0():
    model = linear([[0.0, 1.0], [0.0, -1.0]])
    x = torch.rand(50, 2, generator=torch.Generator().manual_seed(0))
    value = SearchedUnfairness(eps=0.0).value(model, x, FIRST_FREE, (0.0, 1.0), mean_squared_logits)
    assert value == 0


def test_closed_form_along_the_free_direction():
    """h = (w x_1, -w x_1) in the box [0, 1]: the worst x_1 is the farther end."""
    model, x = linear([[2.0, 0.0], [-2.0, 0.0]]), torch.rand(50, 2)
    value = SearchedUnfairness(eps=0.0).value(model, x, FIRST_FREE, (0.0, 1.0), mean_squared_logits)
    farther = torch.maximum(x[:, 0], 1 - x[:, 0])
    exact = (4 * farther**2).mean().item()
    assert 0.9 * exact < value <= exact * 1.0001


def test_closed_form_that_pays():
    """h = (w x_2, -w x_2), Euclidean: sup E[w^2 d^2] with E[d^2] <= eps is w^2 eps."""
    model, x = linear([[0.0, 3.0], [0.0, -3.0]]), torch.zeros(64, 2)
    value = SearchedUnfairness(eps=0.04).value(model, x, FairMetric.euclidean(2), (-9.0, 9.0), mean_squared_logits)
    assert 0.9 * 9 * 0.04 < value <= 9 * 0.04 * 1.0001


def test_grows_with_eps_and_shrinks_with_rho():
    X, y = synthetic(400)
    settings = {"fair_metric": FIRST_FREE, "steps": 150, "batch_size": 100, "lr": 0.01, "random_state": 0}
    plain, fair = (SenSeIClassifier(rho=rho, eps=0.01, **settings).fit(X, y) for rho in (0, 5))
    values = [SearchedUnfairness(eps, rows=100)(plain, X, y) for eps in (0.0, 0.01, 0.1)]
    assert values == sorted(values)
    assert SearchedUnfairness(0.01, rows=100)(fair, X, y) < values[1] / 5
    assert accuracy(plain, X, y) > accuracy(fair, X, y) > 0.6


def test_regressors_and_estimators_without_a_metric():
    X, y = synthetic(200)
    model = SenSeIRegressor(FIRST_FREE, rho=0, steps=100, lr=0.01, random_state=0).fit(X, X[:, 0])
    assert accuracy(model, X, X[:, 0]) > 0.5
    assert SearchedUnfairness(0.0)(model, X, y) > 0.5
    other = ERMClassifier(steps=5).fit(X, y)
    assert SearchedUnfairness(0.0, FIRST_FREE)(other, X, y) > 0
    del other.fair_metric_
    with pytest.raises(ValueError, match="has no fair_metric_"):
        SearchedUnfairness(0.0)(other, np.asarray(X), y)


def test_one_domain_for_every_model():
    """The same weights in an estimator with a metric of its own and in one without: the same number."""
    X, y = synthetic(200)
    metric = FairMetric([[0.8], [0.6]])
    fair = SenSeIClassifier(metric, rho=0.0, steps=20, random_state=0).fit(X, y)
    plain = ERMClassifier(steps=20, random_state=0).fit(X, y)
    plain.module_.load_state_dict(fair.module_.state_dict())
    score = SearchedUnfairness(0.05, metric, rows=100)
    assert score(plain, X, y) == score(fair, X, y) > 0
