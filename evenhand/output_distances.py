"""d_Y: how far apart two outputs of the model are. Functions (n, K), (n, K) -> (n,) that know what they are about.

Any plain function serves as well; ``described`` says of it what can be said. Adding one that certificates understand
is one more decorated function here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

OutputDistance = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Reading:
    """How a bound on a squared distance becomes one on d_Y: d_Y(f, f') <= up(|g - g'|^2) with g = change(f).

    ``change`` is linear and acts on the last layer's weights (K, H) and biases (K,) alike; ``up`` is increasing and
    concave with up(0) = 0, so that it survives taking means (Jensen's inequality). None is the identity.
    """

    change: Callable[[Tensor], Tensor]
    up: Callable[[float], float] | None = None


@dataclass(frozen=True, eq=False)
class Described:
    """An output distance with its name, its largest value (or inf), whether it speaks of classes (then a shift of all
    logits of a person is nothing) and how bounds are read off for it (None: they are not)."""

    function: OutputDistance
    name: str
    largest: float = math.inf
    of_classes: bool = False
    needs_logits: bool = False  # has no meaning for a model that only gives probabilities
    reading: Reading | None = None

    def __call__(self, h: Tensor, h_other: Tensor) -> Tensor:
        return self.function(h, h_other)

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.function.__doc__)
        object.__setattr__(self, "__name__", str(getattr(self.function, "__name__", self.name)))

    def __repr__(self) -> str:
        return str(getattr(self, "__name__", self.name))

    def __copy__(self) -> Described:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Described:
        return self  # there is one of each, so that `is` tells them apart

    def __reduce__(self) -> str:
        return repr(self)  # pickled by name, like a function


def output_distance(**about: Any) -> Callable[[OutputDistance], Described]:
    """Decorator: what is known of an output distance."""
    return lambda function: Described(function, **about)


def described(distance: OutputDistance) -> Described:
    """Any output distance with what is known of it; of a function from elsewhere that is its name."""
    if isinstance(distance, Described):
        return distance
    return Described(distance, str(getattr(distance, "__name__", "d_Y")).replace("_", " "))


def centred(h: Tensor) -> Tensor:
    """Logits with their mean taken away, person by person: (n, K) -> (n, K). A single output stays as it is."""
    return h - h.mean(-1, keepdim=True) if h.shape[-1] > 1 else h


def _root_tanh(value: float) -> float:
    return math.tanh(math.sqrt(max(value, 0.0)))


def _centred(t: Tensor) -> Tensor:
    """A shift of all logits changes no probability; a single output has nothing to be shifted against."""
    return t - t.mean(0) if t.shape[0] > 1 else t


def _margin(t: Tensor) -> Tensor:
    if t.shape[0] > 2:
        raise ValueError(f"absolute_probability needs two logits, the model has {t.shape[0]}; use total_variation")
    margin = t if t.shape[0] == 1 else t[1:2] - t[0:1]
    return margin / 4  # |p - p'| <= tanh(|dm| / 4) for the change dm of the logit margin


@output_distance(
    name="mean squared logits",
    of_classes=True,
    needs_logits=True,
    reading=Reading(lambda t: _centred(t) / math.sqrt(t.shape[0])),
)
def mean_squared_logits(h: Tensor, h_other: Tensor) -> Tensor:
    """The paper's d_Y: (1/K) |h(x) - h(x')|^2 on the K logits. Audits and certificates centre each person's logits."""
    return (h - h_other).square().mean(-1)


@output_distance(name="squared error", reading=Reading(lambda t: t))
def squared_error(h: Tensor, h_other: Tensor) -> Tensor:
    """For regression: the squared difference of the predictions (K = 1)."""
    return (h - h_other).square().sum(-1)


@output_distance(name="|p - p'|", largest=1.0, of_classes=True, reading=Reading(_margin, _root_tanh))
def absolute_probability(h: Tensor, h_other: Tensor) -> Tensor:
    """|p - p'| of the second of two classes, from logits (n, 2) or log-odds (n, 1)."""
    return (_positive_probability(h) - _positive_probability(h_other)).abs()


@output_distance(  # <= tanh(osc / 4), osc the oscillation of the change of the logits, osc <= sqrt(2) |df| when centred
    name="total variation",
    largest=1.0,
    of_classes=True,
    reading=Reading(lambda t: _margin(t) if t.shape[0] == 1 else _centred(t) / math.sqrt(8), _root_tanh),
)
def total_variation(h: Tensor, h_other: Tensor) -> Tensor:
    """Total variation between the class probabilities, from logits (n, K) or log-odds (n, 1); lies in [0, 1]."""
    if h.shape[-1] == 1:  # the softmax of a single logit is 1 whatever it is
        return absolute_probability(h, h_other)
    return 0.5 * (h.softmax(-1) - h_other.softmax(-1)).abs().sum(-1)


def _positive_probability(h: Tensor) -> Tensor:
    if h.shape[-1] > 2:
        raise ValueError(f"absolute_probability needs two logits per row, got {h.shape[-1]}; use total_variation")
    if h.shape[-1] == 1:
        return torch.sigmoid(h[..., 0])
    return torch.sigmoid(h[..., 1] - h[..., 0])
