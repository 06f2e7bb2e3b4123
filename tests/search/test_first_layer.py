"""The fast path finds the same worst case and gives the same gradients as the plain one, for the same start."""

import copy
from types import MethodType

import pytest
import torch
from torch import nn

from evenhand.fair_metrics import FairMetric
from evenhand.regularizer import FairRegularizer
from evenhand.search import DistanceGain, GradientSearch
from evenhand.search.first_layer import split, split_named
from evenhand.search.head import NORMS
from evenhand.search.model_view import ModelView
from evenhand.search.paths import PlainPath, ReLUPath, SplitPath

D = 7


class Named(nn.Module):
    """No Sequential: the first layer has to be named."""

    def __init__(self, peeks: bool = False) -> None:
        super().__init__()
        self.body, self.head, self.peeks = nn.Linear(D, 12), nn.Linear(12, 3), peeks

    def forward(self, x):
        hidden = torch.tanh(self.body(x))
        return self.head(hidden) + (x.sum(1, keepdim=True) if self.peeks else 0)


class Reshaping(nn.Module):
    def forward(self, z):
        return torch.tanh(z.view(len(z), 4, -1)).reshape(len(z), -1)


class Overwriting(nn.Module):
    def forward(self, z):
        return z.tanh_()


MODELS = {
    "one hidden layer": lambda: nn.Sequential(nn.Linear(D, 20), nn.ReLU(), nn.Linear(20, 3)),
    "three layers": lambda: nn.Sequential(nn.Linear(D, 20), nn.ReLU(), nn.Linear(20, 9), nn.ReLU(), nn.Linear(9, 2)),
    "tanh": lambda: nn.Sequential(nn.Linear(D, 20), nn.Tanh(), nn.Linear(20, 3)),
    "in-place ReLU": lambda: nn.Sequential(nn.Linear(D, 20), nn.ReLU(inplace=True), nn.Linear(20, 3)),
    "in-place, then norm": lambda: nn.Sequential(
        nn.Linear(D, 20), nn.ReLU(inplace=True), nn.BatchNorm1d(20), nn.Dropout(0.5), nn.Linear(20, 3)
    ),
    "dropout": lambda: nn.Sequential(nn.Linear(D, 20), nn.ReLU(), nn.Dropout(0.5), nn.Linear(20, 3)),
    "dropout, then in-place": lambda: nn.Sequential(
        nn.Linear(D, 20), nn.Dropout(0.5), nn.ReLU(inplace=True), nn.Linear(20, 8), nn.Tanh(), nn.Linear(8, 3)
    ),
    "no bias": lambda: nn.Sequential(nn.Linear(D, 20, bias=False), nn.ReLU(), nn.Linear(20, 3, bias=False)),
    "nested": lambda: nn.Sequential(nn.Sequential(nn.Linear(D, 20), nn.ReLU()), nn.Linear(20, 3)),
    "reshaping tail": lambda: nn.Sequential(nn.Linear(D, 20), Reshaping(), nn.Linear(20, 3)),
    "overwriting tail": lambda: nn.Sequential(nn.Linear(D, 20), Overwriting(), nn.Linear(20, 3)),
    "linear only": lambda: nn.Linear(D, 3),
    "LayerNorm first": lambda: nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 20), nn.ReLU(), nn.Linear(20, 3)),
    "LayerNorm, then tanh": lambda: nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 20), nn.Tanh(), nn.Linear(20, 3)),
    "bare LayerNorm, no bias": lambda: nn.Sequential(
        nn.LayerNorm(D, elementwise_affine=False), nn.Linear(D, 20, bias=False), nn.ReLU(), nn.Linear(20, 3)
    ),
    "BatchNorm first": lambda: nn.Sequential(nn.BatchNorm1d(D), nn.Linear(D, 20), nn.ReLU(), nn.Linear(20, 3)),
    "BatchNorm, then in-place": lambda: nn.Sequential(
        nn.Sequential(nn.BatchNorm1d(D), nn.Linear(D, 20)), nn.ELU(inplace=True), nn.Linear(20, 3)
    ),
    "bare BatchNorm": lambda: nn.Sequential(
        nn.BatchNorm1d(D, affine=False), nn.Linear(D, 20, bias=False), nn.ReLU(), nn.Linear(20, 3)
    ),
}
if hasattr(nn, "RMSNorm"):
    MODELS["RMSNorm first"] = lambda: nn.Sequential(nn.RMSNorm(D), nn.Linear(D, 20), nn.ReLU(), nn.Linear(20, 3))
    MODELS["RMSNorm, then GELU"] = lambda: nn.Sequential(
        nn.RMSNorm(D, eps=0.1), nn.Linear(D, 20), nn.GELU(), nn.Linear(20, 3)
    )
