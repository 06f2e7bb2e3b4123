"""The policy's loss against the sum over all rankings."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from evenhand.estimators.senstir import pad, synthetic_ranking
from evenhand.objectives import Batch
from evenhand.objectives.senstir import SenSTIR, log_probability, policy_loss


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


def test_objective_without_rho_is_the_policy_loss():
    items = synthetic_ranking(4, 5)
    x, y = pad(items.X.to_numpy(dtype=np.float32), items.y, items.query)
    model = nn.Linear(4, 1)
    objective = SenSTIR(None, 0.0, generator=torch.Generator().manual_seed(0))
    plain = SenSTIR(None, 0.0, generator=torch.Generator().manual_seed(0)).plain(model, Batch(x, y))
    assert objective(model, Batch(x, y)).item() == plain.item()


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="rho must be zero or positive and samples 2 or more; got -1"):
        SenSTIR(None, -1.0)
    with pytest.raises(ValueError, match=r"got 1\.0 and 1"):
        SenSTIR(None, 1.0, samples=1)
