"""Networks of any class as layers: the same outputs as the model itself, or a refusal that names the step."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from evenhand.bounds.layers import CannotCertify, affine_layers, forward


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x):
        return self.b(F.relu(self.a(x * 0.5))) - 1.0


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.inner, self.skip = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)
        self.norm = nn.BatchNorm1d(4)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        h = torch.relu(self.norm(self.first(x)))
        h = h + self.inner(F.dropout(h, training=self.training)).relu()
        return self.skip((h + x) / 2)


class Subclass(nn.Sequential):
    def forward(self, x):
        return -super().forward(torch.flatten(x, 1))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return self.a(x) * x.softmax(-1)


class Depends(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return self.a(x) if x.sum() > 0 else x


class Smooth(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.act = nn.Linear(4, 2), nn.GELU()

    def forward(self, x):
        return self.act(self.a(x))


@pytest.mark.parametrize(
    "kind",
    [
        Functional,
        Residual,
        lambda: nn.Sequential(nn.ReLU(), nn.Linear(4, 2)),
        lambda: Subclass(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)),
    ],
)
def test_the_layers_compute_what_the_model_does(kind):
    torch.manual_seed(0)
    model = kind().double().eval()
    x = torch.randn(50, 4, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(forward(affine_layers(model), x), model(x))


@pytest.mark.parametrize(("kind", "name"), [(Attention, "softmax|product"), (Depends, "depend"), (Smooth, "GELU")])
def test_what_cannot_be_followed_is_named(kind, name):
    with pytest.raises(CannotCertify, match=name) as refused:
        affine_layers(kind().double())
    assert "audit()" in str(refused.value)
