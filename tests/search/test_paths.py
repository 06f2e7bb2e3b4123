"""Every path gives the gain and the slopes that autograd gives on the whole model, in float64 to rounding."""

import pytest
import torch
from torch import nn

from evenhand import FairMetric, FairRegularizer
from evenhand.output_distances import mean_squared_logits
from evenhand.search.first_layer import split
from evenhand.search.paths import PlainPath, ReLUPath, SplitPath
from evenhand.search.walks import walk_along
from evenhand.search.worst_cases import DistanceGain

N, D, K = 11, 5, 2


def setting(kind, closed_form=True):
    """A model, the path of this kind along it, its gain, x and the directions."""
    torch.manual_seed(0)
    activation = nn.Tanh() if kind is SplitPath else nn.ReLU()
    model = nn.Sequential(nn.Linear(D, 7), activation, nn.Linear(7, 6), activation, nn.Linear(6, 3)).double()
    x, directions = torch.randn(N, D, dtype=torch.float64), torch.randn(D, K, dtype=torch.float64)
    gain = DistanceGain(model(x).detach()) if closed_form else (lambda h: h.exp().sum(1))
    if kind is PlainPath:
        return model, PlainPath(model, gain, x, directions), gain, x, directions
    cut = split(model)
    head = cut.head.now()
    z = head.walked(x).detach()
    walk = walk_along(head, x, z, directions, reuse=kind is ReLUPath)
    path = ReLUPath(cut.relu_layers, walk, gain, z) if kind is ReLUPath else SplitPath(cut.tail, walk, gain, z)
    return model, path, gain, x, directions


def moves():
    torch.manual_seed(1)
    return torch.randn(N, K, dtype=torch.float64), torch.randn(N, D, dtype=torch.float64)


def truth(model, gain, x, directions, u, v):
    """The gain at x + A u + v and its gradients, by autograd through the whole model."""
    u, v = u.clone().requires_grad_(True), v.clone().requires_grad_(True)
    with torch.enable_grad():
        value = gain(model(x + u @ directions.T + v))
        return value.detach(), *torch.autograd.grad(value.sum(), (u, v))


@pytest.mark.parametrize("closed_form", [True, False], ids=["distance", "any gain"])
@pytest.mark.parametrize("kind", [PlainPath, SplitPath, ReLUPath])
def test_value_and_slopes(kind, closed_form):
    model, path, gain, x, directions = setting(kind, closed_form)
    u, v = moves()
    expected = truth(model, gain, x, directions, u, v)
    with torch.no_grad():
        path.settle(u)
        torch.testing.assert_close(path.value(v), expected[0])
        torch.testing.assert_close(path.slope_u(), expected[1])
        path.value(v)  # a slope may overwrite what the other needs
        torch.testing.assert_close(path.slope_v(), expected[2])


@pytest.mark.parametrize("kind", [PlainPath, SplitPath, ReLUPath])
@pytest.mark.parametrize("rows", [[], [3], list(range(9))], ids=["none", "one", "most"])
def test_only_the_rows_that_move(kind, rows):
    model, path, gain, x, directions = setting(kind)
    u, v = moves()
    still = torch.ones(N, dtype=torch.bool)
    still[rows] = False
    v[still] = 0
    with torch.no_grad():
        path.settle(u)
        found = path.value(v, torch.tensor(rows, dtype=torch.long))
    torch.testing.assert_close(found, truth(model, gain, x, directions, u, v)[0])


@pytest.mark.parametrize("kind", [PlainPath, SplitPath, ReLUPath])
@pytest.mark.parametrize("from_v", [False, True], ids=["from the subspace", "from a move"])
def test_on_a_line(kind, from_v):
    """Shares of the way, asked twice in a row: the ends of the line stay where they were."""
    model, path, gain, x, directions = setting(kind)
    u, v = moves()
    start = v.flip(0) if from_v else torch.zeros_like(v)
    with torch.no_grad():
        path.settle(u)
        path.value(start if from_v else None)
        path.start_line()
        path.value(v)
        for t in (torch.linspace(0, 1, N, dtype=torch.float64), torch.full((N,), 0.3, dtype=torch.float64)):
            there = torch.lerp(start, v, t[:, None])
            expected = truth(model, gain, x, directions, u, there)
            torch.testing.assert_close(path.value_on_line(t), expected[0])
            torch.testing.assert_close(path.slope_v(), expected[2])
            path.value_on_line(t)
            z = path.z_at(u, there, torch.ones(N, dtype=torch.bool))
            if z is not None:
                torch.testing.assert_close(z, model[0](x + u @ directions.T + there))


@pytest.mark.parametrize("kind", [SplitPath, ReLUPath])
def test_z_of_rows_that_are_not_where_the_path_stands(kind):
    model, path, _, x, directions = setting(kind)
    u, v = moves()
    v[::2] = 0
    with torch.no_grad():
        path.settle(torch.zeros_like(u))
        path.value(torch.zeros_like(v))
        z = path.z_at(u, v, torch.zeros(N, dtype=torch.bool))
        torch.testing.assert_close(z, model[0](x + u @ directions.T + v))


def test_plain_path_has_no_z_and_needs_a_slope():
    _, path, _, x, directions = setting(PlainPath)
    u, v = moves()
    assert path.z_at(u, v, torch.ones(N, dtype=torch.bool)) is None
    flat = PlainPath(lambda x: x.detach(), lambda h: mean_squared_logits(h, 2 * h), x, directions)
    with torch.no_grad():
        flat.value(v)
        with pytest.raises(ValueError, match="CandidateSearch"):
            flat.slope_v()


@pytest.mark.parametrize("cut", ["no_grad", "detach"])
@pytest.mark.parametrize("linear_first", [True, False])
def test_a_way_that_autograd_does_not_see_is_an_error(cut, linear_first):
    """A frozen part under no_grad: without a slope nothing would be searched, and the model would count as fair."""

    class Frozen(nn.Module):
        def forward(self, x):
            if cut == "detach":
                return x.tanh().detach()
            with torch.no_grad():
                return x.tanh()

    class Ignores(nn.Module):
        def forward(self, x):
            return torch.ones_like(x)

    def model(part):
        return nn.Sequential(*[nn.Linear(4, 4)] * linear_first, part, nn.Linear(4, 2))

    x, fair = torch.rand(9, 4), FairRegularizer(FairMetric(torch.eye(4)[:, :2]))
    with pytest.raises(ValueError, match=r"no gradient leads there.*requires_grad_\(False\)"):
        fair(model(Frozen()), x)
    assert torch.isfinite(fair(model(Ignores()), x))  # this one has no way at all
