import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import ndcg_score

from evenhand.estimators.senstir import (
    SenSTIRRanker,
    ndcg,
    pad,
    rank_consistency,
    synthetic_ranking,
)
from evenhand.fair_metrics import from_classifier, from_columns


@pytest.mark.parametrize("k", [None, 3])
def test_ndcg_against_scikit_learn(k):
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 5, (20, 7)), rng.normal(size=(20, 7))
    y[0, 0] = 4
    query = np.repeat(np.arange(20), 7)
    shuffled = rng.permutation(140)
    found = ndcg(y.ravel()[shuffled], s.ravel()[shuffled], query[shuffled], k=k)
    assert found == pytest.approx(ndcg_score(2.0**y - 1, s, k=k, ignore_ties=True))


def test_pad_groups_by_query():
    x, y = pad(np.arange(6.0).reshape(3, 2), np.array([1, 2, 3]), ["b", "a", "b"])
    assert x.shape == (2, 2, 2)
    assert y[0, 0] == 2
    assert y[0].isnan().tolist() == [False, True]
    assert y[1].tolist() == [1, 3]


def test_rank_consistency():
    query = [0, 0, 0, 1, 1]
    assert rank_consistency([1, 2, 3, 1, 2], [1, 2, 3, 1, 2], query) == 1
    assert rank_consistency([1, 2, 3, 1, 2], [3, 2, 1, 2, 1], query) == -1


def flipped(items):
    return items.X.assign(group=1 - items.X["group"])


def test_fair_rankings_hardly_change_when_the_group_is_flipped():
    """At least half of the inconsistency goes, at a cost of at most .02 in NDCG, on new queries."""
    train, test = synthetic_ranking(seed=0), synthetic_ranking(seed=1)
    metric = from_columns(train.X, ["group"])
    results = []
    for rho in (0.0, 5.0):
        ranker = SenSTIRRanker(metric, rho=rho, random_state=0, steps=120, batch_size=16, lr=0.05, samples=8).fit(
            *train
        )
        consistency = rank_consistency(ranker.predict(test.X), ranker.predict(flipped(test)), test.query)
        results.append((ranker.score(*test), consistency))
    (plain_ndcg, plain), (fair_ndcg, fair) = results
    assert 1 - fair <= 0.5 * (1 - plain)
    assert fair_ndcg >= plain_ndcg - 0.02


def test_estimator_is_a_scikit_learn_one():
    items = synthetic_ranking(10, 4)
    ranker = clone(SenSTIRRanker(lambda X: from_classifier(X, ["group"]), steps=3, random_state=0))
    first, second = (clone(ranker).fit(*items).predict(items.X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert {"loss", "d_x", "d_y", "lam"} <= set(clone(ranker).fit(*items).history_)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ndcg([0, 0], [1, 2], [0, 0]), "not defined"),
        (lambda: ndcg([1, 0], [1, 2], [0]), "query must name"),
        (lambda: rank_consistency([1, 1], [1, 2], [0, 0]), "not all equal"),
        (lambda: SenSTIRRanker().fit([[0.0], [1.0]], [-1.0, 1.0], [0, 0]), "zero or positive"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
