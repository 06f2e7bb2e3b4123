"""What an attack knows of a model: distances, and slopes with gradients or without."""

import pytest
import torch
from torch import nn

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.output_distances import mean_squared_logits
from evenhand.search import attack as module
from evenhand.search.attack import Attack
from evenhand.search.geometry import Geometry


def net(d=4, k=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(d, 12), nn.Tanh(), nn.Linear(12, k)).double()


def made(model, differentiable, d=4):
    return Attack(
        model,
        Geometry(FairMetric.euclidean(d, torch.float64), Box(-2.0, 2.0, d=d)),
        mean_squared_logits,
        differentiable,
    )


def points(n=9, d=4):
    return 4 * torch.rand(n, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 2


@pytest.mark.parametrize("k", [1, 2, 3])
def test_differences_agree_with_gradients(k):
    x, other = points(), points().flip(0)
    model = net(k=k)
    gradient, black_box = made(model, True), made(model, False)
    h_x = gradient.h(x)
    value, slope = gradient.value_and_slope(h_x, other)
    torch.testing.assert_close(value, mean_squared_logits(h_x, gradient.h(other)))
    by_hand = other.clone().requires_grad_(True)
    mean_squared_logits(h_x, model(by_hand)).sum().backward()
    torch.testing.assert_close(slope, by_hand.grad)
    again, differences = black_box.value_and_slope(h_x, other)
    torch.testing.assert_close(again, value)
    torch.testing.assert_close(differences, slope, rtol=0.03, atol=0.01)
    torch.testing.assert_close(black_box.output_slopes(x), gradient.output_slopes(x), rtol=0.03, atol=0.01)


def test_a_wide_black_box_is_differentiated_where_it_varies():
    """Of 100 columns three matter: the directions chosen on tuning rows hold the whole gradient."""
    weight = torch.zeros(100, 2, dtype=torch.float64)
    weight[[3, 50, 77]] = torch.tensor([[1.0, -1.0], [2.0, 0.5], [-1.0, 3.0]], dtype=torch.float64)

    def model(x):
        return torch.sin(x @ weight)

    x = points(30, 100)
    searched = made(model, False, d=100).tuned(x[:20])
    assert searched.along is not None
    assert searched.along.shape[0] <= module.COLUMNS_TRIED
    assert not searched.stepwise
    exact = made(model, True, d=100)
    h_x = exact.h(x)
    slope = exact.value_and_slope(h_x, x.flip(0))[1]
    torch.testing.assert_close(searched.value_and_slope(h_x, x.flip(0))[1], slope, rtol=0.05, atol=0.05)


def test_a_model_that_is_constant_almost_everywhere_is_seen_to_be():
    x = points(40)
    steps = made(lambda x: (x > 0.3).double().cumsum(1), False).tuned(x)
    assert steps.stepwise
    assert not made(net(), False).tuned(x).stepwise
    assert steps.neighbours is x


def test_many_candidates_are_looked_at_some_at_a_time(monkeypatch):
    sizes = []

    def model(x):
        sizes.append(len(x))
        return x[:, :2]

    monkeypatch.setattr(module, "AT_ONCE", 40)
    x, others = points(5), points(35).reshape(5, 7, 4)
    d_y, d_x = made(model, False).distances(x, others)
    assert max(sizes) <= 10
    torch.testing.assert_close(d_y, (others - x[:, None])[..., :2].square().mean(-1))
    torch.testing.assert_close(d_x, (others - x[:, None]).square().sum(-1))


def test_which_columns_move_and_which_jump():
    box = Box([0.0] * 6, [1.0] * 5 + [0.0], blocks=[(1, 2)], binary=[4])
    searched = Attack(net(), Geometry(FairMetric.euclidean(6, torch.float64), box), mean_squared_logits, True)
    assert searched.discrete == [[4], [1, 2]]
    assert searched.continuous.tolist() == [0, 3]  # column 5 has no room
    assert searched.fixed.tolist() == [1, 2, 4, 5]


@pytest.mark.parametrize("differentiable", [True, False])
def test_a_model_may_overwrite_what_it_is_given(differentiable):
    x, other = points(), points().flip(0)
    before, results = other.clone(), []
    for in_place in (True, False):
        attack = made(nn.Sequential(nn.Hardtanh(-1.0, 1.0, inplace=in_place), net()), differentiable)
        results.append([*attack.value_and_slope(attack.h(x), other), attack.output_slopes(other)])
        assert torch.equal(other, before)
    for a, b in zip(*results):
        torch.testing.assert_close(a, b)