KINDS = dict.fromkeys(MODELS, SplitPath)
KINDS |= dict.fromkeys(["one hidden layer", "three layers", "in-place ReLU", "dropout", "no bias", "nested"], ReLUPath)
KINDS |= {"linear only": PlainPath}
KINDS |= dict.fromkeys(["LayerNorm first", "bare LayerNorm, no bias", "BatchNorm first", "bare BatchNorm"], ReLUPath)
KINDS |= {"RMSNorm first": ReLUPath}

STEPS = {"subspace_step": 0.1, "subspace_steps": 4, "full_step": 0.05, "full_steps": 4, "line_search": False}
LINE = {"full_step": 0.3, "full_steps": 1, "line_search": True}


def evaluated(model, x, metric, fast, bounds, eps, first_layer=None, **options):
    """The regularizer, its gradients and its lam, for the same start of the search."""
    model = copy.deepcopy(model)
    search = GradientSearch(**{**STEPS, **options}, fast=fast)
    generator = torch.Generator().manual_seed(1)
    fair = FairRegularizer(
        metric, eps=eps, bounds=bounds, search=search, lam=0.01, generator=generator, first_layer=first_layer
    )
    result = fair.evaluate(model, x)
    result.value.backward()
    return result, [p.grad for p in model.parameters()], fair.lam


