"""Any network of affine maps and activations as layers: followed step by step through torch.fx, whatever class it is.

Each value of the traced program is kept as an affine function of the *last hidden layer*, x at first. An activation on
such functions starts the next hidden layer; earlier values that are still needed (residual additions) are carried
through it, in a ReLU network as pairs relu(v), relu(-v), since v = relu(v) - relu(-v).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.func import functional_call

from evenhand.bounds.activations import IDENTITY, RELU, Kind
from evenhand.bounds.layers import CannotCertify, Layer, wide
from evenhand.bounds.steps import (
    AFFINE,
    AFFINE_MODULES,
    FUNCTIONS,
    MODULES,
    NORMS,
    PRODUCTS,
    QUOTIENTS,
    SAME,
    SAME_MODULES,
    Sum,
    Unit,
    function_of,
    is_known,
    name_of,
)


def traced_layers(model: nn.Module, width: int) -> list[Layer]:
    """The layers of a module that reads ``width`` columns, as in eval mode, differentiable in its weights; refuses with
    the name of the step it cannot follow."""
    modes = [(part, part.training) for part in model.modules()]
    try:
        graph = fx.Tracer().trace(model.eval())
    except Exception as error:  # data-dependent control flow, proxies in places that need numbers
        raise CannotCertify(
            f"{type(model).__name__} could not be followed step by step ({_first_line(error)}); its forward must not "
            "depend on the data's values; audit() gives a lower bound for any model"
        ) from error
    finally:
        for part, mode in modes:
            part.training = mode
    return _Walk(model, width).run(graph)


class _Value(NamedTuple):
    """An affine function of the last hidden layer: the constant, then a row for each hidden unit."""

    rows: Tensor  # (1 + hidden, ...)
    positive: bool = False  # never below 0

    @property
    def flat(self) -> tuple[Tensor, Tensor]:
        """(W, b) of the value, its places one after the other."""
        rows = self.rows.reshape(len(self.rows), -1)
        return rows[1:].T, rows[0]


class _People(int):
    """How many rows the table has, which the layers do not depend on; filled in where it is used."""


class _Walk:
    """Values so far, and the layers up to the hidden layer that they are functions of."""

    def __init__(self, model: nn.Module, width: int) -> None:
        self.model, self.width = model, width
        self.layers: list[Layer] = []
        self.values: dict[fx.Node, _Value] = {}
        self.constants: dict[fx.Node, Any] = {}
        self.last_use: dict[fx.Node, int] = {}
        self.place, self.smooth = 0, False

    def run(self, graph: fx.Graph) -> list[Layer]:
        nodes = list(graph.nodes)
        order = {node: i for i, node in enumerate(nodes)}
        self.last_use = {node: max([order[user] for user in node.users], default=-1) for node in nodes}
        self.smooth = any(self._is_smooth(node) for node in nodes)
        for self.place, node in enumerate(nodes):
            if node.op == "placeholder":
                self._argument(node)
            elif node.op == "get_attr":
                self.constants[node] = self._attribute(str(node.target))
            elif node.op == "output":
                return self._finished(node.args[0])
            elif any(argument in self.values for argument in node.all_input_nodes):
                self._step(node)
            else:
                self.constants[node] = self._evaluated(node)
        raise CannotCertify("the model returns nothing")

    def _finished(self, result: Any) -> list[Layer]:
        if not isinstance(result, fx.Node) or result not in self.values:
            raise CannotCertify("the model must return one tensor of outputs; audit() takes any model")
        return [*self.layers, Layer(*self.values[result].flat)]

    def _argument(self, node: fx.Node) -> None:
        if self.values:
            if not node.args:
                raise CannotCertify("the model takes more than one argument; give it one table of columns")
            self.constants[node] = node.args[0]
            return
        eye = torch.eye(self.width, dtype=torch.float64)
        self.values[node] = _Value(torch.cat([torch.zeros(1, self.width, dtype=torch.float64), eye]))

    def _attribute(self, path: str) -> Any:
        found: Any = self.model
        for name in path.split("."):
            found = getattr(found, name)
        return wide(found) if isinstance(found, Tensor) and found.is_floating_point() else found

    def _evaluated(self, node: fx.Node) -> Any:
        """A step that no person takes part in."""
        args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), lambda other: self.constants[other])
        if node.op == "call_module":
            return self.model.get_submodule(str(node.target))(*args, **kwargs)
        return function_of(node.target)(*args, **kwargs)

    def _step(self, node: fx.Node) -> None:
        about_shape = self._shape(node)
        if about_shape is not None:
            self.constants[node] = about_shape
            return
        known = self._activation(node)
        if known is not None:
            self._activated(node, known)
        else:
            self.values[node] = self._affine(node)

    def _shape(self, node: fx.Node) -> Any:
        """size(), shape and dim() of a value: numbers, but for how many people there are."""
        first = node.args[0] if node.args else None
        if not (isinstance(first, fx.Node) and first in self.values):
            return None
        shape = (_People(), *self.values[first].rows.shape[1:])
        if node.target == "size":
            which = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
            return shape[which] if isinstance(which, int) else shape
        if node.target is getattr and node.args[1] == "shape":
            return shape
        return len(shape) if node.target == "dim" else None

    def _is_smooth(self, node: fx.Node) -> bool:
        found = self._activation(node, known=False)
        return found is not None and any(unit.kind is not RELU for unit in found.units)

    def _activation(self, node: fx.Node, known: bool = True) -> Sum | None:
        """What the step adds up to, if it is an activation; known: whether constants have been worked out by now."""
        if node.op == "call_module":
            part = self.model.get_submodule(str(node.target))
            make = MODULES.get(type(part))
            return make(part) if make is not None else None
        if node.op not in ("call_function", "call_method") or not is_known(node.target):
            return None
        name = name_of(node.target)
        if name not in FUNCTIONS or (node.op == "call_function" and node.target is getattr):
            return None
        names, make_sum = FUNCTIONS[name]
        given = dict(zip(names, node.args[1:])) | {k: v for k, v in node.kwargs.items() if k in names}
        if any(isinstance(value, fx.Node) for value in given.values()):
            if not known:
                return Sum([Unit(1.0, RELU)]) if name in ("prelu", "clamp", "clip", "hardtanh") else None
            given = {key: self.constants.get(v) if isinstance(v, fx.Node) else v for key, v in given.items()}
            if any(value is None for value in given.values()):
                return None
        return make_sum(**given)

    def _affine(self, node: fx.Node) -> _Value:
        if node.op == "call_module":
            return self._module(node)
        name = name_of(node.target)
        touched = sum(argument in self.values for argument in node.all_input_nodes)
        if not is_known(node.target):
            raise self._refused(name)
        if name in SAME:
            return self._value(node.args[0])
        divides = name in QUOTIENTS and touched == 1 and node.args[0] in self.values
        if name in PRODUCTS | QUOTIENTS and not (divides or (name in PRODUCTS and touched == 1)):
            raise self._refused("a product of two values that depend on the input")
        if name not in AFFINE | PRODUCTS | QUOTIENTS:
            raise self._refused(name)
        return self._applied(node, function_of(node.target))

    def _module(self, node: fx.Node) -> _Value:
        part = self.model.get_submodule(str(node.target))
        if isinstance(part, SAME_MODULES):
            return self._value(node.args[0])
        if isinstance(part, nn.Linear) and type(part).forward is nn.Linear.forward:
            weight, bias = wide(part.weight), wide(part.bias, part.out_features)
            if self._value(node.args[0]).rows.shape[-1] != weight.shape[1]:
                raise CannotCertify(f"{node.target} reads {weight.shape[1]} values and gets others; check the columns")
            return self._applied(node, lambda rows: F.linear(rows, weight, bias))
        if isinstance(part, NORMS):
            if part.running_mean is None or part.running_var is None:
                raise CannotCertify("a BatchNorm without running statistics has no fixed function; track them")
            mean, var = wide(part.running_mean), wide(part.running_var)
            affine = (wide(part.weight), wide(part.bias)) if part.affine else None
            scale, shift = affine if affine is not None else (None, None)
            return self._applied(node, lambda rows: F.batch_norm(rows, mean, var, scale, shift, False, 0.0, part.eps))
        if isinstance(part, AFFINE_MODULES):
            own = {name: wide(value) for name, value in part.named_parameters()}
            return self._applied(node, lambda rows: functional_call(part, own, (rows,)))
        raise self._refused(type(part).__name__)

    def _applied(self, node: fx.Node, call: Callable[..., Any]) -> _Value:
        """An affine step on all rows at once; what it gives for 0 belongs to the constant alone."""
        people = 2 + len(next(iter(self.values.values())).rows) - 1

        def given(other: fx.Node) -> Any:
            if other not in self.values:
                return self.constants[other]
            rows = self.values[other].rows
            return torch.cat([rows, torch.zeros_like(rows[:1])])

        args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), given)
        args, kwargs = _filled((args, kwargs), people)
        try:
            out = call(*args, **kwargs)
        except (RuntimeError, TypeError, IndexError, ValueError) as error:
            raise self._refused(f"{name_of(node.target)} ({_first_line(error)})") from error
        if not isinstance(out, Tensor) or out.ndim < 1 or len(out) != people:
            raise self._refused(f"{name_of(node.target)}, which does not go row by row")
        return _Value(torch.cat([out[:1], out[1:-1] - out[-1:]]))

    def _activated(self, node: fx.Node, known: Sum) -> None:
        """A new hidden layer: the activation's units first, then what later steps still need."""
        value = self._value(node.args[0])
        weight, bias = value.flat
        size, shape = len(bias), value.rows.shape[1:]
        weights = [unit.scale * weight for unit in known.units]
        biases = [unit.scale * bias + unit.shift for unit in known.units]
        kinds = [(unit.kind, size) for unit in known.units]
        carried = {other: old for other, old in self.values.items() if self.last_use[other] > self.place}
        halves: dict[fx.Node, list[tuple[int, float]]] = {}
        here = size * len(known.units)
        for other, old in carried.items():
            w, b = old.flat
            signs = [1.0] if self.smooth or old.positive else [1.0, -1.0]
            halves[other] = [(here + i * len(b), sign) for i, sign in enumerate(signs)]
            weights += [sign * w for sign in signs]
            biases += [sign * b for sign in signs]
            kinds += [(IDENTITY if self.smooth else RELU, len(b) * len(signs))]
            here += len(b) * len(signs)
        self.layers.append(Layer(torch.cat(weights), torch.cat(biases), _runs(kinds) if self.smooth else None))
        factors = [(i * size, _factor(unit.factor, shape)) for i, unit in enumerate(known.units)]
        for other, old in carried.items():
            count = old.flat[1].shape[0]
            parts = [(start, torch.full((count,), sign, dtype=torch.float64)) for start, sign in halves[other]]
            carried[other] = _Value(_rows(parts, here, 0.0).reshape(1 + here, *old.rows.shape[1:]), old.positive)
        positive = all(u.kind is RELU and not isinstance(u.factor, Tensor) and u.factor >= 0 for u in known.units)
        out = _rows(factors, here, known.constant).reshape(1 + here, *shape)
        self.values = {**carried, node: _Value(out, positive and known.constant >= 0)}

    def _value(self, argument: Any) -> _Value:
        if not (isinstance(argument, fx.Node) and argument in self.values):
            raise self._refused(f"a step on {argument}")
        return self.values[argument]

    def _refused(self, name: str) -> CannotCertify:
        if name.lower().replace("_", "") in ("softmax", "logsoftmax"):
            name += " (let it return the logits before it)"
        return CannotCertify(
            "only affine layers (Linear, convolutions, BatchNorm, sums, constant factors, reshaping) and activations "
            f"of single values can be certified, and the model holds {name}; audit() gives a lower bound for any model"
        )


