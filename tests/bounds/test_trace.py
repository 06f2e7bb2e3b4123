"""Networks of any class as layers: the same outputs as the model itself, or a refusal that names the step."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from evenhand.bounds.layers import CannotCertify, affine_layers, differentiable_layers, forward


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
    """A residual block of smooth activations between two that are exactly sums of ReLUs."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.act = nn.Linear(4, 5), nn.Linear(5, 5), nn.GELU()
        self.slope = nn.PReLU(5)
        self.slope.weight.data.uniform_(-0.5, 0.5)

    def forward(self, x):
        h = self.act(self.a(x))
        h = h + torch.tanh(self.b(self.slope(h))) - torch.sigmoid(h) / 3
        return F.hardtanh(h).abs().clamp(max=0.8)


class Branches(nn.Module):
    """Columns in two branches, a matrix as a bare parameter, the table's size in a reshape, one output a person."""

    def __init__(self):
        super().__init__()
        self.a, self.w = nn.Linear(2, 3), nn.Parameter(torch.randn(3, 6))
        self.scale = nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))

    def forward(self, x, gain=2.0):
        n = x.shape[0]
        u, v = self.a(x[:, :2]).relu() * self.scale, torch.einsum("nd,dh->nh", x[:, 1:], self.w.exp())
        both = torch.cat([u.reshape(n, -1), F.leaky_relu(v, 0.2)], 1)
        return gain * both.sum(1) - 1.0


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.norm.running_mean.uniform_(-1, 1)
        self.net = nn.Sequential(nn.Conv1d(1, 3, 2, padding=1), self.norm, nn.ReLU6(), nn.AvgPool1d(2), nn.Flatten())
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        return self.out(self.net(x.unsqueeze(1)))


class Twice(nn.Module):
    """The same layer twice, and a module of one's own inside."""

    def __init__(self):
        super().__init__()
        self.a, self.inner = nn.Linear(4, 4), Functional()

    def forward(self, x):
        return self.inner(self.a(self.a(x).relu()).relu())


class NotTorchs(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.w = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x):
        return self.w(self.a(x))


@pytest.mark.parametrize(
    "kind",
    [
        Functional,
        Residual,
        Smooth,
        Branches,
        Convolution,
        Twice,
        lambda: nn.Sequential(weight_norm(nn.Linear(4, 3)), nn.SELU(), nn.Linear(3, 2), nn.Sigmoid()),
        lambda: nn.Sequential(nn.ReLU(), nn.Linear(4, 2)),
        lambda: Subclass(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)),
    ],
)
def test_the_layers_compute_what_the_model_does(kind):
    torch.manual_seed(0)
    model = kind().double().eval()
    x = torch.randn(50, 4, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(forward(affine_layers(model, 4), x), _columns(model(x)))


def _columns(h):
    return h if h.ndim == 2 else h[:, None]


def test_a_model_in_training_is_read_as_in_eval_mode_and_left_as_it_was():
    model = Residual()
    x = torch.randn(6, 4)
    layers = differentiable_layers(model)
    assert all(part.training for part in model.modules())
    out = forward(layers, x.double())
    torch.testing.assert_close(out, model.eval()(x).double(), rtol=1e-5, atol=1e-5)
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_what_is_never_negative_is_carried_once():
    layers = affine_layers(Residual().double().eval())
    assert [layer.bias.shape[0] for layer in layers[:-1]] == [4 + 8, 4 + 4 + 8]  # x as a pair, relu's output alone


@pytest.mark.parametrize(
    ("kind", "name"), [(Attention, "softmax|product"), (Depends, "depend"), (NotTorchs, "LayerNorm")]
)
def test_what_cannot_be_followed_is_named(kind, name):
    with pytest.raises(CannotCertify, match=name) as refused:
        affine_layers(kind().double())
    assert "audit()" in str(refused.value)


class FirstColumns(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 6), nn.Linear(6, 1)

    def forward(self, x):
        return self.b(F.relu(self.a(x[:, :3]))).squeeze(1)


def test_columns_that_are_not_read_are_columns_still():
    torch.manual_seed(0)
    model, x = FirstColumns().double(), torch.randn(9, 5, dtype=torch.float64)
    layers = affine_layers(model, 5)
    assert layers[0].weight.shape[1] == 5
    torch.testing.assert_close(forward(layers, x)[:, 0], model(x))


class EndsInSoftmax(nn.Module):
    def __init__(self, call):
        super().__init__()
        self.a, self.call = nn.Linear(3, 2), call

    def forward(self, x):
        return self.call(self.a(x), dim=1)


@pytest.mark.parametrize("call", [torch.softmax, F.log_softmax])
def test_a_softmax_is_refused_with_the_cure(call):
    with pytest.raises(CannotCertify, match=r"softmax \(let it return the logits before it\)"):
        affine_layers(EndsInSoftmax(call), 3)
