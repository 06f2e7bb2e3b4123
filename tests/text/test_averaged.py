import pytest
import torch
from torch import nn

from evenhand.estimators.base import mlp
from evenhand.text.averaged import mean_network, on_other_features


def networks(*hidden, n=3, outputs=2):
    return [mlp(4, hidden, outputs, torch.Generator().manual_seed(seed)).double() for seed in range(n)]


@pytest.mark.parametrize("hidden", [(), (5,), (6, 3), (4, 3, 2)])
@pytest.mark.parametrize("n", [1, 3])
def test_its_outputs_are_the_mean_of_theirs(hidden, n):
    each, x = (
        networks(*hidden, n=n),
        torch.randn(50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(9)),
    )
    expected = torch.stack([network(x) for network in each]).mean(dim=0)
    assert torch.allclose(mean_network(each)(x), expected, atol=1e-12)


def test_it_is_an_ordinary_network_of_its_own():
    each = networks(5)
    joint = mean_network(each)
    assert [type(layer) for layer in joint] == [nn.Linear, nn.ReLU, nn.Linear]
    assert joint[0].out_features == 15
    with torch.no_grad():
        joint[0].weight.zero_()
    assert each[0][0].weight.abs().sum() > 0  # theirs are left as they are


def test_networks_of_other_depths_are_refused():
    with pytest.raises(ValueError, match=r"as many linear layers, got \[2, 3\]"):
        mean_network([*networks(5, n=1), *networks(5, 4, n=1)])


def test_a_network_of_other_features():
    network, m = networks(6, 3)[0], torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    x = torch.randn(20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    before = network(x @ m)
    assert torch.allclose(on_other_features(network, m)(x), before, atol=1e-12)
    assert torch.equal(network(x @ m), before)
