"""What is not certified: people who were seen or lie outside, models that cannot be read, statements without sense."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from certify.models import BOX, EPS, METRIC, NET_BOX, NET_METRIC, QUICK, linear_model, net, net_people, people
from evenhand.audit import audit
from evenhand.bounds.layers import CannotCertify
from evenhand.certify.certify import certify, certify_individuals
from evenhand.variations import Variations


def test_held_out_people_must_not_be_tuning_or_training_people():
    model, x = net(0), net_people(60)
    given = {"model": model, "fair_metric": NET_METRIC, "eps": EPS, "bounds": NET_BOX}
    with pytest.raises(ValueError, match="20 of 60 held-out rows are also in x_tune"):
        certify(x_held_out=x, x_tune=np.concatenate([net_people(20, 1), x[40:]]), **given)
    with pytest.raises(ValueError, match="also in x_train"):
        certify(x_held_out=x, x_tune=net_people(40, 1), x_train=x[:1], **given)
    labels = pd.DataFrame(x, index=np.arange(100, 160))
    with pytest.raises(ValueError, match="equal index labels"):
        certify(x_held_out=labels, x_tune=labels.iloc[:10], **given)
    twins = pd.DataFrame(x[:20], index=np.arange(500, 520))  # other people with the same values: allowed with labels
    once = {**given, "model": nn.Linear(3, 2), **QUICK}
    certify(x_held_out=labels[:20], x_tune=twins, **once)
    certify(x_held_out=x[:20], x_tune=x[:20], distinct_people=True, **once)


def test_rows_outside_the_bounds_are_counted_and_refused():
    x = net_people(60)
    x[:4, 1] = 3.0
    with pytest.raises(ValueError, match="4 of 60 rows lie outside the bounds"):
        certify(net(0), x, NET_METRIC, EPS, NET_BOX, x_tune=net_people(40, 1), **QUICK)
    x = net_people(60)
    x[0, 0] = 0.5  # no value of a binary column
    with pytest.raises(ValueError, match=r"1 of 60 rows .* binary"):
        certify(net(0), x, NET_METRIC, EPS, NET_BOX, x_tune=net_people(40, 1), **QUICK)


def test_models_that_cannot_be_certified_are_refused_with_the_reason():
    class Shifted(nn.Sequential):
        def forward(self, x):
            return super().forward(x) ** 2

    with pytest.raises(CannotCertify, match="holds pow"):
        certify(Shifted(nn.Linear(3, 2)), net_people(60), NET_METRIC, EPS, NET_BOX)
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    with pytest.raises(CannotCertify, match=r"LayerNorm; audit\(\) gives a lower bound"):
        certify(model, net_people(60), NET_METRIC, EPS, NET_BOX)
    with pytest.raises(CannotCertify, match="audit"):
        certify(lambda x: x, net_people(60), NET_METRIC, EPS, NET_BOX)
    with pytest.raises(ValueError, match="x_tune is needed"):
        certify(net(0), net_people(20), NET_METRIC, EPS, NET_BOX)


def test_statements_that_make_no_sense_are_refused():
    for change, says in (
        ({"eps": -1}, "eps must be"),
        ({"confidence": 95}, "0.95"),
        ({"confidence": 1}, "strictly"),
        ({"eps": "0.01"}, "eps must be a number, .* got '0.01' of type str"),
        ({"device": "nowhere"}, "device='nowhere' cannot be used here"),
    ):
        given = {"eps": EPS, **change}
        with pytest.raises(ValueError, match=says):
            certify(linear_model(), people(60), METRIC, bounds=BOX, x_tune=people(20, 1), **given)
        with pytest.raises(ValueError, match=says):
            certify(linear_model(), Variations(np.zeros((9, 2, 2)), np.arange(9)), None, d_y_max=1.0, **given)
    for change, says in (({"eps": "0.01"}, "eps must be a number"), ({"device": "nowhere"}, "cannot be used here")):
        with pytest.raises(ValueError, match=says):
            certify_individuals(linear_model(), people(20), METRIC, bounds=BOX, **{"eps": EPS, **change})


def test_a_network_whose_layers_do_not_say_what_it_computes_is_refused_with_the_reason():
    x, given = net_people(60), (NET_METRIC, EPS, NET_BOX)
    hooked, replaced = net(), net()
    handle = hooked[0].register_forward_hook(lambda module, rows, out: 3 * out)
    replaced.forward = lambda x: x[:, :2]
    for model, says in ((hooked, "its part '0' has forward hooks; take it away"), (replaced, "given another forward")):
        with pytest.raises(CannotCertify, match=says):
            certify(model, x, *given)
        assert audit(model, x, *given).r_low > 0
    handle.remove()
    assert certify(hooked, x, *given, **QUICK).r_high > 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:torch.quantize_per_tensor:UserWarning")
def test_networks_that_cannot_be_read_any_more_are_refused_with_the_cure():
    x, given = net_people(60), (NET_METRIC, EPS, NET_BOX)
    with pytest.raises(CannotCertify, match="certify the module that was scripted"):
        certify(torch.jit.script(net()), x, *given)
    with pytest.raises(CannotCertify, match="before it was quantised"):
        certify(torch.ao.quantization.quantize_dynamic(net(), {nn.Linear}), x, *given)


@pytest.mark.parametrize("wrap", [nn.DataParallel, AveragedModel, lambda m: torch.compile(m, backend="eager")])
def test_what_wraps_a_network_is_no_part_of_it(wrap):
    x, given = net_people(60), (NET_METRIC, EPS, NET_BOX)
    found, plain = (certify(model, x, *given, **QUICK) for model in (wrap(net()), net()))
    assert (found.r_low, found.r_high) == (plain.r_low, plain.r_high)
