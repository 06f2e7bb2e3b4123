"""The hardly regularised regression is taken where it tells more, not where it differs by chance."""

import numpy as np
import pandas as pd
import pytest
import torch

from evenhand.fair_metrics import from_classifier
from evenhand.fair_metrics.strengths import _unexplained, adds


def people(n=1000, d=6, seed=0, rare=0.0):
    """Group moves column 0; with ``rare`` column 1 tells it for sure where it speaks, for so many of the people."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, 0] += 1.5 * group
    X[:, 1] = (rng.random(n) < rare) * (2 * group - 1)
    X[:, 1] += 0.01 * rng.normal(size=n)
    return X, group


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n", "d"), [(60, 10), (300, 30), (3000, 6)])
def test_noise_is_not_made_free(n, d, seed):
    X, group = people(n, d, seed)
    assert len(from_classifier(X, predict={"group": group}).attribute_models) == 1
    age = X[:, 0] + np.random.default_rng(seed + 100).normal(size=n)
    assert len(from_classifier(X[:, 2:], predict={"age": age}).attribute_models) == 1


@pytest.mark.parametrize("seed", range(4))
def test_what_speaks_rarely_and_for_sure_is(seed):
    X, group = people(seed=seed, rare=0.15)
    metric = from_classifier(X, predict={"group": group})
    assert len(metric.attribute_models) == 2
    rare = torch.eye(6)[1:2]
    assert (
        metric.cost(rare).item() < 0.1 < 0.5 < from_classifier(X, predict={"group": group}, l2=0.15).cost(rare).item()
    )


def test_the_order_of_the_rows_says_nothing():
    X, group = people(rare=0.15)
    order = np.argsort(group, kind="stable")
    a, b = (from_classifier(X[rows], predict={"group": group[rows]}) for rows in (slice(None), order))
    np.testing.assert_allclose(a.sigma, b.sigma, atol=1e-3)


def test_what_is_left_of_the_uncertainty():
    """Nothing where the score is the group, all where it is noise; of a number one minus R squared."""
    rng = np.random.default_rng(0)
    group, noise = rng.integers(0, 3, 3000), rng.normal(size=(3000, 1))
    assert _unexplained(np.eye(3)[group], group, False, np.ones(3000)) < 0.01
    assert _unexplained(noise, group, False, np.ones(3000)) == pytest.approx(1, abs=0.005)
    r = np.corrcoef(noise[:, 0], noise[:, 0] + group)[0, 1]
    assert _unexplained(noise, noise[:, 0] + group, True, np.ones(3000)) == pytest.approx(1 - r**2)


def test_one_group_only_tells_nothing():
    assert not adds(np.ones((5, 1)), np.ones((5, 1)), np.zeros(5), 2, False)


def test_an_attribute_of_texts():
    X, group = people(rare=0.15)
    names = pd.Series(np.where(group == 1, "a", "b"), dtype=object)
    assert len(from_classifier(X, predict={"group": names}).attribute_models) == 2
