import numpy as np
import pytest
import torch

from evenhand import Box, FairMetric, GradientSearch, SenSeIClassifier
from evenhand.files.parameters import read_parameters, write_parameters
from evenhand.output_distances import total_variation
from evenhand.regularizer import gradient_rule, ratio_rule

METRIC = FairMetric([[1.0], [0.0]])


def again(**given):
    """The parameters of an estimator, to JSON and back."""
    tensors = {}
    written = write_parameters(SenSeIClassifier(METRIC, **given), tensors)
    return read_parameters(written, tensors, METRIC)


@pytest.mark.parametrize(
    "given",
    [
        {"rho": np.float64(3.5), "hidden": (4, 5), "steps": np.int64(7)},
        {"search": GradientSearch(starts=3, noise=0.25)},
        {"lam_rule": ratio_rule(low=0.5)},
        {"lam_rule": gradient_rule(0.125)},
        {"output_distance": total_variation},
        {"class_weight": {"no": 1.0, "yes": 2.5}},
    ],
    ids=str,
)
def test_parameters_come_back(given):
    found = again(**given)
    for name, value in given.items():
        assert found[name] == value
        assert type(found[name]) in (type(value), float, int)
    assert found["fair_metric"] is METRIC


def test_arrays_come_back_as_tensors():
    low, high = torch.zeros(2), np.ones(2)
    found = again(bounds=(low, high))["bounds"]
    assert torch.equal(found[0], low)
    assert np.array_equal(found[1], high)


def test_a_box_comes_back_with_its_discrete_columns_and_what_training_alone_used_does_not():
    box = Box([0.0, 0.0], [1.0, 2.0], binary=[0])
    found = again(bounds=box, optimizer=torch.optim.SGD, callbacks=[print])
    assert found["bounds"].binary == (0,)
    assert torch.equal(found["bounds"].high, box.high)
    assert found["optimizer"] is found["callbacks"] is None


def test_what_only_a_pickle_could_keep_is_named():
    with pytest.raises(ValueError, match=r"parameter output_distance=.*set_params\(output_distance=None\)"):
        again(output_distance=lambda h, other: h[:, 0])


@pytest.mark.parametrize(
    "value", [{"$": "function", "name": "system"}, {"$": "os"}, {"$": "tensor", "key": 3}, [1], {}]
)
def test_hostile_parameters_are_refused(value):
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_parameters({"rho": value}, {"module.0.weight": torch.zeros(1)}, METRIC)
