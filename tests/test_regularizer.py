"""The dual value, its gradient, its lam."""

import copy

import pytest
import torch
from torch import nn

from evenhand.fair_metrics import FairMetric
from evenhand.output_distances import mean_squared_logits, total_variation
from evenhand.regularizer import FairRegularizer, gradient_rule, ratio_rule
from evenhand.search import GradientSearch

D = 5


def net(dtype=torch.float64):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, 3)).to(dtype)


def people(n=40, dtype=torch.float64):
    return torch.rand(n, D, generator=torch.Generator().manual_seed(1), dtype=dtype)


def first_column(dtype=torch.float64):
    return FairMetric(torch.eye(D, dtype=dtype)[:, :1])


def regularizer(**options):
    options = {"eps": 0.1, "bounds": (0.0, 1.0), "lam": 0.5, "generator": torch.Generator().manual_seed(2)} | options
    return FairRegularizer(first_column(), **options)


@pytest.mark.parametrize("fast", [True, False])
def test_value_is_the_dual_and_its_gradient_that_of_step_3(fast):
    model, x, fair = net(), people(), regularizer(search=GradientSearch(fast=fast)).eval()
    result = fair.evaluate(model, x)
    result.value.backward()
    frozen = copy.deepcopy(model)
    frozen.zero_grad()
    x_worst = result.found.x_worst.detach()
    d_y, d_x = mean_squared_logits(frozen(x), frozen(x_worst)), first_column()(x, x_worst)
    lam = 0.5
    torch.testing.assert_close(result.value, lam * 0.1 + (d_y - lam * d_x).mean())
    d_y.mean().backward()
    for ours, autograd in zip(model.parameters(), frozen.parameters()):
        torch.testing.assert_close(ours.grad, autograd.grad)
    torch.testing.assert_close(result.d_y, d_y.mean())
    torch.testing.assert_close(result.h_x, model(x))


def test_gradient_rule_by_hand():
    rule = gradient_rule(0.5)
    assert rule(torch.tensor(1.0), torch.tensor(0.3), 0.1).item() == pytest.approx(1.1)
    assert rule(torch.tensor(1.0), torch.tensor(0.0), 0.1).item() == pytest.approx(0.95)
    assert rule(torch.tensor(0.01), torch.tensor(0.0), 0.1).item() == 0


def test_ratio_rule_by_hand():
    rule = ratio_rule()
    assert rule(torch.tensor(1.0), torch.tensor(0.4), 0.1).item() == pytest.approx(1 + 4 * 0.3)
    assert rule(torch.tensor(2.0), torch.tensor(0.05), 0.1).item() == pytest.approx(2 - 2 * 0.05)
    assert rule(torch.tensor(1.0), torch.tensor(0.0), 0.1).item() == pytest.approx(1e-5)
    assert rule(torch.tensor(1.0), torch.tensor(9.0), 0.1).item() == 10
    assert torch.isfinite(rule(torch.tensor(1.0), torch.tensor(0.0), 0.0))


def test_lam_follows_the_rule_in_train_mode_and_rests_in_eval_mode():
    model, x, fair = net(), people(), regularizer(lam_rule=gradient_rule(2.0))
    result = fair.evaluate(model, x)
    assert fair.lam.item() == pytest.approx(max(0.0, 0.5 - 2.0 * (0.1 - result.d_x.item())), abs=1e-6)
    fair.eval()
    before = fair.lam.clone()
    fair(model, x)
    assert torch.equal(fair.lam, before)


def test_lam_is_saved_and_moved():
    fair = regularizer(lam=0.7)
    assert fair.state_dict()["lam"].item() == pytest.approx(0.7)
    fresh = regularizer(lam=0.1)
    fresh.load_state_dict(fair.state_dict())
    assert fresh.lam.item() == pytest.approx(0.7)
    assert fresh.to(torch.float64).lam.dtype == torch.float64
    assert "eps=0.1, lam=0.7" in repr(fresh)


@pytest.mark.parametrize("eps", [0, 0.0])
@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_eps_zero_allows_only_free_moves(eps, bounds):
    model, x, fair = net(), people(), regularizer(eps=eps, bounds=bounds)
    result = fair.evaluate(model, x)
    assert (result.found.d_x == 0).all()
    torch.testing.assert_close(result.value, result.d_y)
    assert fair.lam.item() == 0.5
    for _ in range(3):
        assert torch.isfinite(fair(model, x))


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_a_model_that_ignores_the_sensitive_column_is_fair_at_eps_zero(bounds):
    model, x = net(), people()
    with torch.no_grad():
        model[0].weight[:, 0] = 0
    assert regularizer(eps=0, bounds=bounds)(model, x).item() == pytest.approx(0, abs=1e-20)
    with torch.no_grad():
        model[0].weight[:, 0] = 1
    assert regularizer(eps=0, bounds=bounds)(model, x).item() > 1e-4


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_works_without_gradients(context):
    model, x = net(), people()
    expected = regularizer()(model, x)
    with context():
        value = regularizer()(model, people())
    torch.testing.assert_close(value.clone(), expected.detach())


def test_dropout_is_no_unfairness_and_batch_statistics_rest():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(D, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2)).double()
    x, before = people(), copy.deepcopy(model.state_dict())
    with torch.no_grad():
        model[0].weight[:, 0] = 0
    before = copy.deepcopy(model.state_dict())
    assert regularizer(eps=0)(model.train(), x).item() == pytest.approx(0, abs=1e-20)
    assert model.training
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_other_output_distances():
    model, x = net(), people()
    result = regularizer(output_distance=total_variation).evaluate(model, x)
    assert 0 < result.d_y.item() <= 1
    torch.testing.assert_close(result.found.gain, total_variation(model(x), model(result.found.x_worst)).detach())


def test_one_line_in_a_loop_makes_a_model_fairer():
    x = people(200, torch.float32)
    y = (x[:, 0] + x[:, 1] > 1).long()
    judge = FairRegularizer(first_column(torch.float32), eps=0, bounds=(0.0, 1.0), generator=torch.Generator())
    values = []
    for rho in (0.0, 20.0):
        model = net(torch.float32)
        fair = FairRegularizer(first_column(torch.float32), eps=0.0, bounds=(0.0, 1.0), generator=torch.Generator())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(60):
            loss = nn.functional.cross_entropy(model(x), y) + rho * fair(model, x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        values.append(judge.eval()(model, x).item())
    assert values[1] < 0.1 * values[0]


@pytest.mark.parametrize("options", [{"eps": -0.1}, {"eps": float("nan")}, {"lam": -1.0}])
def test_bad_numbers_are_refused(options):
    with pytest.raises(ValueError, match="must be zero or positive"):
        regularizer(**options)
