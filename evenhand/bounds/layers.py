"""Reading a network as a list of affine maps (W, b) with a ReLU, or another activation, between each two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from evenhand.bounds.activations import Units, activate
from evenhand.module_copy import changed_by_hand, is_quantised


class CannotCertify(TypeError):
    """The model is not of a kind whose worst case we can bound from above; ``audit`` still bounds it from below."""


class Layer(NamedTuple):
    """x -> W x + b, in float64, and what follows it."""

    weight: Tensor  # (out, in)
    bias: Tensor  # (out,)
    after: Units | None = None  # None: a ReLU (nothing, of the last layer)

    def detached(self) -> Layer:
        return Layer(self.weight.detach(), self.bias.detach(), self.after)


def affine_layers(model: object, d: int | None = None) -> list[Layer]:
    """The layers as plain numbers; d: how many columns there are, for models whose weights do not say."""
    return [layer.detached() for layer in differentiable_layers(model, d)]


def differentiable_layers(model: object, d: int | None = None) -> list[Layer]:
    """The layers in float64, differentiable: of a Sequential part by part, of any other module (and of activations
    other than ReLU) by following its forward.

    BatchNorm (with the statistics of eval mode) is folded into its neighbours, Dropout vanishes. The result means
    W_L relu(... relu(W_1 x + b_1) ...) + b_L; ``forward`` evaluates it.
    """
    try:
        return sequential_layers(model)
    except CannotCertify:
        if not isinstance(model, nn.Module):
            raise
    return _followed(model, d)


def _followed(model: nn.Module, d: int | None) -> list[Layer]:
    from evenhand.bounds.trace import traced_layers

    read = [parameter.shape[1] for parameter in model.parameters() if parameter.ndim == 2][:1]
    widths = list(dict.fromkeys([*([d] if d is not None else []), *read]))  # not all of d columns may be read
    if not widths:
        raise CannotCertify(f"{type(model).__name__} holds no Linear layer, so there is nothing to certify")
    for width in widths[:-1]:
        try:
            return traced_layers(model, width)
        except CannotCertify:
            continue
    return traced_layers(model, widths[-1])


def refuse_unreadable(module: nn.Module) -> None:
    """Refuses a network whose layers do not say what it computes, with the reason."""
    if isinstance(module, torch.jit.ScriptModule):
        raise CannotCertify(
            "the inside of a scripted module cannot be read; certify the module that was scripted. audit() gives a "
            "lower bound for any model"
        )
    if is_quantised(module):
        raise CannotCertify(
            "a quantised network jumps between numbers, which no bound of ours follows; certify the network before it "
            "was quantised. audit() gives a lower bound for any model"
        )
    reason = changed_by_hand(module)
    if reason is not None:
        raise CannotCertify(
            f"the layers do not say what the network computes: {reason}; take it away where it changes nothing (the "
            "handle that registered a hook has remove()), or write what it does into the forward of a module. audit() "
            "gives a lower bound for any model"
        )


def sequential_layers(model: object) -> list[Layer]:
    """The layers of an ``nn.Sequential`` of Linear, ReLU, Dropout, BatchNorm1d, Identity and Flatten."""
    layers: list[Layer] = []
    current: Layer | None = None
    after_relu = False
    for part in _parts(model):
        if isinstance(part, nn.Linear):
            step = Layer(wide(part.weight), wide(part.bias, part.out_features))
            current, after_relu = step if current is None else _compose(step, current), False
        elif isinstance(part, nn.BatchNorm1d):
            step = _batch_norm_layer(part)
            current, after_relu = step if current is None else _compose(step, current), False
        elif isinstance(part, nn.ReLU):
            if after_relu:
                continue  # relu(relu(z)) = relu(z)
            if current is None:
                raise CannotCertify("the model starts with a ReLU; put a Linear layer before it, or use audit()")
            layers.append(current)
            current, after_relu = None, True
        elif not isinstance(part, nn.Identity | nn.Dropout | nn.Flatten):
            raise CannotCertify(
                f"only Linear, ReLU, Dropout, BatchNorm1d, Identity and Flatten can be certified, and the model holds "
                f"{type(part).__name__}; audit() gives a lower bound for any model"
            )
    if current is None:
        if not layers:
            raise CannotCertify("the model holds no Linear layer, so there is nothing to certify")
        width = layers[-1].bias.shape[0]
        current = Layer(torch.eye(width, dtype=torch.float64), torch.zeros(width, dtype=torch.float64))
    return [*layers, current]


def forward(layers: list[Layer], x: Tensor) -> Tensor:
    """The network's outputs: (n, d) -> (n, K)."""
    for weight, bias, after in layers[:-1]:
        x = activate(x @ weight.T + bias, after)
    return x @ layers[-1].weight.T + layers[-1].bias


def pre_activations(layers: list[Layer], x: Tensor) -> tuple[list[Tensor], Tensor]:
    """What enters each activation, and the outputs: (n, d) -> [(n, H_1), ...], (n, K)."""
    entering = []
    for weight, bias, after in layers[:-1]:
        entering.append(x @ weight.T + bias)
        x = activate(entering[-1], after)
    return entering, x @ layers[-1].weight.T + layers[-1].bias


KINDS = (nn.Sequential, nn.Linear, nn.ReLU, nn.Identity, nn.Dropout, nn.Flatten, nn.BatchNorm1d)


def _parts(model: object) -> Iterator[nn.Module]:
    kind = next((kind for kind in KINDS if isinstance(model, kind)), None)
    if isinstance(model, nn.Module) and kind is not None and type(model).forward is not kind.forward:
        raise CannotCertify(
            f"{type(model).__name__} is an nn.{kind.__name__} with a forward of its own, so that its layers do not say "
            "what it computes; audit() gives a lower bound for any model"
        )
    if isinstance(model, nn.Sequential):
        for child in model:
            yield from _parts(child)
    elif isinstance(model, nn.Module) and kind is not None:
        yield model
    else:
        raise CannotCertify(
            "an upper bound needs a network, a linear model or trees, whose inside can be read; got "
            f"{type(model).__name__}; audit() gives a lower bound for any model"
        )


def _batch_norm_layer(part: nn.BatchNorm1d) -> Layer:
    if part.running_mean is None or part.running_var is None:
        raise CannotCertify("a BatchNorm1d without running statistics has no fixed function; use track_running_stats")
    scale = (wide(part.running_var) + part.eps).rsqrt()
    if part.affine:
        scale = scale * wide(part.weight)
    bias = -wide(part.running_mean) * scale
    if part.affine:
        bias = bias + wide(part.bias)
    return Layer(torch.diag(scale), bias)


def _compose(outer: Layer, inner: Layer) -> Layer:
    return Layer(outer.weight @ inner.weight, outer.weight @ inner.bias + outer.bias)


def wide(values: Tensor | None, size: int = 0) -> Tensor:
    if values is None:
        return torch.zeros(size, dtype=torch.float64)
    return values.to(dtype=torch.float64, device="cpu")
