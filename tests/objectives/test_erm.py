import torch
import torch.nn.functional as F
from torch import nn

from evenhand.objectives import ERM, Batch
from evenhand.objectives.batch import squared_loss


def test_the_mean_loss_and_its_weights():
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 2), torch.randn(6, 3), torch.tensor([0, 1, 1, 0, 1, 0])
    objective = ERM()
    torch.testing.assert_close(objective(model, Batch(x, y)), F.cross_entropy(model(x), y))
    torch.testing.assert_close(objective.last["loss"], F.cross_entropy(model(x), y).detach())
    weight = torch.tensor([2.0, 0, 0, 0, 0, 1])
    repeated = torch.tensor([0, 0, 5])
    expected = F.cross_entropy(model(x[repeated]), y[repeated])
    torch.testing.assert_close(objective(model, Batch(x, y, weight)), expected)


def test_regression():
    model, x, y = nn.Linear(3, 1), torch.randn(6, 3), torch.randn(6)
    torch.testing.assert_close(ERM(squared_loss)(model, Batch(x, y)), F.mse_loss(model(x)[:, 0], y))
