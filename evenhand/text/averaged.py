"""The mean of several networks as one network, which can be saved, audited and certified as any other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["mean_network", "on_other_features"]


def mean_network(networks: Sequence[nn.Module]) -> nn.Sequential:
    """One network whose outputs are the mean of those of networks of linear layers and ReLU, equally deep.

    Exact: hidden units stand side by side and do not see each other, the last layer takes the mean; of linear models
    the mean is one.
    """
    each = [[layer for layer in network.modules() if isinstance(layer, nn.Linear)] for network in networks]
    depth = len(each[0])
    if depth == 0 or any(len(layers) != depth for layers in each):
        raise ValueError(f"expected networks of as many linear layers, got {[len(layers) for layers in each]}")
    joint: list[nn.Module] = []
    for i in range(depth):
        weights, biases = [layers[i].weight.detach() for layers in each], [layers[i].bias.detach() for layers in each]
        if depth == 1:
            weight = torch.stack(weights).mean(dim=0)
        elif i == 0:
            weight = torch.cat(weights)
        elif i < depth - 1:
            weight = torch.block_diag(*weights)  # type: ignore[no-untyped-call]
        else:
            weight = torch.cat(weights, dim=1) / len(each)
        bias = torch.cat(biases) if i < depth - 1 else torch.stack(biases).mean(dim=0)
        joint += [_linear(weight, bias), nn.ReLU()]
    return nn.Sequential(*joint[:-1]).eval()


def on_other_features(network: nn.Module, m: Tensor) -> nn.Sequential:
    """The network of x that is `network` of x @ m, of the same layers: m goes into the first."""
    first, *rest = network.children()
    assert isinstance(first, nn.Linear)
    weight = (first.weight.detach().to(m) @ m.T).to(first.weight)
    return nn.Sequential(_linear(weight, first.bias.detach()), *rest)


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0]).to(weight)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer
