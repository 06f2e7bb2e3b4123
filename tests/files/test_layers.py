import pytest
import torch
from torch import nn

from evenhand.files.layers import LAYERS, UnknownLayer, build, built, describe


def net():
    return nn.Sequential(
        nn.Linear(3, 4, bias=False),
        nn.Sequential(nn.BatchNorm1d(4), nn.LeakyReLU(0.2), nn.Dropout(0.3)),
        nn.LayerNorm(4, eps=1e-3),
        nn.GELU(approximate="tanh"),
        nn.Linear(4, 2),
    ).eval()


def test_described_and_built_again_it_is_the_same_network():
    torch.manual_seed(0)
    first = net()
    again = built(describe(first), first.state_dict()).eval()
    assert repr(again) == repr(first)
    x = torch.randn(5, 3)
    assert torch.equal(again(x), first(x))
    assert all(p.requires_grad and p.device.type == "cpu" for p in again.parameters())


def test_a_network_of_other_layers_has_no_description():
    class Own(nn.Linear):
        pass

    assert describe(nn.Sequential(nn.Linear(2, 2), Own(2, 2))) is None
    assert describe(nn.Sequential(nn.Conv1d(1, 1, 1))) is None
    Own.__name__ = "Linear"  # a name is not enough
    assert describe(Own(2, 2)) is None


@pytest.mark.parametrize(
    ("layers", "why"),
    [
        ({"type": "Conv1d", "arguments": {}}, "may not hold"),
        ({"type": "Linear", "arguments": {"in_features": 2, "out_features": 2, "device": "cuda"}}, "unknown arguments"),
        ({"type": "Linear", "arguments": {"in_features": 1 << 21, "out_features": 2}}, "numbers up to"),
        ({"type": "ReLU", "arguments": [1]}, "unknown arguments"),
        ("Linear", "not sound"),
    ],
)
def test_only_what_is_known_is_built(layers, why):
    with pytest.raises(UnknownLayer, match=why):
        build(layers)


def test_nesting_and_number_are_limited():
    deep = {"type": "ReLU"}
    for _ in range(30):
        deep = {"type": "Sequential", "children": [["0", deep]]}
    with pytest.raises(UnknownLayer, match="not sound"):
        build(deep)

    many = [[str(i), {"type": "Identity"}] for i in range(10_000)]
    assert len(build({"type": "Sequential", "children": many[1:]})) == 9_999  # and the one around them
    with pytest.raises(UnknownLayer, match="not sound"):
        build({"type": "Sequential", "children": many})


def test_every_known_layer_can_be_described():
    for name, (kind, arguments) in LAYERS.items():
        given = {"in_features": 2, "out_features": 3, "num_features": 2, "normalized_shape": (2,)}
        layer = kind(**{k: given[k] for k in arguments if k in given})
        assert describe(layer)["type"] == name
        assert repr(build(describe(layer))) == repr(layer)
