import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from evenhand.fair_metrics import FairMetric
from evenhand.objectives import Batch, SenSR
from evenhand.regularizer import PricedSearch, gradient_rule


def priced_search(**options):
    metric = FairMetric(torch.eye(4, dtype=torch.float64)[:, :1])
    return PricedSearch(metric, generator=torch.Generator().manual_seed(1), **options)


def test_trained_on_the_worst_case_of_the_loss():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).double()
    x, y = torch.randn(20, 4, dtype=torch.float64), torch.arange(20) % 2
    objective = SenSR(priced_search(eps=0.1, lam=0.3, lam_rule=gradient_rule(1.0)))
    value = objective(model, Batch(x, y))
    found = priced_search(eps=0.1, lam=0.3).find(model, lambda h: F.cross_entropy(h, y, reduction="none"), x)
    torch.testing.assert_close(value, F.cross_entropy(model(found.x_worst), y))
    plain = F.cross_entropy(model(x), y, reduction="none")
    assert (found.gain - 0.3 * found.d_x >= plain - 1e-9).all()
    assert value > plain.mean()
    torch.testing.assert_close(objective.priced_search.lam.double(), 0.3 - 1.0 * (0.1 - found.d_x.mean()))
    other = copy.deepcopy(model)
    value.backward()
    F.cross_entropy(other(found.x_worst), y).backward()
    for a, b in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(a.grad, b.grad)


def test_eps_zero_moves_only_along_the_directions():
    model, x, y = nn.Linear(4, 2).double(), torch.randn(9, 4, dtype=torch.float64), torch.zeros(9, dtype=torch.long)
    objective = SenSR(priced_search(eps=0))
    objective(model, Batch(x, y))
    assert objective.last["d_x"].item() == 0
    assert objective.priced_search.lam.item() == 1


def test_images_stay_images():
    torch.manual_seed(0)
    model, x, y = (
        nn.Sequential(nn.Conv2d(1, 2, 2), nn.Flatten(), nn.Linear(2, 2)),
        torch.rand(9, 1, 2, 2),
        torch.ones(9),
    )
    flat = nn.Sequential(nn.Unflatten(1, (1, 2, 2)), model)
    values = [
        SenSR(priced_search(eps=0.1, lam=0.3))(net, Batch(rows, y.long()))
        for net, rows in ((model, x), (flat, x.flatten(1)))
    ]
    torch.testing.assert_close(*values)


def test_a_loss_that_is_a_mean_is_told():
    objective = SenSR(priced_search(), loss=F.cross_entropy)
    with pytest.raises(ValueError, match=r"one value for each row, \(9,\), but gave \(\)"):
        objective(nn.Linear(4, 2), Batch(torch.rand(9, 4), torch.zeros(9, dtype=torch.long)))
