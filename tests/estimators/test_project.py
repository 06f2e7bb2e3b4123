"""Project ignores the directions altogether."""

import numpy as np
import torch
from sklearn.datasets import make_classification
from torch import nn

from evenhand import FairMetric, ProjectClassifier

SMALL = {"steps": 30, "batch_size": 32, "random_state": 0}
X, Y = make_classification(100, 4, random_state=0)
METRIC = FairMetric(torch.tensor([[1.0], [2.0], [0.0], [0.0]]))
MOVED = X + 7.0 * METRIC.directions.numpy().T


def test_moving_along_the_directions_changes_nothing():
    model = ProjectClassifier(METRIC, hidden=(8,), **SMALL).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), model.decision_function(MOVED), atol=1e-5)
    assert isinstance(model.module_[0], nn.Linear), "the projection is folded into the first layer"


def test_the_same_for_a_module_that_does_not_begin_with_a_linear_layer():
    own = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2))
    model = ProjectClassifier(METRIC, module=own, **SMALL).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), model.decision_function(MOVED), atol=1e-4)


def test_a_second_fit_from_where_it_was_projects_too():
    for own in (None, nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2))):
        model = ProjectClassifier(METRIC, hidden=(8,), module=own, warm_start=True, **SMALL).fit(X, Y)
        before = model.score(X, Y)
        model.fit(X, Y)
        np.testing.assert_allclose(model.decision_function(X), model.decision_function(MOVED), atol=1e-4)
        assert model.score(X, Y) >= before - 0.05