def same(model, x, metric, bounds, eps, **options):
    """Float64, so that nothing but the algorithm can differ; the differences are far below 1e-5."""
    fast, fast_gradients, fast_lam = evaluated(model, x, metric, True, bounds, eps, **options)
    plain, plain_gradients, plain_lam = evaluated(model, x, metric, False, bounds, eps, **options)
    torch.testing.assert_close(fast.found.x_worst, plain.found.x_worst, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(fast.found.d_x, plain.found.d_x, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(fast.found.gain, plain.found.gain, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(fast.value, plain.value)
    torch.testing.assert_close(fast_lam, plain_lam)
    for a, b in zip(fast_gradients, plain_gradients):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9)


def ready(name):
    torch.manual_seed(0)
    model = MODELS[name]().double()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
        if isinstance(module, NORMS):  # a norm as it is made would hide its gain and its shift
            for parameter in module.parameters():
                nn.init.normal_(parameter)
    x = torch.randn(40, D, dtype=torch.float64).clamp(-2, 2)
    return model, x, FairMetric(torch.randn(D, 2, dtype=torch.float64))


@pytest.mark.parametrize("eps", [0.1, 0.0])
@pytest.mark.parametrize("bounds", [None, (-2.0, 2.0)])
@pytest.mark.parametrize("name", MODELS)
def test_fast_and_plain_are_the_same(name, bounds, eps):
    model, x, metric = ready(name)
    same(model, x, metric, bounds, eps)
    same(model, x, metric, bounds, eps, starts=2, reach=1.0)
    same(model, x, metric, bounds, eps, **LINE)
    same(model, x, metric, bounds, eps, starts=2, reach=1.0, **LINE)


@pytest.mark.parametrize("name", MODELS)
def test_the_expected_path_is_taken(name):
    model, x, metric = ready(name)
    path = ModelView(model, x).path(DistanceGain(model(x).detach()), metric.directions)
    assert type(path) is KINDS[name]


@pytest.mark.parametrize("options", [{}, LINE], ids=["Adam", "line search"])
@pytest.mark.parametrize("name", ["one hidden layer", "three layers", "tanh", "LayerNorm first", "BatchNorm first"])
def test_float32_to_1e_5(name, options):
    model, x, metric = ready(name)
    model, x, metric = model.float(), x.float(), metric.to(torch.float32)
    fast, fast_gradients, _ = evaluated(model, x, metric, True, None, 0.1, **options)
    plain, plain_gradients, _ = evaluated(model, x, metric, False, None, 0.1, **options)
    torch.testing.assert_close(fast.found.x_worst, plain.found.x_worst, rtol=1e-5, atol=1e-5)
    for a, b in zip(fast_gradients, plain_gradients):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 * float(b.abs().max()))


def test_sigma_metric_on_both_paths():
    model, x, _ = ready("one hidden layer")
    root = torch.randn(D, D - 2, dtype=torch.float64)
    same(model, x, FairMetric(sigma=root @ root.T), None, 0.1)


def test_a_named_first_layer_is_used_and_agrees():
    torch.manual_seed(0)
    model, x = Named().double(), torch.randn(30, D, dtype=torch.float64)
    metric = FairMetric(torch.eye(D, dtype=torch.float64)[:, :2])
    view = ModelView(model, x, first_layer="body")
    assert type(view.path(DistanceGain(model(x).detach()), metric.directions)) is SplitPath
    same(model, x, metric, None, 0.1, first_layer="body")


def test_a_model_that_looks_at_x_again_falls_back_silently():
    torch.manual_seed(0)
    model, x = Named(peeks=True).double(), torch.randn(30, D, dtype=torch.float64)
    metric = FairMetric(torch.eye(D, dtype=torch.float64)[:, :2])
    view = ModelView(model, x, first_layer="body")
    assert type(view.path(DistanceGain(model(x).detach()), metric.directions)) is PlainPath
    same(model, x, metric, None, 0.1, first_layer="body")


def test_a_wrong_name_lists_the_layers():
    with pytest.raises(ValueError, match=r"'boddy' does not name a linear layer.*'body', 'head'"):
        split_named(Named(), "boddy")


def test_hooks_and_parametrizations_are_respected():
    model = MODELS["one hidden layer"]()
    assert split(model) is not None
    handle = model[0].register_forward_hook(lambda module, args, output: 2 * output)
    assert split(model) is None
    handle.remove()
    model[1].register_forward_hook(lambda module, args, output: output + 1)
    assert split(model).relu_layers is None  # the tail runs the modules, so the hook runs too
    hooked, x, metric = model.double(), torch.randn(20, D, dtype=torch.float64), ready("tanh")[2]
    same(hooked, x, metric, None, 0.1)
    normed = MODELS["one hidden layer"]()
    nn.utils.parametrizations.weight_norm(normed[0])
    assert split(normed) is None
    same(normed.double(), x, metric, None, 0.1)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("name", ["LayerNorm first", "BatchNorm first"])
def test_hooks_and_forwards_of_a_norm_and_of_what_is_behind_it_are_respected(name, place):
    x = ready(name)[1]
    hooked, _, metric = ready(name)
    hooked[place].register_forward_hook(lambda module, args, output: 2 * output)
    assert split(hooked.eval()) is None
    same(hooked, x, metric, None, 0.1)
    own, _, _ = ready(name)
    own[place].forward = MethodType(lambda self, x: type(self).forward(self, x).sin(), own[place])
    assert split(own.eval()) is None
    same(own, x, metric, None, 0.1)


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.BatchNorm1d])
def test_a_norm_of_a_type_of_its_own_runs_itself(norm):
    class Own(norm):
        def forward(self, x):
            return super().forward(x).sin()

    torch.manual_seed(0)
    model = nn.Sequential(Own(D), nn.Linear(D, 9), nn.ReLU(), nn.Linear(9, 2)).double()
    assert split(model.eval()) is None
    same(model.train(), *ready("tanh")[1:], None, 0.1)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["LayerNorm first", "BatchNorm first"])
def test_a_norm_first_is_left_as_it_was_found(name, training):
    model, x, metric = ready(name)
    model.train(training)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with torch.no_grad():
        FairRegularizer(metric)(model, x)
    with torch.inference_mode():
        assert torch.isfinite(FairRegularizer(metric)(model, x))
    assert all(module.training == training for module in model.modules())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key


def test_a_batchnorm_that_looks_at_the_batch_is_not_cut():
    model = nn.Sequential(nn.BatchNorm1d(D), nn.Linear(D, 9), nn.ReLU(), nn.Linear(9, 2))
    assert split(model.train()) is None  # what is looked at is the twin in eval mode
    assert split(model.eval()) is not None
    model[0].running_mean = model[0].running_var = None
    assert split(model) is None


