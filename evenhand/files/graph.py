"""The graph that an export builds, node by node, and tree ensembles in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.ensembles.trees import TreeEnsemble

OPSET, ML_OPSET = 17, 3


class Graph:
    """Nodes, constants and inputs of the graph being built; ``kind`` is the type of its numbers."""

    def __init__(self, kind: type[np.floating[Any]] = np.float32) -> None:
        from onnx import TensorProto

        self.kind = kind
        self.real: int = TensorProto.DOUBLE if kind is np.float64 else TensorProto.FLOAT
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.count = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count}"

    def input(self, name: str, kind: str, width: int) -> None:
        from onnx import TensorProto, helper

        code = TensorProto.STRING if kind == "string" else self.real
        self.inputs.append(helper.make_tensor_value_info(name, code, ["n", width]))

    def output(self, name: str, code: int, shape: list[Any]) -> None:
        from onnx import helper

        self.outputs.append(helper.make_tensor_value_info(name, code, shape))

    def constant(self, value: Any) -> str:
        from onnx import numpy_helper

        name = self.name("constant")
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def number(self, value: Any) -> str:
        """A constant of the graph's own type of numbers."""
        return self.constant(np.asarray(value, dtype=self.kind))

    def cast(self, value: str) -> str:
        """Anything as the graph's own type of numbers."""
        return self.node("Cast", [value], to=self.real)

    def node(
        self, kind: str, inputs: Sequence[str], output: str | None = None, domain: str = "", **attributes: Any
    ) -> str:
        from onnx import helper

        name = output or self.name(kind.lower())
        self.nodes.append(helper.make_node(kind, list(inputs), [name], domain=domain, **attributes))
        return name

    def model(self) -> Any:
        from onnx import helper

        graph = helper.make_graph(self.nodes, "evenhand", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="evenhand")


def add_trees(graph: Graph, trees: TreeEnsemble, x: str) -> str:
    """h(x) = base + sum of leaves, each times the product of the shares on its path: (n, d) -> (n, K).

    Ordinary operators, because those for trees know no soft splits: the share of every split at once, then one product
    for each level of the deepest tree.
    """
    splits = np.flatnonzero(trees.feature >= 0)
    leaves = np.flatnonzero(trees.feature < 0)
    values = np.zeros((len(leaves), trees.outputs))
    values[np.arange(len(leaves)), trees.output[np.searchsorted(trees.root, leaves, side="right") - 1]] = trees.value[
        leaves
    ]
    first = graph.node("Gather", [x, graph.constant(np.zeros(1, np.int64))], axis=1)
    one = graph.node("Or", [graph.node("Equal", [first, first]), graph.node("IsNaN", [first])])
    parts = [graph.cast(one)]  # a column of ones, for the levels below a leaf
    if len(splits):
        share = _shares(graph, trees, splits, x)
        parts += [share, graph.node("Sub", [graph.number(1.0), share])]
    every = graph.node("Concat", parts, axis=1)
    weight = graph.node("Gather", [every, graph.constant(np.zeros(len(leaves), np.int64))], axis=1)
    for level in _levels(trees, splits, leaves):
        factor = graph.node("Gather", [every, graph.constant(level)], axis=1)
        weight = graph.node("Mul", [weight, factor])
    total = graph.node("MatMul", [weight, graph.number(values)])
    return graph.node("Add", [total, graph.number(trees.base[None])])


def _shares(graph: Graph, trees: TreeEnsemble, splits: NDArray[Any], x: str) -> str:
    """How much of a person each split sends to the right: (n, splits)."""
    threshold, width = trees.threshold[splits], trees.width[splits]
    hard = width == 0
    v = graph.node("Gather", [x, graph.constant(trees.feature[splits].astype(np.int64))], axis=1)
    above = graph.node("Sub", [v, graph.number(threshold[None])])
    ramp = graph.node("Add", [above, graph.number(width[None])])
    ramp = graph.node("Div", [ramp, graph.number(np.where(hard, 1.0, 2 * width)[None])])
    ramp = graph.node("Clip", [ramp, graph.number(0.0), graph.number(1.0)])
    step = graph.cast(graph.node("Greater", [v, graph.number(threshold[None])]))
    share = graph.node("Where", [graph.constant(hard[None]), step, ramp])
    sent = graph.number((~trees.missing_left[splits])[None].astype(np.float64))
    return graph.node("Where", [graph.node("IsNaN", [v]), sent, share])


def _levels(trees: TreeEnsemble, splits: NDArray[Any], leaves: NDArray[Any]) -> list[NDArray[np.int64]]:
    """For each level the column of (1, shares, 1 - shares) by which each leaf's weight is multiplied."""
    place = np.zeros(len(trees.feature), np.int64)
    place[splits] = np.arange(len(splits))
    parent, column = np.full(len(trees.feature), -1, np.int64), np.zeros(len(trees.feature), np.int64)
    parent[trees.right[splits]], column[trees.right[splits]] = splits, 1 + place[splits]
    parent[trees.left[splits]], column[trees.left[splits]] = splits, 1 + len(splits) + place[splits]
    levels, at = [], leaves
    while (above := np.where(at >= 0, parent[at], -1)).max(initial=-1) >= 0:
        levels.append(np.where(above >= 0, column[at], 0))
        at = above
    return levels
