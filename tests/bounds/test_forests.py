"""Forests that vote: the total variation by enumeration, and every pair below the bound."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from evenhand import Box, FairMetric, audit, certify
from evenhand.bounds.forests import ForestBound, bound_forest
from evenhand.bounds.layers import CannotCertify
from evenhand.bounds.trees import people
from evenhand.dual.pool import Pool
from evenhand.ensembles.read import read_ensemble
from evenhand.headline import stands
from evenhand.judged import Judged
from evenhand.output_distances import absolute_probability, mean_squared_logits
from evenhand.search.geometry import Geometry

pytest.importorskip("numba", reason="the search is compiled by numba")

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.uniform(-1, 1, (300, 2)), RNG.integers(0, 2, 300)])
SCORE = X[:, 0] + 0.6 * X[:, 2] + 0.2 * RNG.normal(size=300)
BOX = Box([-1.0, -1.0, 0.0], [1.0, 1.0, 1.0], binary=[2])
METRIC = FairMetric([[0.0], [0.0], [1.0]])


def forest(classes, trees=7):
    y = np.digitize(SCORE, np.quantile(SCORE, np.arange(1, classes) / classes))
    return RandomForestClassifier(trees, max_depth=4, random_state=0).fit(X, y)


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_no_pair_lies_above_the_bound(classes):
    model, geometry, rng = forest(classes), Geometry(METRIC, BOX), np.random.default_rng(1)
    bound = bound_forest(read_ensemble(model), geometry, torch.from_numpy(X[:30]), 0.01)
    x = X[rng.integers(0, 300, 2000)]
    other = np.clip(x + rng.choice([0.02, 0.3, 2.0], (2000, 1)) * rng.normal(size=x.shape), -1, 1)
    other[:, 2] = rng.integers(0, 2, 2000)
    rows, d_x = torch.from_numpy(x), geometry.d_x(torch.from_numpy(other - x)).numpy()
    p, q = model.predict_proba(x), model.predict_proba(other)
    d_y, close = 0.5 * np.abs(p - q).sum(1), d_x <= 0.01
    assert close.sum() > 100
    found = bound.upper(rows)
    assert (d_y - bound.lam * d_x <= found.upper.numpy() + 1e-6).all()
    assert (d_y <= bound.near(rows, 0.01).numpy() + 1e-6)[close].all()
    low, high = bound.score_range(rows, 0.01)
    own, logs = p.argmax(1), np.log(np.clip(np.stack([p, q]), 1e-300, 1))
    at = np.arange(len(x))
    rest = logs.copy()
    rest[:, at, own] = -np.inf
    ahead = logs[1][:, 1] - logs[1][:, 0] if classes == 2 else logs[1, at, own] - rest[1].max(1)
    assert (low.numpy() - 1e-6 <= ahead)[close].all()
    assert (ahead <= high.numpy() + 1e-6)[close].all()
    proved = stands(torch.from_numpy(logs[0]), low, high, 0.0).numpy()
    assert proved.any()
    assert not (proved & close & (p.argmax(1) != q.argmax(1))).any()


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier, DecisionTreeClassifier])
def test_among_few_possible_people_it_is_exact(kind):
    """Five columns of yes and no: all 32 people are tried by hand."""
    rng = np.random.default_rng(2)
    everybody = np.array(list(itertools.product((0.0, 1.0), repeat=5)))
    x = everybody[rng.integers(0, 32, 200)]
    y = x @ [1.0, 0.8, -0.7, 0.5, 0.3] + 0.4 * rng.normal(size=200) > 0.8
    model = kind(max_depth=4, random_state=0, **({} if kind is DecisionTreeClassifier else {"n_estimators": 5})).fit(
        x, y
    )
    metric, eps = FairMetric([[1.0], [0.0], [0.0], [0.0], [0.0]]), 0.3
    box = Box(np.zeros(5), np.ones(5), binary=range(5))
    cert = certify(model, x[50:], metric, eps, box, x_tune=x[:50], distinct_people=True)
    p, d_x = model.predict_proba(everybody)[:, 1], metric.pairwise(*2 * [torch.from_numpy(everybody)]).numpy()
    mine = np.array([np.flatnonzero((everybody == row).all(1))[0] for row in x[50:]])
    pool = Pool()
    pool.add(np.abs(p[mine][:, None] - p[None]), d_x[mine])
    exact = pool.minimise(eps).value
    assert exact > 0.05
    assert 0.98 * exact <= cert.r_low <= exact * (1 + 1e-9)
    assert exact * (1 - 1e-9) <= cert.r_high <= 1.15 * exact + 2e-3
    turned = [((p > 0.5) != (p[i] > 0.5))[d_x[i] <= eps].any() for i in mine]
    assert cert.decisions.low == cert.decisions.high == pytest.approx(np.mean(turned))


def test_what_is_found_lies_below_what_is_proved():
    model = forest(2, trees=30)
    found = audit(model, X[:150], METRIC, 0.01, BOX)
    cert = certify(model, X[100:], METRIC, 0.01, BOX, x_tune=X[:100], output_distance=absolute_probability)
    assert 0.5 * cert.r_high <= cert.r_low <= cert.r_high <= 1
    assert found.r_low <= cert.upper
    assert found.distance == "total variation"


def test_logits_of_votes_are_refused():
    with pytest.raises(ValueError, match="only gives probabilities"):
        certify(forest(2), X, METRIC, 0.01, BOX, output_distance=mean_squared_logits)
    with pytest.raises(CannotCertify, match="vote with probabilities exist for total_variation"):
        certify(forest(3), X, METRIC, 0.01, BOX, output_distance=lambda h, g: (h - g).abs().sum(-1))


def test_a_forest_is_judged_by_its_own_probabilities():
    model = forest(3)
    judged = Judged.of(model)
    np.testing.assert_allclose(judged.outputs(torch.from_numpy(X)).exp().numpy(), model.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("classes", [2, 4, 6])
def test_between_two_people_the_price_is_paid_once(classes):
    """Only the first column matters and costs; all classes change with it, so the sum over them is exact too."""
    rng = np.random.default_rng(3)
    x = np.column_stack([np.repeat([0.0, 1.0], 300), np.zeros(600)])
    y = np.where(x[:, 0] == 0, rng.integers(0, classes, 600) ** 2 // classes, rng.integers(0, classes, 600))
    model = RandomForestClassifier(5, random_state=0).fit(x, y)
    box, metric = Box([0.0, 0.0], [1.0, 1.0], binary=[0, 1]), FairMetric([[0.0], [1.0]])
    p = model.predict_proba(np.array([[0.0, 0.0], [1.0, 0.0]]))
    least = np.abs(p[0] - p[1]).min()
    assert least > 0.005
    d_y, lam = 0.5 * np.abs(p[0] - p[1]).sum(), 0.4 * least
    bound = ForestBound(read_ensemble(model), people(Geometry(metric, box)), lam, 1.0, exact=True)
    upper = bound.upper(torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()).upper.numpy()
    assert (d_y - lam - 1e-9 <= upper).all()
    assert (upper <= d_y - lam + 2e-3 * classes).all()


@pytest.mark.parametrize("labels", [np.arange(300) % 2, np.zeros(300, int)], ids=["a single leaf", "a single class"])
def test_a_tree_that_says_the_same_of_everybody_is_bounded_by_nothing(labels):
    model = DecisionTreeClassifier(min_samples_leaf=300).fit(X, labels)
    found = certify(model, X[:60], METRIC, 0.05, BOX, x_tune=X[60:92])
    assert found.r_high < 1e-5
