import itertools

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import ndcg_score
from torch import nn

from evenhand.estimators.senstir import (
    SenSTIR,
    SenSTIRRanker,
    log_probability,
    ndcg,
    pad,
    policy_loss,
    rank_consistency,
    synthetic_ranking,
)
from evenhand.fair_metrics import from_classifier, from_columns
from evenhand.objectives import Batch


@pytest.mark.parametrize("k", [None, 3])
def test_ndcg_against_scikit_learn(k):
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 5, (20, 7)), rng.normal(size=(20, 7))
    y[0, 0] = 4
    query = np.repeat(np.arange(20), 7)
    shuffled = rng.permutation(140)
    found = ndcg(y.ravel()[shuffled], s.ravel()[shuffled], query[shuffled], k=k)
    assert found == pytest.approx(ndcg_score(2.0**y - 1, s, k=k, ignore_ties=True))


def test_probabilities_of_all_rankings_add_up_to_one():
    scores = torch.tensor([0.3, -1.0, 2.0, 0.1], dtype=torch.float64)
    total = sum(log_probability(scores[list(order)]).exp() for order in itertools.permutations(range(4)))
    assert total.item() == pytest.approx(1)


def exact_loss(scores, y):
    """1 - E[NDCG] over all rankings of one query."""
    total = 0.0
    for order in itertools.permutations(range(len(y))):
        order = list(order)
        gain = 2.0**y - 1
        discount = 1 / torch.log2(2 + torch.arange(len(y), dtype=torch.float64))
        value = (gain[order] @ discount) / (gain.sort(descending=True).values @ discount)
        total = total + log_probability(scores[order]).exp() * value
    return 1 - total


def test_policy_loss_and_its_gradient_against_the_sum_over_all_rankings():
    scores = torch.tensor([0.5, -0.2, 0.0, 0.8], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([3.0, 1.0, 0.0, 2.0], dtype=torch.float64)
    exact = exact_loss(scores, y)
    (slope,) = torch.autograd.grad(exact, scores)
    drawn = policy_loss(scores[None], y[None], 5_000, torch.Generator().manual_seed(0))
    (estimate,) = torch.autograd.grad(drawn, scores)
    assert drawn.item() == pytest.approx(exact.item(), abs=0.02)
    torch.testing.assert_close(estimate, slope, atol=0.02, rtol=0)


def test_places_without_items_change_nothing():
    scores, y = torch.tensor([[0.5, -0.2]]), torch.tensor([[1.0, 0.0]])
    padded = torch.tensor([[0.5, -0.2, -1e9]]), torch.tensor([[1.0, 0.0, torch.nan]])
    plain, longer = (policy_loss(s, r, 5000, torch.Generator().manual_seed(0)) for s, r in ((scores, y), padded))
    assert plain.item() == pytest.approx(longer.item(), abs=0.02)
    assert log_probability(torch.tensor([0.3, 0.1, -1e9])).item() == pytest.approx(
        log_probability(torch.tensor([0.3, 0.1])).item()
    )


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


def test_objective_without_rho_is_the_policy_loss():
    items = synthetic_ranking(4, 5)
    x, y = pad(items.X.to_numpy(dtype=np.float32), items.y, items.query)
    model = nn.Linear(4, 1)
    objective = SenSTIR(None, 0.0, generator=torch.Generator().manual_seed(0))
    plain = SenSTIR(None, 0.0, generator=torch.Generator().manual_seed(0)).plain(model, Batch(x, y))
    assert objective(model, Batch(x, y)).item() == plain.item()


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
        (lambda: SenSTIR(None, -1.0), "rho"),
        (lambda: SenSTIRRanker().fit([[0.0], [1.0]], [-1.0, 1.0], [0, 0]), "zero or positive"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
