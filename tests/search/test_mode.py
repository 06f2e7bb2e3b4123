import copy
import functools
import threading
import warnings
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from evenhand.fair_metrics import FairMetric
from evenhand.module_copy import asked_copy
from evenhand.regularizer import FairRegularizer
from evenhand.search.mode import (
    eval_mode,
    gradients_allowed,
    hidden_from,
    leaves_of,
    mode_free,
    modules_called,
    modules_in,
    on_ordinary_path,
    ordinary_path,
    still,
    twin,
)

NET = nn.Sequential(nn.Linear(2, 3), nn.Dropout(), nn.BatchNorm1d(3))


class Holder:
    """No module itself, as a wrapper written by hand."""

    def __init__(self, net):
        self.parts = {"net": net}

    def __call__(self, x):
        return self.parts["net"](x)

    def logits(self, x):
        return self.parts["net"](x)


def mentions_a_global(x):
    return next(NET(row) for row in [x])


HIDDEN = {
    "module": lambda net: net,
    "closure": lambda net: lambda x: net(x),
    "bound method": lambda net: net.forward,
    "partial": lambda net: functools.partial(lambda net, x: net(x), net),
    "keyword partial": lambda net: functools.partial(lambda x, net: net(x), net=net),
    "default": lambda net: lambda x, net=net: net(x),
    "object": lambda net: Holder(net),
    "method of an object": lambda net: Holder(net).logits,
    "list in a closure": lambda net: (lambda nets: lambda x: nets[0](x))([net]),
    "function in a closure": lambda net: (lambda inner: lambda x: inner(x) + 1)(lambda x: net(x)),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_module_is_found_wherever_it_hides(name):
    net = nn.Sequential(nn.Linear(2, 3), nn.Dropout())
    hidden = HIDDEN[name](net)
    assert net in modules_in(hidden)
    with eval_mode(hidden):
        assert not net[1].training
    assert net[1].training


def test_a_global_that_the_code_mentions_is_found_and_nothing_else():
    assert modules_in(mentions_a_global) == [NET]
    assert modules_in(torch.sin) == []
    assert modules_in(lambda x: 2 * x) == []


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


def test_eval_mode_is_re_entrant_whoever_leaves_first():
    model = nn.Dropout()
    outer, inner = eval_mode(model), eval_mode(model)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert not model.training  # the other one still looks
    inner.__exit__(None, None, None)
    assert model.training


def test_eval_mode_from_many_threads():
    model, wrong = nn.Sequential(nn.Dropout(), nn.Dropout()), []

    def look():
        for _ in range(300):
            with eval_mode(model):
                if any(m.training for m in model.modules()):
                    wrong.append(1)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert all(m.training for m in model.modules())


@pytest.mark.parametrize("way", ["module", "function"])
def test_who_comes_while_somebody_else_looks_sees_eval_mode_when_they_have_left(way):
    model, x = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()).train(), torch.rand(8, 2)
    expected, before = copy.deepcopy(model).eval()(x), model[0].running_mean.clone()
    with eval_mode(model):
        quiet = still(model if way == "module" else lambda x: model(x))
    assert model.training
    torch.testing.assert_close(quiet(x), expected)
    assert torch.equal(model[0].running_mean, before)
    assert model[0].training


def test_modules_that_run_stay_in_eval_mode_when_somebody_else_leaves():
    model, modes = nn.Dropout(), []
    somebody = eval_mode(model)
    somebody.__enter__()

    def call():
        model(torch.ones(1))
        somebody.__exit__(None, None, None)
        modes.append(model.training)

    assert modules_called(call) == [model]
    assert modes == [False]
    assert model.training


def test_eval_mode_lets_functions_pass():
    with eval_mode(torch.sin):
        pass


def attentive():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


