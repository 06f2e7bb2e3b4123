import numpy as np
import pytest
import torch
from torch import nn

from evenhand.objectives.batch import Batch
from evenhand.objectives.versions import WorstVersion
from evenhand.output_distances import mean_squared_logits


def linear():
    model = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))  # h(x) = (x_0, 0)
    return model


def batch():
    return Batch(torch.zeros(4, 2), torch.tensor([0, 1, 0, 1]))


def kind(*firsts):
    return np.array([[[first, 9.0] for first in firsts]], dtype=np.float32)


def objective(kinds, rho, **options):
    return WorstVersion(kinds, rho, generator=torch.Generator().manual_seed(0), **options)


LOSS = float(np.log(2))  # the logits of the batch are equal


def test_the_loss_alone_without_weight():
    assert objective([kind(0.0, 3.0)], 0.0)(linear(), batch()).item() == pytest.approx(LOSS)


def test_two_versions_are_both_or_one_of_them():
    """A drawn version meets itself or the other one, as often: half of d_Y on average; among many, always the other."""
    apart = mean_squared_logits(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 0.0]])).item()
    pairs = objective([kind(0.0, 3.0)], 2.0, drawn=20_000, among=1)(linear(), batch()).item()
    assert pairs == pytest.approx(LOSS + 2 * apart / 2, rel=0.05)
    worst = objective([kind(0.0, 3.0)], 2.0, drawn=2_000, among=30)(linear(), batch()).item()
    assert worst == pytest.approx(LOSS + 2 * apart)


def test_the_worst_of_many_is_the_farthest():
    """From 0, 1 and 5, the farthest lie 5, 4 and 5 away."""
    found = objective([kind(0.0, 1.0, 5.0)], 1.0, drawn=20_000, among=60)(linear(), batch()).item()
    assert found == pytest.approx(LOSS + (25 + 16 + 25) / 3 / 2, rel=0.02)  # d_Y is a mean over two logits


def test_kinds_count_the_same_however_many_they_are():
    many = np.repeat(kind(0.0, 0.0), 50, axis=0)
    found = objective([many, kind(0.0, 4.0)], 1.0, drawn=2_000, among=30)(linear(), batch()).item()
    assert found == pytest.approx(LOSS + (0 + 16 / 2) / 2)


def test_only_what_versions_differ_in_is_unlearned():
    """The gradient of R(h) is along x_0 alone, where versions differ."""
    model = linear()
    value = objective([kind(0.0, 3.0)], 1.0, among=30)(model, batch())
    value.backward()
    assert model.weight.grad[0, 0].item() > 1
    assert model.weight.grad[:, 1].abs().max().item() < 1e-6


def test_the_search_is_at_no_cost_for_state():
    some = objective([kind(0.0, 3.0)], 1.0)
    some(linear(), batch())
    assert not some.state_dict()
    assert set(some.last) == {"loss", "d_y"}


@pytest.mark.parametrize(
    ("kinds", "rho", "options"),
    [
        ([], 1.0, {}),
        ([np.zeros((0, 2, 3))], 1.0, {}),
        ([np.zeros((2, 1, 3))], 1.0, {}),
        ([kind(0.0, 1.0)], -1.0, {}),
        ([kind(0.0, 1.0)], 1.0, {"among": 0}),
    ],
)
def test_what_it_refuses(kinds, rho, options):
    with pytest.raises(ValueError, match=r"rho must|expected versions|at least 1"):
        objective(kinds, rho, **options)
