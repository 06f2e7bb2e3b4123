"""The fast path: models that begin with a linear layer.

Such a model is cut behind that layer, model(x) = tail(W1 x + b1). Moves x' = x + A u + v then act on its output,
W1 x' + b1 = Z0 + (W1 A) u + W1 v, which the search (search/paths.py) and the training step use alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from evenhand.search.paths import Path, PlainPath, ReLUPath, SplitPath
from evenhand.search.worst_cases import Gain, Model, WorstCases

Move = tuple[Tensor, Tensor, Tensor | None, Tensor]  # gradient at z', u, v, directions


@dataclass(frozen=True)
class Split:
    """A model cut behind its first linear layer: model(x) = tail(first(x))."""

    linear: nn.Linear
    rest: Callable[[Tensor], Tensor]
    relu_layers: tuple[nn.Linear, ...] | None = None  # the tail's layers when it is ReLU-Linear-...-ReLU-Linear
    in_place: bool = False  # the tail's first layer overwrites what it is given

    def first(self, x: Tensor, moves: list[Move]) -> Tensor:
        """Z0 = W1 x + b1, whose gradient will include that of the moves made from it (see ``_First``)."""
        side_by_side = self.relu_layers is not None
        z: Tensor = _First.apply(x, self.linear.weight, self.linear.bias, side_by_side, moves)  # type: ignore[no-untyped-call]
        return z

    def tail(self, z: Tensor) -> Tensor:
        """The logits from the first layer's output."""
        if self.relu_layers is None:
            return self.rest(z.clone() if self.in_place else z)
        for layer in self.relu_layers:
            z = _product(z.relu(), layer.weight, layer.bias)
        return z

    def agrees(self, model: Model, x: Tensor) -> bool:
        """Whether the cut model gives the model's own output on x, and looks at nothing but its z."""
        with torch.no_grad():
            whole, z = model(x), self.first(x, [])
            before = z.clone()
            try:
                cut = self.tail(z)
            except Exception:
                return False  # the whole model works, so its parts do not
        same = whole.shape == cut.shape and torch.allclose(whole, cut, rtol=1e-4, atol=1e-5)
        return same and torch.equal(z, before)  # a tail that overwrites z cannot share it


class ModelView:
    """A model seen from a batch x: what the search and the training step both need, computed once.

    ``h_x()`` and ``h_worst(found)`` are the model's outputs, with gradients for its parameters. On the split path they
    share Z0 = W1 x + b1, so that h(x') needs no second large product.
    """

    def __init__(self, model: Model, x: Tensor, cut: Split | None) -> None:
        self.model, self.x, self.cut = model, x, cut
        self.moves: list[Move] = []
        self.z = None if cut is None else cut.first(x, self.moves)

    def __call__(self, x: Tensor) -> Tensor:
        return self.model(x)

    def h_x(self) -> Tensor:
        return self.model(self.x) if self.cut is None or self.z is None else self.cut.tail(self.z)

    def h_worst(self, found: WorstCases, directions: Tensor) -> Tensor:
        if self.cut is None or self.z is None or found.z is None:
            x_worst = self.x + (found.x_worst - self.x).detach() if self.x.requires_grad else found.x_worst
            return self.model(x_worst)
        moved: Tensor = _Moved.apply(self.z, found.z, found.u, found.v, directions.to(found.z), self.moves)  # type: ignore[no-untyped-call]
        return self.cut.tail(moved)

    def path(self, gain: Gain, directions: Tensor) -> Path:
        if self.cut is None or self.z is None:
            return PlainPath(self.model, gain, self.x.detach(), directions)
        z = self.z.detach()
        kind = SplitPath if self.cut.relu_layers is None else ReLUPath
        return kind(self.cut, gain, z.clone() if z.is_inference() else z, directions)


class _First(torch.autograd.Function):
    """z = x W1^T + b1. Its gradient also collects what the moves of ``_Moved`` contribute, in one matrix:

    dW1 = (G + G')^T x + (G'^T u) A^T + G'^T v, where G and G' are the gradients at z and z'.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, side_by_side: bool, moves: list[Move]
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.moves = moves
        return _product(x, weight, bias) if side_by_side else F.linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        x_slope = slope @ weight if needs_x else None
        weight_slope = slope.T @ x if needs_weight else None
        while ctx.moves:
            moved_slope, u, v, directions = ctx.moves.pop()
            if weight_slope is not None:
                weight_slope.addmm_((u.T @ moved_slope).T, directions.T)
                if v is not None:
                    weight_slope.addmm_(moved_slope.T, v)
        return x_slope, weight_slope, slope.sum(0) if needs_bias else None, None, None


class _Moved(torch.autograd.Function):
    """z' = z + u (W1 A)^T + v W1^T, whose value the search has left behind.

    As a function of z it is a shift; its gradient with respect to W1 is left for ``_First``, which runs afterwards.
    """

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, z_worst: Tensor, u: Tensor, v: Tensor | None, directions: Tensor, moves: list[Move]
    ) -> Tensor:
        ctx.save_for_backward(u, v, directions)
        ctx.moves = moves
        return z_worst.view_as(z_worst)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        u, v, directions = ctx.saved_tensors
        ctx.moves.append((slope, u, v, directions))
        return slope, None, None, None, None, None


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b with the individuals side by side in memory: thin products run several times faster so."""
    return (weight @ x.T).T if bias is None else torch.addmm(bias[:, None], weight, x.T).T


def split(model: Any, first_layer: str | None = None) -> Split | None:
    """The model cut behind its leading linear layer, or None when it has none that can be taken apart safely.

    Found by itself in a Sequential; ``first_layer`` names it in any other module, by its name in ``named_modules``.
    """
    if first_layer is not None:
        return _split_named(model, first_layer)
    layers = _plain_children(model)
    if len(layers) < 2 or type(layers[0]) is not nn.Linear or _hooked(layers[0]):
        return None
    in_place = bool(getattr(layers[1], "inplace", False))
    return Split(layers[0], _chain(layers[1:]), _relu_layers(layers[1:]), in_place)


def _chain(layers: list[nn.Module]) -> Callable[[Tensor], Tensor]:
    def run(z: Tensor) -> Tensor:
        for layer in layers:
            z = layer(z)
        return z

    return run


def _split_named(model: Any, first_layer: str) -> Split | None:
    modules = dict(model.named_modules()) if isinstance(model, nn.Module) else {}
    linear = modules.get(first_layer)
    if not isinstance(linear, nn.Linear):
        linears = [name for name, module in modules.items() if isinstance(module, nn.Linear)]
        raise ValueError(f"first_layer={first_layer!r} does not name a linear layer of the model; it has {linears}")

    if _hooked(linear):
        return None

    def tail(z: Tensor) -> Tensor:
        """The model with the named layer's output replaced by z; nothing else may look at the input."""
        linear.forward = lambda _: z  # type: ignore[method-assign,assignment]
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
    if any(_hooked(module) for module in rest):
        return None
    rest = [module for module in rest if type(module) not in (nn.Identity, nn.Dropout)]
    relus, linears = rest[0::2], rest[1::2]
    if not rest or len(relus) != len(linears):
        return None
    if all(type(m) is nn.ReLU for m in relus) and all(type(m) is nn.Linear for m in linears):
        return tuple(m for m in linears if isinstance(m, nn.Linear))
    return None


def _hooked(module: nn.Module) -> bool:
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or hasattr(module, "parametrizations")
    )
