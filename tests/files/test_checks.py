import numpy as np
import pytest
import torch

from evenhand.files.checks import check_finite, check_lam, check_metric, read_classes


def test_sound_values_pass():
    check_finite({"a": torch.ones(3), "steps": torch.tensor(3)})
    check_metric(torch.eye(3)[:, :2], torch.ones(1, 3))
    check_metric(torch.zeros(3, 0), None)
    assert check_lam(0) == 0.0


@pytest.mark.parametrize(
    ("labels", "dtype"), [(["a", "bcd"], "<U3"), ([1, 2], "<i8"), ([True, False], "|b1"), (["a", 1], "|O")]
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
