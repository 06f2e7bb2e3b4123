"""The fast path: models that begin with a linear layer, or with a norm and a linear layer.

Such a model is cut behind that layer, its head (search/head.py): model(x) = tail(W1 x + b1). Moves x' = x + A u + v
then act on its output, W1 x' + b1 = Z0 + (W1 A) u + W1 v, which the search (search/walks.py) and the training step use
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_map

from evenhand.search.head import NORMS, Head, above_product, foldable
from evenhand.search.mode import on_ordinary_path, twin
from evenhand.search.walks import beside
from evenhand.search.worst_cases import WorstCases

_agreed: WeakKeyDictionary[nn.Module, tuple[tuple[Any, ...], bool]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Split:
    """A model cut behind its first linear layer: model(x) = tail(head(x))."""

    head: Head
    rest: Callable[[Tensor], Any]
    relu_layers: tuple[nn.Linear, ...] | None = None  # the tail's layers when it is ReLU-Linear-...-ReLU-Linear

    def tail(self, z: Tensor, fresh: bool = False) -> Any:
        """What the model gives, from the first layer's output. fresh: nobody else needs z, it may be written over."""
        if self.relu_layers is None:
            return self.rest(z if fresh else z.clone())  # which it may overwrite
        side = (z.relu_() if fresh else z.relu()).T
        for layer in self.relu_layers[:-1]:
            side = above_product(side, layer.weight, layer.bias).relu_()
        return above_product(side, self.relu_layers[-1].weight, self.relu_layers[-1].bias).T

    def agrees(self, model: Callable[[Tensor], Any], x: Tensor, output: Callable[[Any], Any]) -> bool:
        """Whether the cut model gives the model's own output on x, and looks at nothing but its z."""
        with torch.no_grad():
            head = self.head.now()
            whole, z = output(model(x.clone())), head.finished(head.walked(x), x)
            try:
                cut = output(self.tail(z))
            except Exception:
                return False  # the whole model works, so its parts do not
        if not isinstance(whole, Tensor) or not isinstance(cut, Tensor) or whole.shape != cut.shape:
            return False
        return torch.allclose(whole, cut, rtol=1e-4, atol=1e-5)


def agreed(
    cut: Split,
    model: Any,
    made_of: tuple[Any, ...],
    call: Callable[[Tensor], Any],
    x: Tensor,
    output: Callable[[Any], Any],
) -> bool:
    """``cut.agrees``, asked once for each model as long as it is made of the same layers."""
    layers = (id(cut.head.linear), *made_of)
    known = _agreed.get(model)
    if known is None or known[0] != layers:
        if len(x) == 0:
            return False  # a rank may have no rows, from which nothing can be learned
        known = _agreed[model] = layers, cut.agrees(call, x, output)
    return known[1]


def moved(z: Tensor, weight: Tensor, z_worst: Tensor, u: Tensor, v: Tensor | None, directions: Tensor) -> Tensor:
    """z' = z + u (W1 A)^T + v W1^T, whose value the search has left behind in z_worst: no product is needed for it.

    Its gradient is that of the formula, so dW1 = (G + G')^T x + (G'^T u) A^T + G'^T v, where G and G' are the gradients
    at z and z': one large product for both outputs, and one more where v is not zero.
    """
    result: Tensor = _Moved.apply(z, weight, z_worst, u, v, directions)  # type: ignore[no-untyped-call]
    return result


class _Moved(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, weight: Tensor, z_worst: Tensor, u: Tensor, v: Tensor | None, directions: Tensor
    ) -> Tensor:
        ctx.save_for_backward(u, v, directions)
        return z_worst.view_as(z_worst)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        """Linear in the slope, and z' is linear in z and W1: so autograd can differentiate it once more."""
        u, v, directions = ctx.saved_tensors
        weight_slope = None
        if ctx.needs_input_grad[1]:
            weight_slope = (u.T @ slope).T @ directions.T
            if v is not None:
                weight_slope = torch.addmm(weight_slope, slope.T, v)
        return slope, weight_slope, None, None, None, None


def moved_with(
    z: Tensor, weight: Tensor, directions: Tensor, worst: Sequence[tuple[WorstCases, Tensor]], fresh: bool
) -> Tensor:
    """z of all rows, and below it z' of some, (found, rows) each: one tensor for what lies behind.

    fresh: the slope that comes back is made for this tensor alone and may be written over; of a matrix this large fresh
    memory costs more than the arithmetic.
    """
    found, rows = [each for each, _ in worst], torch.cat([part for _, part in worst])
    u = torch.cat([each.u for each in found if each.u is not None])
    parts = [each.z for each in found], [each.v for each in found]
    result: Tensor = _MovedWith.apply(z, weight, directions, fresh, rows, u, *parts)  # type: ignore[no-untyped-call]
    return result


class _MovedWith(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        weight: Tensor,
        directions: Tensor,
        fresh: bool,
        rows: Tensor,
        u: Tensor,
        z_worst: list[Tensor],
        v: list[Tensor | None],
    ) -> Tensor:
        ctx.save_for_backward(directions, rows, u, *v)
        ctx.sizes, ctx.fresh = [len(part) for part in z_worst], fresh
        n = len(z) + len(rows)
        joint = beside(z, z.shape[1], n) if z.stride(0) == 1 else z.new_empty(n, z.shape[1])
        for place, part in zip(torch.split(joint, [len(z), *ctx.sizes]), (z, *z_worst)):
            place.copy_(part)
        return joint

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        """As for ``moved``, summed over the parts."""
        directions, rows, u, *v = ctx.saved_tensors
        of_z, of_worst = torch.split(slope, [len(slope) - len(rows), len(rows)])
        weight_slope = None
        if ctx.needs_input_grad[1]:
            weight_slope = (u.T @ of_worst).T @ directions.T
            for part, move in zip(torch.split(of_worst, ctx.sizes), v):
                if move is not None:
                    weight_slope = torch.addmm(weight_slope, part.T, move)
        in_place = ctx.fresh and not torch.is_grad_enabled()
        of_z = _add_rows(of_z if in_place else of_z.clone(), rows, of_worst)
        return of_z, weight_slope, *[None] * 6


