"""The sweep's unfairness is the audit's."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from evenhand import ERMClassifier, FairMetric, SenSeIClassifier, SenSeIRegressor
from evenhand.audit import audit
from evenhand.datasets import synthetic
from evenhand.frontier import SearchedUnfairness, accuracy
from evenhand.output_distances import mean_squared_logits, squared_error

FIRST_FREE = FairMetric([[1.0], [0.0]])


class Fitted:
    """As little as a fitted classifier can be: two logits w.x and -w.x."""

    _estimator_type = "classifier"

    def __init__(self, w):
        self.module_ = nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            self.module_.weight.copy_(torch.tensor([w, [-w[0], -w[1]]]))


def people(n=80, seed=0):
    return np.random.default_rng(seed).random((n, 2))


def unfairness(eps, metric=FIRST_FREE, bounds=(0.0, 1.0)):
    return SearchedUnfairness(eps, metric, bounds, mean_squared_logits)


def test_a_model_that_ignores_the_free_direction_has_none_at_eps_0():
    assert unfairness(0.0)(Fitted([0.0, 1.0]), people(), None) == 0


def test_closed_form_along_the_free_direction():
    """h = (w x_1, -w x_1) in the box [0, 1]: the worst x_1 is the farther end."""
    x = people()
    exact = (4 * np.maximum(x[:, 0], 1 - x[:, 0]) ** 2).mean()
    assert unfairness(0.0)(Fitted([2.0, 0.0]), x, None) == pytest.approx(exact, rel=1e-6)


def test_closed_form_that_pays():
    """h = (w x_2, -w x_2), Euclidean: sup E[w^2 d^2] with E[d^2] <= eps is w^2 eps."""
    value = unfairness(0.04, FairMetric.euclidean(2), (-9.0, 9.0))(Fitted([0.0, 3.0]), people(), None)
    assert 0.99 * 9 * 0.04 < value <= 9 * 0.04 * 1.000001


def test_it_is_the_audits_number_and_people_outside_the_bounds_are_left_out():
    model, x = Fitted([1.0, 0.5]), people()
    found = audit(model.module_, x, FIRST_FREE, 0.01, (0.0, 1.0), output_distance=mean_squared_logits)
    assert unfairness(0.01)(model, x, None) == found.r_low
    assert unfairness(0.01)(model, np.vstack([x, [[7.0, 7.0]]]), None) == pytest.approx(found.r_low, rel=0.05)
    assert unfairness(0.01)(model, pd.DataFrame(x, columns=["a", "b"]), None) == found.r_low
    with pytest.raises(ValueError, match="all 80 validation rows lie outside"):
        unfairness(0.01, bounds=(2.0, 3.0))(model, x, None)


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
    assert SearchedUnfairness(0.0, output_distance=squared_error)(model, X, y) > 0.5
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


def test_squeezed_outputs_gain_nothing_on_the_relative_scale():
    x = people()
    score = SearchedUnfairness(0.01, FIRST_FREE, (0.0, 1.0), mean_squared_logits, relative=True)
    loud, quiet = (score(Fitted([1.0 * size, 0.5 * size]), x, None) for size in (1.0, 0.01))
    found = audit(Fitted([1.0, 0.5]).module_, x, FIRST_FREE, 0.01, (0.0, 1.0), output_distance=mean_squared_logits)
    assert quiet == pytest.approx(loud, rel=0.02)
    assert loud == found.relative.low
    assert np.isnan(score(Fitted([0.0, 0.0]), x, None))  # nobody is told apart: undefined, not fair
