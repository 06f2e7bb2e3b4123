"""The hardly regularised regression is taken where it tells more, not where it differs by chance."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.linalg import subspace_angles
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from evenhand.fair_metrics import from_classifier, from_classifier_stream
from evenhand.fair_metrics.strengths import _unexplained, adds, leading


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


def in_groups(n, axes, groups=5, d=8, seed=0):
    """Groups that differ along the first ``axes`` columns and in nothing else."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    X = rng.normal(size=(n, d))
    X[:, :axes] += 2 * np.eye(groups)[group][:, :axes]
    return X, group.astype(str)


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_several_groups_make_free_what_they_differ_in_and_no_more(axes):
    X, group = in_groups(4000, axes, seed=axes)
    metric = from_classifier(X, predict={"group": group})
    assert metric.directions.shape == (8, axes)
    assert metric.cost(torch.eye(8)[:axes]).max() < 0.05 < 0.95 < metric.cost(torch.eye(8)[axes:]).min()
    assert from_classifier(X, predict={"group": group}, l2=0.15).directions.shape == (8, 4)  # the paper's: all
    streamed = from_classifier_stream([pd.DataFrame(X).assign(g=group.astype(float))], predict=["g"])
    torch.testing.assert_close(streamed.sigma[:8, :8], metric.sigma, atol=1e-4, rtol=0)


@pytest.mark.parametrize("seed", range(5))
def test_groups_that_differ_in_nothing_make_one_direction_free(seed):
    X, group = in_groups(600, 0, seed=seed)
    assert from_classifier(X, predict={"group": group}).directions.shape == (8, 1)


def test_the_leading_scores_are_those_of_a_discriminant_analysis_in_any_units():
    X, group = in_groups(3000, 2)
    found = X @ leading(X, group, 8)
    theirs = LinearDiscriminantAnalysis(n_components=2).fit(X, group).transform(X)
    assert found.shape == (3000, 2)
    assert subspace_angles(found - found.mean(0), theirs).max() < 1e-6
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0] * np.logspace(-3, 3, 8)
    again = X @ turned @ leading(X @ turned, group, 8)
    assert subspace_angles(found - found.mean(0), again - again.mean(0)).max() < 1e-5
    twice = leading(np.concatenate([X, X[:500]]), np.concatenate([group, group[:500]]), 8)
    weighted = leading(X, group, 8, np.where(np.arange(3000) < 500, 2.0, 1.0))
    assert subspace_angles(X @ twice, X @ weighted).max() < 1e-6
    assert leading(np.zeros((30, 3)), group[:30], 8).shape == (3, 1)


def test_a_rare_group_has_its_direction():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], [2000, 1960, 40])
    X = rng.normal(size=(4000, 6))
    X[:, 0] += 2 * (group == 1)
    X[:, 1] += 2 * (group == 2)
    metric = from_classifier(X, predict={"group": group.astype(str)})
    assert metric.directions.shape == (6, 2)
    assert metric.cost(torch.eye(6)[:2]).max() < 0.2
