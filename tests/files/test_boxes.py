"""A set of possible people comes back as it was."""

import pytest
import torch

from evenhand.domain import Box, FreeBox
from evenhand.files.boxes import read_box, write_box

BOX = Box([-1.0, 0, 0, 0, 0], [2.0, 1, 1, 1, 1], blocks=[(1, 2)], binary=[4])
FREE = BOX.freed(torch.tensor([[1.0], [0.5], [-0.5], [0.2], [0.0]]), torch.rand(9, 5, dtype=torch.float64))


@pytest.mark.parametrize("box", [BOX, FREE], ids=["box", "free box"])
def test_there_and_back(box):
    tensors = {}
    again = read_box(write_box(box, tensors, "bounds"), tensors, "bounds")
    assert type(again) is type(box)
    assert (again.binary, again.blocks) == (box.binary, box.blocks)
    for name in ("low", "high", "free", "free_low", "free_high") if isinstance(box, FreeBox) else ("low", "high"):
        assert torch.equal(getattr(again, name), getattr(box, name))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"bounds.low": torch.zeros(5)}, "float64"),
        ({"bounds.low": torch.zeros(5, 1).double()}, "one number"),
        ({"bounds.high": torch.zeros(4).double()}, "one number"),
        ({"bounds.high": torch.full((5,), -9.0).double()}, "low <= high"),
        ({"bounds.free": torch.ones(5, 1).double()}, "orthonormal"),
        ({"bounds.free_low": torch.full((1,), torch.nan).double()}, "finite"),
        ({"bounds.free": torch.eye(4).double()}, "k limits"),
    ],
)
def test_what_no_box_can_be_is_refused(change, says):
    tensors = {}
    given = write_box(FREE, tensors, "bounds")
    with pytest.raises(ValueError, match=says):
        read_box(given, tensors | change, "bounds")


def test_columns_are_whole_numbers():
    tensors = {}
    given = write_box(BOX, tensors, "bounds")
    for wrong in ([0.5], "4", [True], None):
        with pytest.raises(TypeError, match="whole numbers"):
            read_box(given | {"binary": wrong}, tensors, "bounds")