PEOPLE, PADDED = torch.rand(6, 5, 4), (torch.arange(5) > 2) & (torch.arange(6) % 2 == 0)[:, None]
LOOKED_AT = {
    "in train mode": lambda net: still(net.train()),
    "in eval mode": lambda net: still(net.eval()),
    "a function": lambda net: still(lambda x, **mask: net.eval()(x, **mask)),
    "a function, in train mode": lambda net: still((lambda net: lambda x, **mask: net(x, **mask))(net.train())),
    "by the way": lambda net: on_ordinary_path(net.eval(), net),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("way", LOOKED_AT)
@pytest.mark.parametrize("trained", [True, False])
def test_attention_computes_the_same_with_gradients_and_without(way, trained):
    net = attentive().requires_grad_(trained)
    known = copy.deepcopy(net).eval().requires_grad_(True)(PEOPLE, src_key_padding_mask=PADDED).detach()
    look, was = LOOKED_AT[way](net), net.training
    with torch.no_grad():
        torch.testing.assert_close(look(PEOPLE, src_key_padding_mask=PADDED), known)
        assert net.training == was
        with eval_mode(net):
            torch.testing.assert_close(net(PEOPLE, src_key_padding_mask=PADDED), known)
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_other_threads_and_other_models_keep_the_fast_path():
    net, fast = attentive().eval().requires_grad_(False), []
    with ordinary_path([net]):
        ordinary = net(PEOPLE, src_key_padding_mask=PADDED)
        thread = threading.Thread(target=lambda: fast.append(net(PEOPLE, src_key_padding_mask=PADDED)))
        thread.start()
        thread.join()
    assert bool((fast[0][PADDED] == 0).all())
    assert not bool((ordinary[PADDED] == 0).any())
    plain = nn.Linear(2, 2)
    assert on_ordinary_path(plain, plain) is plain
    assert still(plain) is plain


def test_a_twin_is_the_model_in_eval_mode_and_follows_its_parameters():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    other, x = twin(model), torch.randn(6, 3)
    assert [p is q for p, q in zip(model.parameters(), other.parameters())] == [True] * 6
    assert model.training
    assert not any(m.training for m in other.modules())
    with torch.no_grad():
        model[0].weight.mul_(2)
        model[1].running_mean.add_(1)
        model[3].bias = nn.Parameter(torch.ones(2))  # replaced, not only changed
    torch.testing.assert_close(other(x), model.eval()(x))
    before = model[1].running_mean.clone()
    model.train()
    still(model)(x)
    assert torch.equal(model[1].running_mean, before)


def test_a_shared_layer_stays_shared_and_replaced_layers_are_replaced():
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    other = twin(model)
    assert other[0] is other[2]
    double = twin(model, {model[1]: nn.Identity()})
    x = torch.randn(3, 2)
    torch.testing.assert_close(double(x), shared(shared(x)))
    torch.testing.assert_close(model(x), shared(shared(x).relu()))


class KeepsItself(nn.Module):
    """A function kept by the module that calls the module: a twin of it would run the original."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.9)
        self.run = lambda x: self.drop(x)

    def forward(self, x):
        return self.run(x)


class Held(nn.Module):
    """Reaches its own dropout, or that of a part beside it, by a way of its own."""

    def __init__(self, way):
        super().__init__()
        self.parts, self.body = nn.ModuleList([nn.Module(), nn.Dropout(0.9)]), nn.Linear(2, 8)
        object.__setattr__(self.parts[0], "way", way(self, self.parts[1]))

    def forward(self, x):
        held = self.parts[0].way
        while not isinstance(held, nn.Module):
            held = (
                held() if isinstance(held, weakref.ref) else list(held.values() if isinstance(held, dict) else held)[-1]
            )
        return (held.parts[1] if isinstance(held, Held) else held)(self.body(x))


HELD = {
    "itself in a list": lambda own, drop: [own],
    "a part in a table": lambda own, drop: {"name": "drop", "part": drop},
    "pairs": lambda own, drop: (("drop", drop),),
    "a weak reference": lambda own, drop: weakref.ref(own),
    "an attribute": lambda own, drop: own,
}


@pytest.mark.parametrize("way", HELD)
def test_a_twin_holds_twins_also_outside_of_the_tree(way):
    model, x = Held(HELD[way]), torch.rand(4, 2)
    before, look = model.parts[0].way, still(model.train())
    with torch.no_grad():
        torch.testing.assert_close(look(x), model.body(x))
    assert isinstance(look, Held) == (way != "an attribute")  # which is put in eval mode for the time of the call
    assert look is not model
    assert model.parts[0].way is before
    assert all(part.training for part in model.modules())


def test_what_has_no_twin_is_still_nevertheless():
    model, x = KeepsItself(), torch.ones(4, 50)
    assert twin(model) is None
    torch.testing.assert_close(still(model)(x), x)
    assert model.drop.training
    patched = nn.Sequential(nn.Dropout(0.9))
    patched.forward = lambda x: nn.Sequential.forward(patched, x)
    assert twin(patched) is None
    torch.testing.assert_close(still(patched)(x), x)
    scripted = torch.nn.Dropout(0.9)
    torch.testing.assert_close(still(lambda z: scripted(z))(x), x)


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


def test_modules_that_run_are_found_in_eval_mode_and_left_as_they_were():
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2)).train()
    model[2].eval()
    seen = []

    def run():
        seen.append([module.training for module in (model[1], model[2])])
        result = model(torch.rand(5, 2))
        seen.append([module.training for module in (model, model[1], model[2])])
        return result

    statistics = model[1].running_mean.clone()
    assert modules_called(run) == [model]
    assert seen == [[True, False], [False, False, False]]
    assert [module.training for module in model] == [True, True, False, True]
    assert torch.equal(model[1].running_mean, statistics)
    with pytest.raises(ZeroDivisionError):
        modules_called(lambda: (run(), 1 / 0))
    assert model[1].training
    assert modules_called(lambda: None) == []


def dropping(model):
    """A hook that follows the mode of what it hangs on, as dropout does."""
    model[0].register_forward_hook(lambda module, args, output: F.dropout(output, 0.5, module.training))
    return model


def spectral(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch about the old kind, which is a hook before the forward
        nn.utils.spectral_norm(model[0])
    return model


def patched(model):
    linear = model[0]
    linear.forward = lambda x: F.dropout(F.linear(x, linear.weight, linear.bias), 0.5, linear.training)
    return model


@pytest.mark.parametrize("change", [dropping, spectral, patched])
def test_what_hangs_on_a_module_may_follow_its_mode(change):
    torch.manual_seed(0)
    model, x = change(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))).train(), torch.rand(30, 4)
    assert not mode_free(model)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    torch.testing.assert_close(still(model)(x), still(model)(x))
    torch.testing.assert_close(still(model)(x), model.eval()(x))
    model.train()
    for key, value in model.state_dict().items():
        assert torch.equal(value, state[key]), key


def test_modules_that_a_call_hides_are_those_that_are_neither_seen_nor_twins():
    seen, hidden = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)), nn.Dropout(0.5)
    x, other = torch.rand(4, 2), twin(seen)
    assert hidden_from([seen], lambda: (seen(x), other(x), nn.Dropout(0.5)(x))) == []
    assert hidden_from([seen], lambda: hidden(other(x))) == [hidden]
    assert hidden.training


def test_leaves_are_those_of_the_graph_and_each_is_named_once():
    first, second, x = nn.Linear(3, 3), nn.Linear(3, 2), torch.rand(4, 3, requires_grad=True)
    first.bias.requires_grad_(False)
    z = torch.tanh(first(first(x)))
    assert {id(t) for t in leaves_of([z, second(z)])} == {id(t) for t in (x, first.weight, *second.parameters())}
    assert leaves_of([second(z)])[-1] is not second.weight  # from near to far
    assert leaves_of([x, z.detach(), torch.ones(2)]) == []
    assert leaves_of([second.weight]) == [second.weight]  # an input that is learned


@pytest.mark.parametrize("training", [True, False])
def test_fake_quantisation_learns_no_range_from_a_look(training):
    quant = pytest.importorskip("torch.ao.quantization")
    model = nn.Sequential(quant.QuantStub(), nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    model.qconfig = quant.get_default_qat_qconfig("fbgemm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch moves these functions to another package
        quant.prepare_qat(model.train(), inplace=True)
    x = torch.rand(16, 2)
    model(x)
    model.train(training)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    far = still(model)(10 * x)
    for key, value in model.state_dict().items():
        assert torch.equal(value, state[key]), key
    frozen = copy.deepcopy(model).eval().apply(quant.disable_observer)
    torch.testing.assert_close(far, frozen(10 * x), rtol=0, atol=0)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.LSTM(3, 4, num_layers=2, dropout=0.5, batch_first=True), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x)[0][:, -1])


class Called(torch.overrides.TorchFunctionMode):
    """Notes dropout and mode of each call of a recurrent layer."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") == "lstm":
            self.found.append((args[5], args[6]))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("way", "at"), [(lambda net: net, None), (lambda net: net, "body"), (lambda net: lambda x: net(x), None)]
)
def test_recurrent_layers_lose_their_dropout_and_not_their_mode(training, way, at):
    """Of a recurrent layer in eval mode cuDNN gives no slopes."""
    net, x = Reader().train(training), torch.rand(5, 4, 3)
    metric = FairMetric(torch.eye(12 if at is None else 16)[:, :2])
    with Called() as calls:
        result = FairRegularizer(metric, eps=0.1, lam=0.3, at=at).eval().evaluate(way(net), x)
        result.value.backward()
    assert set(calls.found) == {(0.0, True)}
    assert [module.training for module in net.modules()] == [training] * 3
    assert net.body.dropout == 0.5
    torch.testing.assert_close(result.h_x, net.eval()(x))
    wide = asked_copy(net)
    with Called() as calls:
        wide(x.double())
    assert calls.found == [(0.0, True)]
    torch.testing.assert_close(wide(x.double()).float(), net(x))
