import pytest
import torch
import torch.nn.functional as F
from torch import nn

from evenhand.objectives.batch import Batch, Objective, cross_entropy, mean_loss, squared_loss, weighted_mean

H = torch.tensor([[0.2, -1.0, 3.0], [1.0, 1.0, 1.0]])


def test_losses_row_by_row():
    y = torch.tensor([2, 0])
    expected = -F.log_softmax(H, -1)[torch.arange(2), y]
    torch.testing.assert_close(cross_entropy(H, y), expected)
    assert squared_loss(torch.tensor([[3.0], [1.0]]), torch.tensor([1.0, 1.0])).tolist() == [4.0, 0.0]


def test_weights_are_shares():
    values, weight = torch.tensor([1.0, 5.0]), torch.tensor([3.0, 1.0])
    assert weighted_mean(values, None) == 3
    assert weighted_mean(values, weight) == 2
    assert mean_loss(values, weight) == 2
    assert mean_loss(values, 10 * weight) == 2


def test_a_row_of_weight_two_counts_like_the_row_twice():
    model, objective = nn.Linear(2, 2), Objective()
    x, y = torch.randn(3, 2, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 1])
    twice = objective.plain(model, Batch(x[[0, 1, 1, 2]], y[[0, 1, 1, 2]]))
    weighted = objective.plain(model, Batch(x, y, torch.tensor([1.0, 2.0, 1.0])))
    torch.testing.assert_close(weighted, twice)


def test_the_base_has_no_objective_of_its_own():
    with pytest.raises(NotImplementedError):
        Objective()(nn.Linear(1, 2), Batch(torch.zeros(1, 1), torch.zeros(1, dtype=torch.long)))


@pytest.mark.parametrize("mean", [weighted_mean, mean_loss])
@pytest.mark.parametrize("values", [torch.tensor(3.0), torch.rand(2, 1), torch.rand(2, 2)])
def test_weights_need_one_loss_for_each_row(mean, values):
    with pytest.raises(ValueError, match=r"one value for each row, \(2,\), but gave"):
        mean(values, torch.tensor([3.0, 1.0]))
