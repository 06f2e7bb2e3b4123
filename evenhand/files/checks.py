"""What a model file says about itself, checked before anything is made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.estimators.targets import Targets
from evenhand.fair_metrics.metric import is_orthonormal

LONGEST_LABEL = 4096  # characters


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """A model with NaN or infinite weights gives no answers that mean anything."""
    for name, value in tensors.items():
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise ValueError(f"{name} holds NaN or infinite numbers")


def check_lam(given: Any) -> float:
    """The dual variable: a number, zero or positive."""
    lam = float(given)
    if not (math.isfinite(lam) and lam >= 0):
        raise ValueError(f"lam is {lam}; it must be zero or positive")
    return lam


def read_targets(given: Any) -> Targets:
    """The unit of training of a regressor: one scale above zero and one mean for each number that it predicts."""
    scale, mean = (np.atleast_1d(np.array(given[name], dtype=np.float64)) for name in ("scale", "mean"))
    if scale.ndim != 1 or scale.shape != mean.shape or len(scale) == 0:
        raise ValueError(f"the scale of the targets has shape {scale.shape}, their mean {mean.shape}")
    if not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0).all()):
        raise ValueError("the scale and the mean of the targets must be finite, the scale above zero")
    return Targets(len(scale), scale, mean)


def check_metric(directions: Tensor, factor: Tensor | None) -> None:
    """Sigma: orthonormal free directions, and a factor of as many columns, all finite."""
    if directions.ndim != 2 or directions.shape[1] > directions.shape[0] or not directions.is_floating_point():
        raise ValueError(f"the directions of the metric have shape {tuple(directions.shape)}")
    check_finite({"the metric": directions})
    if not is_orthonormal(directions):
        raise ValueError("the directions of the metric are not orthonormal")
    if factor is not None:
        if factor.ndim != 2 or factor.shape[1] != directions.shape[0] or not factor.is_floating_point():
            raise ValueError(f"the metric's factor has shape {tuple(factor.shape)} for {directions.shape[0]} features")
        check_finite({"the metric's factor": factor})


def read_classes(given: Any) -> NDArray[Any]:
    """Labels in their own type; a declared width of text costs nothing that its letters do not fill."""
    values = given["values"]
    if not isinstance(values, list) or not all(isinstance(v, str | int | float | bool) for v in values):
        raise ValueError("classes must be texts, numbers or booleans")
    kind = np.dtype(given["dtype"])
    if kind.kind not in "biufUO":
        raise ValueError(f"classes of type {kind} are not supported")
    longest = max((len(v) for v in values if isinstance(v, str)), default=0)
    if kind.kind == "U" and kind.itemsize // 4 > max(longest, LONGEST_LABEL):
        raise ValueError(f"classes declare {kind.itemsize // 4:,} letters each, the longest has {longest:,}")
    return np.array(values, dtype=kind)
