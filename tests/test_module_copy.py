"""A network that is asked answers as the user's own, which stays as it was."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm
from torch.optim.swa_utils import AveragedModel

from evenhand.module_copy import asked_copy, changed_by_hand, inner, keeps_its_precision

X = torch.linspace(-1, 1, 15).reshape(5, 3)


def net(wrap=lambda layer: layer):
    torch.manual_seed(0)
    return nn.Sequential(wrap(nn.Linear(3, 8)), nn.ReLU(), wrap(nn.Linear(8, 2))).eval()


def pruned(layer):
    prune.random_unstructured(layer, "weight", amount=0.3)
    return prune.l1_unstructured(layer, "weight", amount=0.3)  # twice: a container of both


def old_weight_norm(layer):
    with pytest.warns(FutureWarning):
        return weight_norm(layer)


@pytest.mark.parametrize("wrap", [pruned, old_weight_norm, spectral_norm, parametrizations.weight_norm])
def test_weights_that_are_computed_from_others(wrap):
    model = net(wrap)
    expected, hooks = model(X).detach(), len(model[0]._forward_pre_hooks)
    asked = asked_copy(model)
    torch.testing.assert_close(asked(X.double()).float(), expected)
    assert changed_by_hand(asked) is None
    assert not any(parameter.requires_grad for parameter in asked.parameters())
    assert len(model[0]._forward_pre_hooks) == hooks
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    torch.testing.assert_close(model(X).detach(), expected)


@pytest.mark.parametrize(
    "wrap",
    [
        nn.DataParallel,
        AveragedModel,
        lambda m: torch.compile(m, backend="eager"),
        lambda m: AveragedModel(nn.DataParallel(m)),
    ],
)
def test_wrappers_are_taken_off(wrap):
    model = net()
    assert type(inner(wrap(model))) is nn.Sequential
    torch.testing.assert_close(asked_copy(wrap(model))(X.double()).float(), model(X))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_network_is_asked_in_float64():
    model = net()
    asked = asked_copy(torch.jit.script(copy.deepcopy(model)))
    found = asked(X.double())
    assert found.dtype == torch.float64
    assert not found.requires_grad
    torch.testing.assert_close(found.float(), model(X).detach())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_a_quantised_network_stays_what_it_is():
    model = torch.ao.quantization.quantize_dynamic(nn.Sequential(net(), nn.BatchNorm1d(2)).eval(), {nn.Linear})
    assert keeps_its_precision(model)
    torch.testing.assert_close(asked_copy(model)(X), model(X))
    assert not keeps_its_precision(net())
    assert not keeps_its_precision(nn.BatchNorm1d(2, affine=False))


def test_what_computes_beside_the_layers_is_told():
    model = net()
    assert changed_by_hand(model) is None
    handle = model[2].register_forward_hook(lambda module, given, out: 2 * out)
    assert changed_by_hand(model) == "its part '2' has forward hooks"
    handle.remove()
    model.register_forward_pre_hook(lambda module, given: given)
    assert changed_by_hand(model) == "it has forward hooks"
    other = net()
    other.forward = lambda x: x
    assert changed_by_hand(other) == "it was given another forward"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Please use quant_min:UserWarning")
def test_a_network_in_quantisation_aware_training_keeps_its_ranges():
    quant = torch.ao.quantization
    model = nn.Sequential(quant.QuantStub(), net()).train()
    model.qconfig = quant.get_default_qat_qconfig("fbgemm")
    quant.prepare_qat(model, inplace=True)
    model(X)
    asked = asked_copy(model)
    far = asked(10 * X)
    torch.testing.assert_close(asked(10 * X), far, rtol=0, atol=0)  # the first call has taught it nothing
    torch.testing.assert_close(far, model.eval().apply(quant.disable_observer)(10 * X))
    assert keeps_its_precision(model)