def _add_rows(to: Tensor, rows: Tensor, part: Tensor) -> Tensor:
    """``to.index_add_(0, rows, part)``, a third of the time where people lie beside each other in memory."""
    return to.T.index_add_(1, rows, part.T).T if to.stride(0) == 1 else to.index_add_(0, rows, part)


def split(model: Any) -> Split | None:
    """A Sequential cut behind its leading linear layer, or behind a norm and the linear layer after it; None where it
    has none that can be taken apart safely."""
    layers = _plain_children(model)
    norm = layers.pop(0) if len(layers) > 1 and type(layers[1]) is nn.Linear and type(layers[0]) in NORMS else None
    if len(layers) < 2 or type(layers[0]) is not nn.Linear or _hooked(layers[0]):
        return None
    if norm is not None and (_hooked(norm) or not foldable(norm, layers[0])):
        return None
    relu_layers = _relu_layers(layers[1:])
    return Split(Head(layers[0], norm, relu_layers is not None), _chain(layers[1:]), relu_layers)


def split_named(model: Any, first_layer: str) -> Split | None:
    """Any module, cut behind the linear layer of this name in ``named_modules``; None where it cannot be.

    The layer must be given x itself, or a view of it. That something before it gives x back says nothing: a scale, a
    norm or an adapter do so before they are trained.
    """
    modules = dict(model.named_modules()) if isinstance(model, nn.Module) else {}
    linear = modules.get(first_layer)
    if not isinstance(linear, nn.Linear):
        linears = [name for name, module in modules.items() if isinstance(module, nn.Linear)]
        raise ValueError(f"first_layer={first_layer!r} does not name a linear layer of the model; it has {linears}")
    stand_in = _Given(first_layer)
    other = None if type(linear) is not nn.Linear or _hooked(linear) else twin(model, {linear: stand_in})
    if other is None or other is stand_in:
        return None
    rest = on_ordinary_path(other, model)

    def tail(z: Tensor) -> Any:
        """The model with the named layer's output replaced by z; nothing else may look at the input."""
        given = z.new_full((z.shape[0], linear.in_features), torch.nan).as_subclass(_Unseen)
        stand_in.x, stand_in.z = given, z
        try:
            return rest(given)
        except _Looked as looked:
            raise ValueError(
                f"first_layer={first_layer!r} is not all that looks at x: the model does so elsewhere ({looked}), "
                "which would be left out of the search and of the gradient; leave first_layer out"
            ) from looked
        finally:
            stand_in.x = stand_in.z = None

    return Split(Head(linear), tail)


class _Looked(RuntimeError):
    """Somebody looked at numbers that are to be left alone, by this function."""


class _Unseen(Tensor):
    """Has a shape, a type and views, and no numbers: whatever asks for them is an error, also a comparison, in which a
    NaN would be lost."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            gave = func(*args, **(kwargs or {}))
            ours = {t.untyped_storage()._cdata for t in tree_flatten((args, kwargs))[0] if isinstance(t, cls)}
            tensors = [t for t in tree_flatten(gave)[0] if isinstance(t, Tensor)]
            views = bool(tensors) and all(t.untyped_storage()._cdata in ours for t in tensors)
        name = getattr(func, "__name__", "")
        if views:
            return tree_map(lambda t: t.as_subclass(cls) if isinstance(t, Tensor) else t, gave)
        only_its_type = name in ("to", "type_as") and not isinstance(args[0], cls)  # of somebody else's numbers
        if name in _WITHOUT_NUMBERS or only_its_type or (name == "__get__" and not tensors):
            return gave
        raise _Looked(name)


# fmt: off
_WITHOUT_NUMBERS = frozenset({  # what may be asked of it that gives no view
    "__len__", "size", "dim", "ndimension", "numel", "nelement", "stride", "data_ptr", "storage_offset",
    "element_size", "get_device", "is_contiguous", "is_floating_point", "is_complex", "is_inference", "is_same_size",
    "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like",
    "new_zeros", "new_ones", "new_empty", "new_full", "new_tensor", "view_as", "expand_as",
    "__hash__", "__repr__",
})
# fmt: on


class _Given(nn.Module):
    """In the place of the layer of this name: gives what it is told to, for x itself and for nothing else."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.x: Tensor | None = None
        self.z: Tensor | None = None

    def forward(self, given: Tensor) -> Tensor | None:
        if self.x is None or not _same_memory(given, self.x):
            raise ValueError(
                f"first_layer={self.name!r} is given something else than x, which would be left out of the search and "
                "of the gradient; leave first_layer out"
            )
        return self.z


def _same_memory(given: Tensor, x: Tensor) -> bool:
    """Whether a tensor is x, or a view of all of it, as x was made."""
    if given is not x and (given.data_ptr(), given.shape, given.stride()) != (x.data_ptr(), x.shape, x.stride()):
        return False
    return x.is_inference() or x._version == 0  # written over in place, or not


def _chain(layers: list[nn.Module]) -> Callable[[Tensor], Tensor]:
    def run(z: Tensor) -> Tensor:
        for layer in layers:
            z = layer(z)
        return z

    return run


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
    """Whether it does more, or something else, than modules of its type do."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or "parametrizations" in module._modules
        or ("forward" in vars(module) and "_original_forward" not in vars(module))
    )
