"""Output distances as squared distances of a network: what the quadratic bound can speak about."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evenhand.bounds.layers import CannotCertify, Layer
from evenhand.output_distances import (
    OutputDistance,
    absolute_probability,
    mean_squared_logits,
    squared_error,
    total_variation,
)


@dataclass(frozen=True)
class Readout:
    """d_Y <= g(|f(x) - f(x')|^2) for the network f given by ``layers``, g increasing and concave with g(0) = 0."""

    layers: list[Layer]
    name: str
    bounded: bool  # g = tanh(sqrt(.)) rather than the identity

    def up(self, value: float) -> float:
        """From a bound on the mean of |f - f'|^2 to one on the mean of d_Y (Jensen's inequality)."""
        return math.tanh(math.sqrt(max(value, 0.0))) if self.bounded else value

    def up_each(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.tanh(np.sqrt(np.maximum(values, 0.0))) if self.bounded else values


def readout(output_distance: OutputDistance, layers: list[Layer]) -> Readout:
    """The squared logits as they are. For probabilities: with dm the change of the logit margin, |p - p'| <=
    tanh(|dm| / 4); with osc the oscillation of the change of the logits, total variation <= tanh(osc / 4), and
    osc <= sqrt(2) |df| for centred logits. tanh(sqrt(.)) is concave, so both survive taking means."""
    weight, bias = layers[-1]
    k = bias.shape[0]
    change: Callable[[torch.Tensor], torch.Tensor]
    if output_distance is mean_squared_logits:
        name, bounded, change = "mean squared logits", False, lambda t: t / math.sqrt(k)
    elif output_distance is squared_error:
        name, bounded, change = "squared error", False, lambda t: t
    elif output_distance is absolute_probability:
        if k != 2:
            raise ValueError(f"absolute_probability needs two logits, the model has {k}; use total_variation")
        name, bounded, change = "|p - p'|", True, lambda t: (t[1:2] - t[0:1]) / 4
    elif output_distance is total_variation:
        name, bounded, change = "total variation", True, lambda t: (t - t.mean(0)) / math.sqrt(8)
    else:
        raise CannotCertify(
            "upper bounds exist for mean_squared_logits, squared_error, absolute_probability and total_variation; got "
            f"{getattr(output_distance, '__name__', output_distance)}; audit() takes any output distance"
        )
    return Readout([*layers[:-1], Layer(change(weight), change(bias))], name, bounded)


def tree_readout(output_distance: OutputDistance, k: int, classifier: bool) -> tuple[Readout, float]:
    """The readout of a tree ensemble with k outputs, and the scale at which it reads |h(x) - h(x')|^2.

    Two classes are one log-odds f, the logits (-f/2, f/2): their mean squared change is (df)^2 / 4.
    """
    binary = classifier and k == 1
    if output_distance is mean_squared_logits:
        return Readout([], "mean squared logits", False), 0.25 if binary else 1 / k
    if output_distance is squared_error:
        return Readout([], "squared error", False), 0.5 if binary else 1.0
    if output_distance is absolute_probability and binary:
        return Readout([], "|p - p'|", True), 1 / 16
    if output_distance is total_variation and classifier:
        return Readout([], "total variation", True), 1 / 16 if binary else 1 / 8
    raise CannotCertify(
        "upper bounds of tree ensembles exist for mean_squared_logits, squared_error, total_variation and, for two "
        f"classes, absolute_probability; got {getattr(output_distance, '__name__', output_distance)}; audit() takes any"
    )