@pytest.mark.parametrize("name", ["one hidden layer", "LayerNorm first", "LayerNorm, then tanh", "BatchNorm first"])
def test_gradients_reach_an_encoder_before_the_model(name):
    model, x, metric = ready(name)
    slopes = []
    for fast in (True, False):
        z = x.clone().requires_grad_(True)
        fair = FairRegularizer(metric, search=GradientSearch(fast=fast), generator=torch.Generator().manual_seed(0))
        (slope,) = torch.autograd.grad(fair(model, z), z)
        slopes.append(slope)
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["one hidden layer", "LayerNorm first"])
def test_two_batches_before_one_backward(name):
    model, x, metric = ready(name)
    totals = []
    for fast in (True, False):
        net = copy.deepcopy(model)
        fair = FairRegularizer(metric, search=GradientSearch(fast=fast), generator=torch.Generator().manual_seed(0))
        (fair(net, x[:20]) + fair(net, x[20:])).backward()
        totals.append(net[-3].weight.grad)
    torch.testing.assert_close(totals[0], totals[1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["one hidden layer", "LayerNorm first", "BatchNorm first"])
def test_a_frozen_first_layer_stays_without_gradient(name):
    model, x, metric = ready(name)
    model[0].requires_grad_(False)
    FairRegularizer(metric)(model, x).backward()
    assert model[0].weight.grad is None
    assert all(layer.weight.grad is not None for layer in model[1:] if hasattr(layer, "weight"))


def test_an_empty_batch_teaches_nothing_about_a_model():
    """Under several ranks one may have no rows; the next batch must still be looked at."""
    x = ready("tanh")[1]
    for peeks in (True, False):
        model = Named(peeks).double()
        assert ModelView(model, x[:0], first_layer="body").cut is None
        assert (ModelView(model, x, first_layer="body").cut is None) == peeks
    model.more = nn.Identity()  # a model that was changed is looked at again
    model.peeks = True
    assert ModelView(model, x, first_layer="body").cut is None


class Scaled(nn.Module):
    """The identity as it is made, and in the way of the named layer nevertheless."""

    def __init__(self, kind="scale"):
        super().__init__()
        self.kind, self.scale, self.norm = kind, nn.Parameter(torch.ones(D)), nn.BatchNorm1d(D, eps=0.0)
        self.body, self.head = nn.Linear(D, 12), nn.Linear(12, 3)

    def forward(self, x):
        before = {
            "scale": lambda: x * self.scale,
            "in place": lambda: x.mul_(self.scale),
            "norm": lambda: self.norm(x),
            "a view": lambda: x.flatten(1).view(len(x), -1),
        }[self.kind]()
        return self.head(torch.tanh(self.body(before)))


class LowRank(nn.Linear):
    """Adds nothing until it is trained."""

    def __init__(self, d, h):
        super().__init__(d, h)
        self.down, self.up = nn.Parameter(torch.randn(2, d)), nn.Parameter(torch.zeros(h, 2))

    def forward(self, x):
        return super().forward(x) + x @ self.down.T @ self.up.T


@pytest.mark.parametrize("kind", ["scale", "in place", "norm", "low rank"])
def test_what_is_the_identity_at_the_start_is_not_left_out(kind):
    torch.manual_seed(0)
    model, x = Scaled("scale" if kind == "low rank" else kind).double(), torch.randn(30, D, dtype=torch.float64)
    if kind == "low rank":
        model = nn.Sequential(LowRank(D, 12), nn.Tanh(), nn.Linear(12, 3)).double()
    name, metric = "0" if kind == "low rank" else "body", FairMetric(torch.eye(D, dtype=torch.float64)[:, :2])
    for _ in range(2):
        assert ModelView(model, x, first_layer=name).cut is None
        same(model, x, metric, None, 0.1, first_layer=name)
        with torch.no_grad():  # a step of training
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))


def test_a_view_of_x_is_x():
    model, x = Scaled("a view").double(), torch.randn(30, D, dtype=torch.float64)
    assert ModelView(model, x, first_layer="body").cut is not None
    same(model, x, FairMetric(torch.eye(D, dtype=torch.float64)[:, :2]), None, 0.1, first_layer="body")


