import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import ndcg_score
from sklearn.utils.estimator_checks import check_estimator_sparse_tag

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


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hidden": 100}, r"hidden must be .* got 100; write hidden=\(100,\)"),
        ({"eps": "0.1"}, "eps must be a number; got '0.1' of type str"),
        ({"rho": "1"}, "rho must be a number; got '1' of type str"),
        ({"steps": 1.5}, "steps must be a whole number; got 1.5 of type float"),
        ({"lr": "a"}, "lr must be a number; got 'a' of type str"),
        ({"samples": "a"}, "samples must be a whole number; got 'a' of type str"),
        ({"samples": 1}, "samples must be 2 or more; got 1"),
        ({"search": "a"}, "search must be a function"),
        ({"bounds": "x"}, "bounds must be 'data', None, a Box or"),
        ({"device": "tpu"}, "device='tpu' cannot be used here"),
        (
            {"bounds": (0, 1)},
            r"bounds exclude \d+ of 40 training rows, in column\(s\) \['skill', 'experience', 'proxy'\]",
        ),
    ],
)
def test_wrong_parameters_are_told_in_one_sentence(parameters, message):
    with pytest.raises(ValueError, match=message):
        SenSTIRRanker(**parameters).fit(*synthetic_ranking(10, 4))


def test_relevance_may_be_digits_and_items_sparse():
    items = synthetic_ranking(10, 4)
    ranker = SenSTIRRanker(steps=3, random_state=0)
    wanted = ranker.fit(*items).predict(items.X)
    np.testing.assert_array_equal(ranker.fit(items.X, items.y.astype(str), items.query).predict(items.X), wanted)
    thin = sparse.csr_array(items.X.to_numpy())
    np.testing.assert_allclose(ranker.fit(thin, items.y, items.query).predict(thin), wanted, atol=1e-5)


class Queried(SenSTIRRanker):
    """Four items a query, as scikit-learn's checks know of none."""

    def fit(self, X, y):
        return super().fit(X, y, np.arange(X.shape[0]) // 4)


def test_it_takes_the_tables_that_it_says():
    check_estimator_sparse_tag("SenSTIRRanker", Queried(steps=2))
