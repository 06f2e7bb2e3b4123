"""Networks as JSON: the layers that a model file may hold, and nothing else."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

LAYERS: dict[str, tuple[type[nn.Module], tuple[str, ...]]] = {
    "Linear": (nn.Linear, ("in_features", "out_features")),
    "ReLU": (nn.ReLU, ()),
    "LeakyReLU": (nn.LeakyReLU, ("negative_slope",)),
    "ELU": (nn.ELU, ("alpha",)),
    "GELU": (nn.GELU, ("approximate",)),
    "SiLU": (nn.SiLU, ()),
    "Tanh": (nn.Tanh, ()),
    "Sigmoid": (nn.Sigmoid, ()),
    "Softplus": (nn.Softplus, ("beta", "threshold")),
    "Dropout": (nn.Dropout, ("p",)),
    "BatchNorm1d": (nn.BatchNorm1d, ("num_features", "eps", "momentum", "affine", "track_running_stats")),
    "LayerNorm": (nn.LayerNorm, ("normalized_shape", "eps", "elementwise_affine")),
    "Identity": (nn.Identity, ()),
    "Flatten": (nn.Flatten, ("start_dim", "end_dim")),
}
MAX_SIZE = 1 << 20  # features or units of one layer
MAX_LAYERS = 10_000


class UnknownLayer(ValueError):
    """A network that cannot be described, or that was not."""


def describe(module: nn.Module) -> dict[str, Any] | None:
    """The architecture as JSON, or None where it is not made of known layers only."""
    if type(module) is nn.Sequential:
        children = [(name, describe(child)) for name, child in module.named_children()]
        if any(child is None for _, child in children):
            return None
        return {"type": "Sequential", "children": [[name, child] for name, child in children]}
    known = LAYERS.get(type(module).__name__)
    if known is None or type(module) is not known[0]:
        return None
    arguments = {name: _plain(getattr(module, name)) for name in known[1]}
    if isinstance(module, nn.Linear):
        arguments["bias"] = module.bias is not None
    return {"type": type(module).__name__, "arguments": arguments}


def built(layers: Any, weights: dict[str, torch.Tensor]) -> nn.Module:
    """The network that ``describe`` described, made of these weights.

    It is first drawn on the meta device, where layers take no memory whatever size they declare; only when every weight
    that they declare is there, in the declared shape, does the network become real.
    """
    with torch.device("meta"):
        net = build(layers)
    declared = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    present = {name: tuple(value.shape) for name, value in weights.items()}
    if declared != present:
        names = sorted(name for name in declared.keys() | present.keys() if declared.get(name) != present.get(name))
        raise UnknownLayer(f"the layers declare other weights than the file holds: {', '.join(map(str, names[:5]))}")
    net.load_state_dict(weights, assign=True)
    return net


def build(layers: Any, depth: int = 0, count: list[int] | None = None) -> nn.Module:
    """The network that ``describe`` described, with weights still to be loaded."""
    count = count if count is not None else [0]
    count[0] += 1
    if not isinstance(layers, dict) or depth > 20 or count[0] > MAX_LAYERS:
        raise UnknownLayer("the description of the network is not sound")
    kind = layers.get("type")
    if kind == "Sequential":
        net = nn.Sequential()
        for name, child in layers["children"]:
            net.add_module(str(name), build(child, depth + 1, count))
        return net
    if kind not in LAYERS:
        raise UnknownLayer(f"the network has a layer {kind!r} which a model file may not hold")
    layer, names = LAYERS[str(kind)]
    arguments = layers.get("arguments", {})
    if not isinstance(arguments, dict) or set(arguments) - {*names, "bias"}:
        raise UnknownLayer(f"layer {kind} has unknown arguments")
    for value in arguments.values():
        _check(value)
    return layer(**{name: tuple(v) if isinstance(v, list) else v for name, v in arguments.items()})


def _check(value: Any) -> None:
    parts = value if isinstance(value, list) else [value]
    for part in parts:
        small = (
            part is None or isinstance(part, bool | str) or (isinstance(part, int | float) and abs(part) <= MAX_SIZE)
        )
        if not small:
            raise UnknownLayer(f"a layer argument is {part!r}; numbers up to {MAX_SIZE:,} are allowed")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
