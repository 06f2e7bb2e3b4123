import copy
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from evenhand.fair_metrics import FairMetric
from evenhand.objectives import Batch, SenSeI
from evenhand.objectives.sensei import _parts
from evenhand.regularizer import FairRegularizer
from evenhand.search import GradientSearch

MODELS = {
    "split": lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)),
    "norm first": lambda: nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2)),
    "dropout": lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)),
}


def batch(n=20):
    generator = torch.Generator().manual_seed(0)
    return Batch(torch.randn(n, 4, generator=generator, dtype=torch.float64), torch.arange(n) % 2)


def fair(fast=True, eps=0.1, metric=None):
    metric = FairMetric(torch.eye(4, dtype=torch.float64)[:, :1]) if metric is None else metric
    generator = torch.Generator().manual_seed(1)
    return FairRegularizer(metric, eps, search=GradientSearch(fast=fast), generator=generator)


@pytest.mark.parametrize("name", MODELS)
def test_loss_plus_rho_times_the_regularizer(name):
    torch.manual_seed(0)
    model = MODELS[name]().double()
    other, data = copy.deepcopy(model), batch()
    torch.manual_seed(5)  # the same dropout mask for both
    value = SenSeI(fair(), 3.0, every=1)(model, data)
    value.backward()
    torch.manual_seed(5)
    term = fair(fast=False)(other, data.x)
    expected = F.cross_entropy(other(data.x), data.y) + 3.0 * term
    expected.backward()
    torch.testing.assert_close(value, expected)
    for a, b in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("every", [2, 4, 30])
@pytest.mark.parametrize("name", MODELS)
def test_a_part_of_the_rows_estimates_the_regularizer(name, every):
    """The loss and its gradient are those of all rows, R(h) that of a part in which every class has its share."""
    torch.manual_seed(0)
    model, data = MODELS[name]().double(), batch()
    other, part = copy.deepcopy(model), torch.argsort(data.y, stable=True)[::every].sort().values
    torch.manual_seed(5)
    value = SenSeI(fair(), 3.0, every=every)(model, data)
    value.backward()
    torch.manual_seed(5)
    term = fair(fast=False)(other, data.x[part])  # before the loss: dropout must not draw from the search's noise
    expected = F.cross_entropy(other(data.x), data.y) + 3.0 * term
    expected.backward()
    torch.testing.assert_close(value, expected)
    for a, b in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("every", [0, -2, 1.5, "2", None])
def test_every_is_a_whole_number(every):
    with pytest.raises(ValueError, match=f"every must be 1 .* got {every!r}"):
        SenSeI(fair(), 3.0, every=every)


def test_classes_in_turn_all_have_their_share():
    """Each second row of a batch 0, 1, 0, 1, ... would be of one class alone."""
    y = batch().y
    ((part, share),) = _parts(y, [2])
    assert y[part].sum() == len(part) / 2 == 5
    assert share == 1


@pytest.mark.parametrize("y", [torch.arange(20.0) / 3, torch.randn(20, 2)], ids=["a number", "two numbers"])
def test_a_part_of_the_rows_for_numbers(y):
    first = y.reshape(20, -1)[:, 0]
    ((part, _),) = _parts(y, [2])
    torch.testing.assert_close(first[part].sort().values, first.sort().values[::2])  # of two neighbours one


def test_the_loss_is_given_the_batch_as_it_is():
    """A loss may look at the batch as a whole, or know its rows by their order."""
    model, data = MODELS["split"]().double(), batch()
    order = torch.arange(20.0, dtype=torch.float64)
    for loss in (F.cross_entropy, lambda h, y: order * F.cross_entropy(h, y, reduction="none")):
        objective = SenSeI(fair(), 1.0, loss, every=3)
        objective(model, data)
        torch.testing.assert_close(objective.last["loss"], loss(model(data.x), data.y).detach().mean())


def test_in_eval_mode_all_rows_are_looked_at():
    model, data = MODELS["split"]().double(), batch()
    values = [SenSeI(fair(), 1.0, every=every).eval()(model, data) for every in (1, 2, 4)]
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=0)
    torch.testing.assert_close(values[0], values[2], rtol=0, atol=0)


def test_rho_zero_is_plain_training_and_a_negative_one_is_refused():
    model, data = MODELS["split"]().double(), batch()
    torch.testing.assert_close(SenSeI(fair(), 0.0)(model, data), F.cross_entropy(model(data.x), data.y))
    with pytest.raises(ValueError, match="rho must be zero or positive"):
        SenSeI(fair(), -1.0)


def test_history_numbers_and_lam_in_the_state():
    objective = SenSeI(fair(), 1.0)
    objective(MODELS["split"]().double(), batch())
    assert set(objective.last) == {"loss", "regularizer", "lam", "d_x", "d_y"}
    assert not any(number.requires_grad for number in objective.last.values())
    assert "regularizer.lam" in objective.state_dict()


def test_sample_weight_acts_on_the_loss():
    model, data = MODELS["split"]().double(), batch()
    weight = torch.zeros(20, dtype=torch.float64)
    weight[0] = 1
    SenSeI(fair(), 1.0)(model, Batch(data.x, data.y, weight))
    objective = SenSeI(fair(), 1.0)
    objective(model, Batch(data.x, data.y, weight))
    assert SenSeI(fair(), 1.0).every > 1  # weights are those of the rows, whatever part is looked at
    torch.testing.assert_close(objective.last["loss"], F.cross_entropy(model(data.x[:1]), data.y[:1]).detach())


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_a_share_of_rho_is_on_what_costs_nothing(name, every):
    """loss + rho ((1 - free) R + free R at eps 0), the second of half as many rows in training, at the worst cases that
    the search of the first has met while nothing cost anything."""
    torch.manual_seed(0)
    model, data = MODELS[name]().double(), batch()
    other, order = copy.deepcopy(model), torch.argsort(data.y, stable=True)
    part, fewer = order[::every].sort().values, order[:: 2 * every].sort().values
    torch.manual_seed(5)  # the same dropout masks for both
    objective = SenSeI(fair(), 3.0, every=every, free=0.75)
    value = objective(model, data)
    value.backward()
    torch.manual_seed(5)
    of_all = fair(fast=False)
    term = of_all.evaluate(other, data.x[part])
    loss = F.cross_entropy(other(data.x), data.y)
    assert term.found.free is None  # who keeps what was found does not keep the search
    again = fair(fast=False)
    met = again.worst_from(again.look(other, data.x[part])).free(torch.searchsorted(part, fewer))
    torch.testing.assert_close(of_all.fair_metric(data.x[fewer], met.x_worst), torch.zeros(len(fewer)).double())
    other.eval()
    free = (other(data.x[fewer]) - other(met.x_worst)).square().mean()
    expected = loss + 3.0 * (0.25 * term.value + 0.75 * free)
    expected.backward()
    assert free > 0
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(objective.last["free"], free.detach())
    for a, b in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-7, atol=1e-9)


def test_in_eval_mode_what_costs_nothing_is_looked_at_in_all_rows():
    model, data = MODELS["split"]().double(), batch()
    values = [SenSeI(fair(), 1.0, every=every, free=0.9).eval()(model, data) for every in (1, 4)]
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=0)


@pytest.mark.parametrize(
    "given",
    [{"eps": 0.0}, {"metric": FairMetric.euclidean(4)}],
    ids=["eps is zero anyway", "nothing is free"],
)
def test_where_both_are_one_all_of_rho_is_on_it(given):
    model, data = MODELS["split"](), batch()
    data = Batch(data.x.float(), data.y)
    values = [SenSeI(fair(**given), 3.0, every=1, free=free)(model, data) for free in (0.0, 0.9)]
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=0)
    assert values[0] > F.cross_entropy(model(data.x), data.y)


@pytest.mark.parametrize("free", [-0.1, 1.1, float("nan"), "a", "0.5", None, [0.5]])
def test_free_is_a_share(free):
    with pytest.raises(
        ValueError, match=rf"free must be a number in \[0, 1\], .*, got {re.escape(repr(free))}; give 0"
    ):
        SenSeI(fair(), 3.0, free=free)


@pytest.mark.parametrize("rho", ["a", None, -1.0, float("nan"), float("inf")])
def test_rho_is_a_number(rho):
    with pytest.raises(ValueError, match=rf"rho must be zero or positive, got {re.escape(repr(rho))}"):
        SenSeI(fair(), rho)


def test_a_model_that_overwrites_its_input_is_given_a_copy():
    """Dropout: the loss has a forward pass of its own, between the two looks at x."""
    data, results = batch(), []
    before = data.x.clone()
    for in_place in (True, False):
        torch.manual_seed(0)
        first = nn.Hardtanh(-0.2, 0.2, inplace=in_place)
        model = nn.Sequential(first, nn.Linear(4, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 2)).double()
        results.append(SenSeI(fair(), 3.0, every=1, free=0.5)(model, data))
        assert torch.equal(data.x, before)
    torch.testing.assert_close(*results)
