"""Tree ensembles in a model file: their columns as tensors, checked before anything walks along them.

The compiled kernels follow node numbers without asking, so a file must describe trees and nothing else: children come
after their parent and inside their own tree, each node has one parent, and no path is longer than the kernels' stacks.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from evenhand.ensembles.trees import DEEPEST, TreeEnsemble

COLUMNS = {
    "feature": torch.int32,
    "threshold": torch.float64,
    "width": torch.float64,
    "left": torch.int32,
    "right": torch.int32,
    "value": torch.float64,
    "missing_left": torch.bool,
    "root": torch.int32,
    "output": torch.int32,
    "base": torch.float64,
}


def write_trees(trees: TreeEnsemble, tensors: dict[str, Tensor]) -> None:
    """The ensemble's columns, under names that begin with "trees."."""
    for name in COLUMNS:
        tensors[f"trees.{name}"] = torch.from_numpy(np.array(getattr(trees, name)))


def read_trees(tensors: dict[str, Tensor], d: int) -> TreeEnsemble:
    """The ensemble again; whatever is not a sum of trees over d features is a ValueError."""
    columns = {}
    for name, kind in COLUMNS.items():
        tensor = tensors[f"trees.{name}"]
        if tensor.ndim != 1 or tensor.dtype != kind:
            raise ValueError(f"trees.{name} must be one column of type {kind}, got {tensor.dtype} of {tensor.ndim}")
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"trees.{name} holds NaN or infinite numbers")
        columns[name] = tensor.numpy()
    nodes = len(columns["feature"])
    if any(len(columns[name]) != nodes for name in ("threshold", "width", "left", "right", "value", "missing_left")):
        raise ValueError("the columns of the trees' nodes have different lengths")
    root, output, k = columns["root"], columns["output"], len(columns["base"])
    if len(root) != len(output) or k < 1 or ((output < 0) | (output >= k)).any():
        raise ValueError("each tree must add to one of the outputs")
    starts = np.append(root.astype(np.int64), nodes)
    if (len(root) == 0) != (nodes == 0) or (len(root) and (starts[0] != 0 or (np.diff(starts) < 1).any())):
        raise ValueError("the trees must lie one after the other and hold all nodes")
    feature, here = columns["feature"], np.arange(nodes)
    if ((feature < -1) | (feature >= d)).any() or (columns["width"] < 0).any():
        raise ValueError(f"splits must be on one of the {d} features, with widths of zero or more")
    inner = feature >= 0
    end = starts[1:][np.searchsorted(root, here, side="right") - 1]  # where each node's tree ends
    children = np.concatenate([columns["left"][inner], columns["right"][inner]])
    parents, ends = np.tile(here[inner], 2), np.tile(end[inner], 2)
    if ((children <= parents) | (children >= ends)).any() or len(np.unique(children)) != nodes - len(root):
        raise ValueError("the nodes do not form trees")
    trees = TreeEnsemble(**columns, d=d)
    if trees.depth > DEEPEST:
        raise ValueError(f"a tree is {trees.depth} splits deep; at most {DEEPEST} are read")
    return trees
