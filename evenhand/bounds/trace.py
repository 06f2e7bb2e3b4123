"""Any network of affine maps and ReLUs as layers: followed step by step through torch.fx, whatever class it is.

Each step of the traced program is kept as an affine function of the *last hidden layer*, x at first. A ReLU on such
functions starts the next hidden layer; earlier values that are still needed (residual additions) are carried through it
as pairs relu(v), relu(-v), since v = relu(v) - relu(-v).
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from evenhand.bounds.layers import CannotCertify, Layer, batch_norm_layer, wide

RELUS: tuple[Any, ...] = (F.relu, torch.relu, torch.relu_, "relu", "relu_")
SAME: tuple[Any, ...] = (
    F.dropout, torch.flatten, "flatten", "contiguous", "clone", "detach", "float", "double", torch.clone
)  # fmt: skip


def traced_layers(model: nn.Module, width: int) -> list[Layer]:
    """The layers of a module that reads ``width`` columns; refuses with the name of the step it cannot follow."""
    try:
        graph = fx.Tracer().trace(model.eval())
    except Exception as error:  # data-dependent control flow, proxies in places that need numbers
        raise CannotCertify(
            f"{type(model).__name__} could not be followed step by step ({_first_line(error)}); its forward must not "
            "depend on the data's values; audit() gives a lower bound for any model"
        ) from error
    return _Walk(model, width).run(graph)


class _Walk:
    """Values so far, each an affine function (W, b) of the last hidden layer; ``layers`` up to there."""

    def __init__(self, model: nn.Module, width: int) -> None:
        self.model, self.layers, self.hidden = model, [], width
        self.values: dict[fx.Node, Layer] = {}
        self.live: dict[fx.Node, int] = {}

    layers: list[Layer]

    def run(self, graph: fx.Graph) -> list[Layer]:
        nodes = list(graph.nodes)
        order = {node: i for i, node in enumerate(nodes)}
        self.live = {node: max([order[user] for user in node.users], default=-1) for node in nodes}
        for i, node in enumerate(nodes):
            if node.op == "placeholder":
                if self.values:
                    raise CannotCertify("the model takes more than one argument; give it one table of columns")
                eye = torch.eye(self.hidden, dtype=torch.float64)
                self.values[node] = Layer(eye, torch.zeros(self.hidden, dtype=torch.float64))
            elif node.op == "output":
                (result,) = node.args
                if not isinstance(result, fx.Node) or result not in self.values:
                    raise CannotCertify("the model must return one tensor of outputs; audit() takes any model")
                return [*self.layers, self.values[result]]
            elif node.op == "get_attr":
                continue
            else:
                self.values[node] = self._step(node, i)
        raise CannotCertify("the model returns nothing")

    def _step(self, node: fx.Node, place: int) -> Layer:
        if node.op == "call_module":
            part = self.model.get_submodule(str(node.target))
            before = self._affine(node.args[0])
            if isinstance(part, nn.Linear):
                return _compose(Layer(wide(part.weight), wide(part.bias, part.out_features)), before)
            if isinstance(part, nn.BatchNorm1d):
                return _compose(batch_norm_layer(part), before)
            if isinstance(part, nn.ReLU):
                return self._relu(node, place)
            if isinstance(part, nn.Identity | nn.Dropout | nn.Flatten):
                return before
            raise self._refused(type(part).__name__)
        target = node.target
        if target in RELUS:
            return self._relu(node, place)
        if target in SAME:
            return self._affine(node.args[0])
        if target is F.linear:
            return self._linear(node)
        if target in (operator.add, operator.iadd, torch.add, "add", "add_", operator.sub, torch.sub, "sub"):
            sign = -1.0 if target in (operator.sub, torch.sub, "sub") else 1.0
            return self._sum(node.args[0], node.args[1], sign)
        if target in (operator.mul, torch.mul, "mul", operator.truediv, torch.div, "div"):
            return self._scaled(node, target in (operator.truediv, torch.div, "div"))
        if target in (operator.neg, torch.neg, "neg"):
            weight, bias = self._affine(node.args[0])
            return Layer(-weight, -bias)
        if target in (torch.squeeze, "squeeze"):
            return self._affine(node.args[0])
        name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
        raise self._refused(name)

    def _relu(self, node: fx.Node, place: int) -> Layer:
        """A new hidden layer: relu of the argument first, then what later steps still need, in two halves."""
        argument = self._affine(node.args[0])
        needed = [other for other in self.values if self.live[other] > place and other is not node]
        rows, offsets, here = [argument.weight], [argument.bias], argument.bias.shape[0]
        places: dict[fx.Node, int] = {}
        for other in needed:
            weight, bias = self.values[other]
            places[other] = here
            rows += [weight, -weight]
            offsets += [bias, -bias]
            here += 2 * bias.shape[0]
        self.layers.append(Layer(torch.cat(rows), torch.cat(offsets)))
        self.hidden = here
        for other, start in places.items():
            size = self.values[other].bias.shape[0]
            weight = torch.zeros(size, here, dtype=torch.float64)
            weight[:, start : start + size] = torch.eye(size, dtype=torch.float64)
            weight[:, start + size : start + 2 * size] = -torch.eye(size, dtype=torch.float64)
            self.values[other] = Layer(weight, torch.zeros(size, dtype=torch.float64))
        for other in list(self.values):
            if other not in places:
                del self.values[other]
        size = argument.bias.shape[0]
        weight = torch.zeros(size, here, dtype=torch.float64)
        weight[:, :size] = torch.eye(size, dtype=torch.float64)
        return Layer(weight, torch.zeros(size, dtype=torch.float64))

    def _linear(self, node: fx.Node) -> Layer:
        names = dict(zip(("input", "weight", "bias"), node.args)) | dict(node.kwargs)
        weight, bias = self._constant(names["weight"]), names.get("bias")
        offset = wide(None, weight.shape[0]) if bias is None else self._constant(bias)
        return _compose(Layer(weight, offset), self._affine(names["input"]))

    def _sum(self, one: Any, two: Any, sign: float) -> Layer:
        if self._is_value(one) and self._is_value(two):
            first, second = self.values[one], self.values[two]
            return Layer(first.weight + sign * second.weight, first.bias + sign * second.bias)
        if self._is_value(one):
            weight, bias = self.values[one]
            return Layer(weight, bias + sign * self._constant(two))
        weight, bias = self._affine(two)
        return Layer(sign * weight, sign * bias + self._constant(one))

    def _scaled(self, node: fx.Node, divided: bool) -> Layer:
        one, two = node.args
        if self._is_value(one) == self._is_value(two) or (divided and self._is_value(two)):
            raise self._refused("a product of two values that depend on the input")
        weight, bias = self._affine(one if self._is_value(one) else two)
        factor = self._constant(two if self._is_value(one) else one)
        factor = 1 / factor if divided else factor
        factor = factor.expand(bias.shape[0]) if factor.ndim <= 1 else factor.reshape(-1).expand(bias.shape[0])
        return Layer(weight * factor[:, None], bias * factor)

    def _is_value(self, argument: Any) -> bool:
        return isinstance(argument, fx.Node) and argument in self.values

    def _affine(self, argument: Any) -> Layer:
        if not self._is_value(argument):
            raise self._refused(f"a step on {argument}")
        return self.values[argument]

    def _constant(self, argument: Any) -> Tensor:
        if isinstance(argument, int | float):
            return torch.tensor(float(argument), dtype=torch.float64)
        if isinstance(argument, fx.Node) and argument.op == "get_attr":
            found: Any = self.model
            for name in str(argument.target).split("."):
                found = getattr(found, name)
            return wide(found)
        raise self._refused(f"a step on {argument}")

    def _refused(self, name: str) -> CannotCertify:
        return CannotCertify(
            "only Linear, ReLU, Dropout, BatchNorm1d, Identity, Flatten, sums and constant factors can be certified, "
            f"and the model holds {name}; audit() gives a lower bound for any model"
        )


def _compose(outer: Layer, inner: Layer) -> Layer:
    if outer.weight.shape[1] != inner.bias.shape[0]:
        raise CannotCertify(
            f"a layer reads {outer.weight.shape[1]} values where {inner.bias.shape[0]} come; check the columns"
        )
    return Layer(outer.weight @ inner.weight, outer.weight @ inner.bias + outer.bias)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]
