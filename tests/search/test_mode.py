import pytest
import torch
from torch import nn

from evenhand.search.mode import eval_mode, gradients_allowed, mode_free


def test_eval_mode_restores_each_submodule_also_after_an_error():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2)))
    model[1][0].eval()
    before = [m.training for m in model.modules()]
    with eval_mode(model):
        assert not any(m.training for m in model.modules())
    assert [m.training for m in model.modules()] == before
    with pytest.raises(KeyError), eval_mode(model):
        raise KeyError
    assert [m.training for m in model.modules()] == before


def test_eval_mode_lets_functions_pass():
    with eval_mode(torch.sin):
        pass


@pytest.mark.parametrize(
    ("model", "free"),
    [
        (nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)), True),
        (nn.Sequential(nn.Linear(2, 3), nn.Dropout()), False),
        (nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), False),
        (nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Tanh()), True),
        (torch.sin, False),
    ],
)
def test_mode_free(model, free):
    assert mode_free(model) is free


def test_gradients_allowed_inside_anything():
    for context in (torch.no_grad, torch.inference_mode):
        with context(), gradients_allowed():
            x = torch.ones(1, requires_grad=True)
            (slope,) = torch.autograd.grad((3 * x).sum(), x)
        assert slope.item() == 3
