"""The set of possible people in a model file: its numbers as tensors, its discrete columns as JSON."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from evenhand.domain import Box, FreeBox


def write_box(box: Box, tensors: dict[str, Tensor], name: str) -> dict[str, Any]:
    """What ``read_box`` needs; the numbers go to the tensors, under ``name``."""
    inner = box.box if isinstance(box, FreeBox) else box
    tensors[f"{name}.low"], tensors[f"{name}.high"] = inner.low, inner.high
    if isinstance(box, FreeBox):
        tensors[f"{name}.free"] = box.free
        tensors[f"{name}.free_low"], tensors[f"{name}.free_high"] = box.free_low, box.free_high
    return {"binary": list(inner.binary), "blocks": [list(block) for block in inner.blocks]}


def read_box(given: Any, tensors: dict[str, Tensor], name: str) -> Box:
    """The box again; whatever no box can be is a ValueError."""
    low, high = tensors[f"{name}.low"], tensors[f"{name}.high"]
    if low.ndim != 1 or low.dtype != torch.float64 or high.shape != low.shape or high.dtype != torch.float64:
        raise ValueError(f"{name} must hold one number of type float64 for each column")
    blocks = [_columns(block) for block in given["blocks"]]
    box = Box(low, high, blocks=blocks, binary=_columns(given["binary"]))
    if f"{name}.free" not in tensors:
        return box
    return FreeBox(box, *(tensors[f"{name}.{part}"] for part in ("free", "free_low", "free_high")))


def _columns(given: Any) -> list[int]:
    if not isinstance(given, list) or not all(type(j) is int for j in given):
        raise TypeError("columns must be a list of whole numbers")
    return given
