"""How the gain and its slope are computed: the fast paths, and the plain one for any model.

A path is made once per batch for a model, a gain and x, and answers two questions:

* ``subspace(u)``: gain at x + A u and its gradient with respect to u, (n, k)
* ``full(delta)``: gain at x + delta and its gradient with respect to delta, (n, d)

When the model begins with a linear layer, W1 (x + A u) + b1 = Z0 + (W1 A) u, with Z0 = W1 x + b1 computed once per
batch: ``subspace`` then never touches d again. For Linear-ReLU-...-Linear the slope is written out by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from evenhand.search.found import Gain, Model, value_and_slope


class PlainPath:
    """Any callable of tensors: autograd with respect to the perturbation only."""

    def __init__(self, model: Model, gain: Gain, x: Tensor, directions: Tensor) -> None:
        self.model, self.gain, self.x, self.directions = model, gain, x, directions

    def subspace(self, u: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = self.full(u @ self.directions.T)
        return value, slope @ self.directions

    def full(self, delta: Tensor) -> tuple[Tensor, Tensor]:
        x_new = (self.x + delta).requires_grad_(True)
        value = self.gain(self.model(x_new))
        (slope,) = torch.autograd.grad(value.sum(), x_new)
        return value.detach(), slope


class SplitPath:
    """Models that begin with a linear layer: ``tail`` maps the first layer's output to the logits."""

    def __init__(self, split: Split, gain: Gain, x: Tensor, directions: Tensor) -> None:
        self.gain, self.tail, self.weight = gain, split.tail, split.linear.weight.detach()
        with torch.no_grad():
            self.z = split.linear(x)
            self.response = self.weight @ directions  # W1 A, (H, k)

    def subspace(self, u: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = self._at(torch.addmm(self.z, u, self.response.T))
        return value, slope @ self.response

    def full(self, delta: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = self._at(torch.addmm(self.z, delta, self.weight.T))
        return value, slope @ self.weight

    def _at(self, z: Tensor) -> tuple[Tensor, Tensor]:
        z.requires_grad_(True)
        value = self.gain(self.tail(z))
        (slope,) = torch.autograd.grad(value.sum(), z)
        return value.detach(), slope


class ReLUPath(SplitPath):
    """Linear-ReLU-...-Linear: the slope by hand, in buffers that are made once per batch."""

    def __init__(self, split: Split, gain: Gain, x: Tensor, directions: Tensor) -> None:
        super().__init__(split, gain, x, directions)
        self.layers = [(layer.weight.detach(), None if layer.bias is None else layer.bias.detach()) for layer in split.relu_layers]
        n = len(x)
        self.pre = [torch.empty_like(self.z)] + [x.new_empty(n, w.shape[0]) for w, _ in self.layers[:-1]]
        self.post = [torch.empty_like(z) for z in self.pre]

    @torch.no_grad()
    def subspace(self, u: Tensor) -> tuple[Tensor, Tensor]:
        torch.addmm(self.z, u, self.response.T, out=self.pre[0])
        value, slope = self._relu_tail()
        return value, slope @ self.response

    @torch.no_grad()
    def full(self, delta: Tensor) -> tuple[Tensor, Tensor]:
        torch.addmm(self.z, delta, self.weight.T, out=self.pre[0])
        value, slope = self._relu_tail()
        return value, slope @ self.weight

    def _relu_tail(self) -> tuple[Tensor, Tensor]:
        """Gain and its slope with respect to the first pre-activation; the slope lives in a buffer."""
        last = len(self.layers) - 1
        for i, (weight, bias) in enumerate(self.layers):
            torch.clamp_min(self.pre[i], 0, out=self.post[i])
            out = None if i == last else self.pre[i + 1]
            if bias is None:
                h = torch.mm(self.post[i], weight.T, out=out)
            else:
                h = torch.addmm(bias, self.post[i], weight.T, out=out)
        value, slope = value_and_slope(self.gain, h)
        for i in range(last, -1, -1):
            torch.mm(slope, self.layers[i][0], out=self.post[i])
            slope = torch.ops.aten.threshold_backward.grad_input(self.post[i], self.pre[i], 0, grad_input=self.post[i])
        return value, slope


Path = PlainPath | SplitPath


@dataclass(frozen=True)
class Split:
    """A model cut behind its first linear layer: model(x) = tail(linear(x))."""

    linear: nn.Linear
    tail: Callable[[Tensor], Tensor]
    relu_layers: tuple[nn.Linear, ...] | None = None  # the tail's layers when it is ReLU-Linear-...-ReLU-Linear

    def path(self, gain: Gain, x: Tensor, directions: Tensor) -> Path:
        kind = SplitPath if self.relu_layers is None else ReLUPath
        return kind(self, gain, x, directions)

    def agrees(self, model: Model, x: Tensor) -> bool:
        """Whether the cut model gives the model's own output on x."""
        with torch.no_grad():
            whole, cut = model(x), self.tail(self.linear(x))
        return whole.shape == cut.shape and torch.allclose(whole, cut, rtol=1e-4, atol=1e-5)


def split(model: Any, first_layer: str | None = None) -> Split | None:
    """The model cut behind its leading linear layer, or None when it has none that can be taken apart safely.

    Found by itself in a Sequential; ``first_layer`` names it in any other module, by its name in ``named_modules``.
    """
    if first_layer is not None:
        return _split_named(model, first_layer)
    layers = _plain_children(model)
    if len(layers) < 2 or type(layers[0]) is not nn.Linear or _hooked(layers[0]):
        return None
    relu_layers = _relu_layers(layers[1:])
    if relu_layers is None and getattr(layers[1], "inplace", False):
        return None  # would overwrite the pre-activation whose gradient is wanted
    return Split(layers[0], nn.Sequential(*layers[1:]), relu_layers)


def _split_named(model: Any, first_layer: str) -> Split:
    modules = dict(model.named_modules()) if isinstance(model, nn.Module) else {}
    linear = modules.get(first_layer)
    if not isinstance(linear, nn.Linear):
        linears = [name for name, module in modules.items() if isinstance(module, nn.Linear)]
        raise ValueError(f"first_layer={first_layer!r} does not name a linear layer of the model; it has {linears}")

    def tail(z: Tensor) -> Tensor:
        """The model with the named layer's output replaced by z; nothing else may look at the input."""
        linear.forward = lambda _: z  # type: ignore[method-assign]
        try:
            output = model(z.new_full((z.shape[0], linear.in_features), torch.nan))
        finally:
            del linear.forward
        return cast(Tensor, output)

    return Split(linear, tail)


def _plain_children(module: Any) -> list[nn.Module]:
    """The layers of a Sequential in order, nested ones unrolled; empty for anything else or with hooks."""
    if type(module) is not nn.Sequential or _hooked(module):
        return []
    layers: list[nn.Module] = []
    for child in module:
        if type(child) is nn.Sequential:
            nested = _plain_children(child)
            if not nested:
                return []
            layers.extend(nested)
        else:
            layers.append(child)
    return layers


def _relu_layers(rest: list[nn.Module]) -> tuple[nn.Linear, ...] | None:
    """The linear layers of ReLU-Linear-...-ReLU-Linear; dropout and identity count as absent (eval mode)."""
    rest = [m for m in rest if type(m) not in (nn.Identity, nn.Dropout)]
    relus, linears = rest[0::2], rest[1::2]
    if not rest or len(relus) != len(linears) or any(_hooked(m) for m in rest):
        return None
    if all(type(m) is nn.ReLU for m in relus) and all(type(m) is nn.Linear for m in linears):
        return tuple(m for m in linears if isinstance(m, nn.Linear))
    return None


def _hooked(module: nn.Module) -> bool:
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or hasattr(module, "parametrizations")
    )