LOOKS = {
    "a comparison": lambda x: torch.where(x[:, 1:2] > 0.9, 5 * x[:, :1], 0.0),
    "a condition": lambda x: 5.0 if bool((x[:, 1] > 0.9).any()) else 0.0,
    "a number": lambda x: 5.0 * (max(x[:, 1].tolist()) > 0.9),
    "numpy": lambda x: 5.0 * bool((x[:, 1].detach().numpy() > 0.9).any()),
    "a row": lambda x: sum(float(row[1]) > 0.9 for row in x),
    "a copy": lambda x: (x.detach().clone().clamp(0.9, 0.91).nan_to_num(0.9) - 0.9)[:, 1:2],
    "in place": lambda x: x.nan_to_num_(0.0).clamp(0.9, 0.91)[:, 1:2] - 0.9,
    "as another type": lambda x: (x.type(torch.float16).nan_to_num(0.9).clamp(0.9, 0.91) > 0.9)[:, 1:2] * 5.0,
    "converted": lambda x: (x.to(torch.float16).nan_to_num(0.9).clamp(0.9, 0.91) > 0.9)[:, 1:2] * 5.0,
    "joined": lambda x: torch.cat([x, x], 1).nan_to_num(0.9).clamp(0.9, 0.91)[:, 1:2] - 0.9,
}
HARMLESS = {
    "its shape": lambda x: x.new_zeros(len(x), 1) + x.size(1) - x.shape[-1],
    "its type": lambda x: torch.zeros_like(x).to(x.dtype)[:, :1] * x.ndim * x.is_floating_point(),
    "of its kind": lambda x: (
        x.new_full((len(x), 1), 0.5) + torch.full_like(x, 2.0)[:, :1] + torch.ones(len(x), 1).to(x).type_as(x)
    ),
    "views of it": lambda x: 0.0 * len([x.view(-1), *x.flatten(1).unbind(1), x.data, x.T]),
}


class Looking(nn.Module):
    """Its first layer is given x, which is looked at elsewhere, too."""

    def __init__(self, look) -> None:
        super().__init__()
        self.body, self.head, self.look = nn.Linear(D, 12), nn.Linear(12, 3), look

    def forward(self, x):
        return self.head(torch.tanh(self.body(x))) + self.look(x)


@pytest.mark.parametrize("name", [*LOOKS, *HARMLESS])
def test_a_look_at_x_is_seen_where_the_first_people_do_not_show_it(name):
    """The gate opens for nobody among those on whom the parts are compared with the whole."""
    torch.manual_seed(0)
    model, x = Looking((LOOKS | HARMLESS)[name]).double(), torch.rand(100, D, dtype=torch.float64) / 2
    metric = FairMetric(torch.eye(D, dtype=torch.float64)[:, :2])
    view = ModelView(model, x, first_layer="body")
    path = view.path(DistanceGain(model(x.clone()).detach()), metric.directions)
    assert type(path) is (PlainPath if name in LOOKS else SplitPath)
    if name == "a comparison":
        same(model, torch.rand(100, D, dtype=torch.float64), metric, (0.0, 1.0), 0.1, first_layer="body")


def test_a_model_that_begins_to_change_x_later_says_so():
    model, x = Scaled("a view").double(), torch.randn(30, D, dtype=torch.float64)
    fair = FairRegularizer(FairMetric(torch.eye(D, dtype=torch.float64)[:, :2]), first_layer="body")
    fair(model, x)
    model.kind = "scale"
    with pytest.raises(ValueError, match=r"first_layer='body' is not all that looks at x.*mul.*leave first_layer out"):
        fair(model, x)


@pytest.mark.parametrize("name", ["overwriting tail", "dropout, then in-place"])
def test_tails_that_overwrite_what_they_are_given(name):
    """Also where nothing is overwritten at the start, since all of z is positive."""
    model, x, metric = ready(name)
    with torch.no_grad():
        model[0].bias.fill_(100.0)
        for rows in (0, 20):  # an empty batch first: a rank may have no rows
            FairRegularizer(metric)(model, x[:rows])
    model[0].bias.data.zero_()
    same(model, x, metric, None, 0.1)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e5, 1e7])
@pytest.mark.parametrize("norm", [norm for norm in NORMS if norm is not nn.BatchNorm1d])
def test_a_large_sensitive_column_costs_no_digits(norm, size):
    """In float32, against float64 at the points that were found: the norm of x' may be far below that of x."""
    torch.manual_seed(0)
    model = nn.Sequential(norm(D), nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, 2))
    scale = torch.ones(D)
    scale[0] = size
    x = scale * torch.rand(200, D)
    search = GradientSearch(subspace_step=size / 4, subspace_steps=6, full_steps=0, noise=size / 10)
    fair = FairRegularizer(
        FairMetric(torch.eye(D)[:, :1]), 0.0, (torch.zeros(D), scale), search=search, generator=torch.Generator()
    )
    result, exact = fair.evaluate(model, x), copy.deepcopy(model).double()
    result.value.backward()
    value = (exact(x.double()) - exact(result.found.x_worst.double())).square().mean()
    value.backward()
    torch.testing.assert_close(result.value.double(), value, rtol=1e-5, atol=0)
    for ours, known in zip(model.parameters(), exact.parameters()):
        torch.testing.assert_close(ours.grad.double(), known.grad, rtol=0, atol=2e-5 * float(known.grad.abs().max()))
