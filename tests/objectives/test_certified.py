"""Training for the certificate."""

import pytest
import torch
from torch import nn

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.objectives.batch import Batch
from evenhand.objectives.certified import Certified, CertifiedRegularizer
from evenhand.output_distances import centred

METRIC = FairMetric(torch.tensor([[1.0], [0.0], [0.0]]))
BOX = Box(-torch.ones(3), torch.ones(3), binary=[0])


def data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(n, 3, generator=g) - 1
    x[:, 0] = x[:, 0].sign()
    return x, ((x[:, 1] + 0.7 * x[:, 0]) > 0).long()


def plain_net():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 2))
    x, y = data(400, 0)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
    return model


def test_the_value_is_an_upper_bound_and_has_the_right_gradient():
    model = plain_net()
    x, _ = data(20, 1)
    certified = CertifiedRegularizer(METRIC, 0.01, BOX, model)
    certified.tune(model, x, steps=60)
    value = certified(model, x)
    # below every feasible coupling's value: the sensitive column flipped costs nothing
    flipped = x.clone()
    flipped[:, 0] *= -1
    with torch.no_grad():
        moved = (model(x) - model(flipped)).square().mean().item()
    assert value.item() >= moved
    value.backward()
    weight = model[0].weight
    assert weight.grad is not None
    with torch.no_grad():
        step = 1e-4 * weight.grad / weight.grad.norm()
        weight += step
        up = certified(model, x).item()
        weight -= 2 * step
        down = certified(model, x).item()
    slope = (up - down) / (2 * step.norm().item())
    assert abs(slope - weight.grad.norm().item()) < 0.15 * weight.grad.norm().item()


@pytest.mark.parametrize(
    ("activation", "hidden"), [(nn.ReLU, (6, 6)), (nn.ReLU, (5, 5, 5)), (nn.Tanh, (6,)), (nn.GELU, (5, 5))]
)
def test_deep_and_smooth_networks_are_fine_tuned_below_where_they_were(activation, hidden):
    torch.manual_seed(0)
    parts = [part for a, b in zip((3, *hidden), hidden) for part in (nn.Linear(a, b), activation())]
    model = nn.Sequential(*parts, nn.Linear(hidden[-1], 2))
    x, _ = data(12, 1)
    certified = CertifiedRegularizer(METRIC, 0.01, BOX, model)
    certified.tune(model, x, steps=10)
    groups = [{"params": list(model.parameters()), "lr": 0.01}, {"params": list(certified.parameters()), "lr": 0.05}]
    optimiser, values = torch.optim.Adam(groups), []
    for _ in range(12):
        optimiser.zero_grad()
        value = certified(model, x)
        flipped = x * torch.tensor([-1.0, 1.0, 1.0])
        with torch.no_grad():
            assert value.item() >= centred(model(x) - model(flipped)).square().mean().item()
        value.backward()
        optimiser.step()
        values.append(value.item())
    assert values[-1] < 0.8 * values[0]


def test_the_objective_is_the_loss_plus_the_bound_of_some_people():
    model = plain_net()
    x, y = data(40, 1)
    bound = CertifiedRegularizer(METRIC, 0.01, BOX, model)
    objective = Certified(bound, 2.0, people=8, generator=torch.Generator().manual_seed(0))
    value = objective(model, Batch(x, y))
    assert objective.tuned
    some = x[torch.randperm(40, generator=torch.Generator().manual_seed(0))[:8]]
    expected = nn.functional.cross_entropy(model(x), y) + 2 * bound(model, some)
    assert value.item() == pytest.approx(expected.item(), rel=1e-4)
    assert [group["lr"] for group in objective.groups()] == [0.05]
    assert {id(p) for p in objective.groups()[0]["params"]} == {id(p) for p in bound.parameters()}
    with pytest.raises(ValueError, match="people 1 or more"):
        Certified(bound, 2.0, people=0)