def _factor(factor: float | Tensor, shape: torch.Size) -> Tensor:
    """One number for every place; a PReLU has one for each channel, which come first."""
    if not isinstance(factor, Tensor) or factor.numel() == 1:
        return torch.as_tensor(factor, dtype=torch.float64).reshape(1).expand(shape.numel())
    return factor.reshape(-1, *[1] * (len(shape) - 1)).expand(shape).reshape(-1)


def _rows(parts: list[tuple[int, Tensor]], hidden: int, constant: float) -> Tensor:
    """Rows of a value whose place j is constant + the sum of factor_j times unit start + j: (1 + hidden, size)."""
    size = len(parts[0][1])
    blocks = [torch.full((1, size), constant, dtype=torch.float64)]
    end = 0
    for start, factor in parts:
        blocks += [torch.zeros(start - end, size, dtype=torch.float64), torch.diag(factor)]
        end = start + size
    return torch.cat([*blocks, torch.zeros(hidden - end, size, dtype=torch.float64)])


def _runs(kinds: list[tuple[Kind, int]]) -> tuple[tuple[Kind, int], ...]:
    merged: list[tuple[Kind, int]] = []
    for kind, count in kinds:
        if merged and merged[-1][0] is kind:
            merged[-1] = (kind, merged[-1][1] + count)
        elif count:
            merged.append((kind, count))
    return tuple(merged)


def _filled(given: Any, people: int) -> Any:
    """The arguments with the number of rows where the program asks for it."""
    if isinstance(given, _People):
        return people
    if isinstance(given, tuple | list):
        return type(given)(_filled(each, people) for each in given)
    if isinstance(given, dict):
        return {key: _filled(each, people) for key, each in given.items()}
    return given


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]
