import numpy as np
import pytest
import torch

from evenhand.files.checks import check_finite, check_lam, check_metric, read_classes, read_targets


def test_sound_values_pass():
    check_finite({"a": torch.ones(3), "steps": torch.tensor(3)})
    check_metric(torch.eye(3)[:, :2], torch.ones(1, 3))
    check_metric(torch.zeros(3, 0), None)
    check_metric(torch.eye(3), None)  # everything free
    assert check_lam(0) == 0.0


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (["a", "bcd"], "<U3"),
        (["a", "b"], "<U10"),
        (["a"], "<U4096"),
        (["a" * 5000], "<U5000"),
        ([1, 2], "<i8"),
        ([True, False], "|b1"),
        (["a", 1], "|O"),
    ],
)
def test_labels_come_back_in_their_type(labels, dtype):
    found = read_classes({"dtype": dtype, "values": labels})
    assert found.dtype == np.dtype(dtype)
    assert found.tolist() == labels


def test_what_is_not_a_label():
    with pytest.raises(ValueError, match="texts, numbers or booleans"):
        read_classes({"dtype": "O", "values": [[1]]})
    with pytest.raises(ValueError, match="not supported"):
        read_classes({"dtype": "M8[s]", "values": [1]})
    with pytest.raises(ValueError, match="5,000 letters each, the longest has 1"):
        read_classes({"dtype": "<U5000", "values": ["a", "b"]})
    with pytest.raises(ValueError, match="4,097 letters each, the longest has 0"):
        read_classes({"dtype": "<U4097", "values": [1, 2]})


@pytest.mark.parametrize(
    ("directions", "factor", "says"),
    [
        (torch.ones(3), None, r"shape \(3,\)"),
        (torch.ones(2, 3), None, r"shape \(2, 3\)"),
        (torch.eye(2).long(), None, "shape"),
        (2 * torch.eye(2), None, "not orthonormal"),
        (torch.tensor([[float("nan")], [0.0]]), None, "the metric holds NaN"),
        (torch.eye(3)[:, :1], torch.ones(3), "factor has shape"),
        (torch.eye(3)[:, :1], torch.ones(3, 2), "factor has shape"),
        (torch.eye(3)[:, :1], torch.ones(3, 3).long(), "factor has shape"),
        (torch.eye(3)[:, :1], torch.full((1, 3), float("inf")), "factor holds NaN or infinite"),
    ],
)
def test_matrices_that_are_no_metric(directions, factor, says):
    with pytest.raises(ValueError, match=says):
        check_metric(directions, factor)


@pytest.mark.parametrize("lam", [-1e-9, float("nan"), float("inf")])
def test_a_dual_variable_is_zero_or_positive(lam):
    with pytest.raises(ValueError, match="zero or positive"):
        check_lam(lam)


def test_the_scale_of_targets_comes_back_as_it_was():
    found = read_targets({"scale": [2.0, 1e-300], "mean": [1e8 + 0.1, -3]})
    assert (found.outputs, found.scale.tolist(), found.mean.tolist()) == (2, [2.0, 1e-300], [1e8 + 0.1, -3.0])


@pytest.mark.parametrize(
    ("scale", "mean", "says"),
    [
        ([1.0], [1.0, 2.0], "shape"),
        ([], [], "shape"),
        ([[1.0]], [[1.0]], "shape"),
        ([0.0], [1.0], "above zero"),
        ([-1.0], [1.0], "above zero"),
        ([float("inf")], [1.0], "finite"),
        ([1.0], [float("nan")], "finite"),
        (["a"], [1.0], "could not convert"),
    ],
)
def test_what_is_no_scale_of_targets(scale, mean, says):
    with pytest.raises(ValueError, match=says):
        read_targets({"scale": scale, "mean": mean})
