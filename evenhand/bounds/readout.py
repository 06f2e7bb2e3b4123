"""Output distances as squared distances of a network: what the quadratic bound can speak about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.bounds.layers import CannotCertify, Layer
from evenhand.output_distances import (
    OutputDistance,
    absolute_probability,
    described,
    mean_squared_logits,
    squared_error,
    total_variation,
)


@dataclass(frozen=True)
class Readout:
    """d_Y <= g(|f(x) - f(x')|^2) for the network f given by ``layers``, g increasing and concave with g(0) = 0."""

    layers: list[Layer]
    name: str
    largest: float = np.inf  # of d_Y itself
    g: Callable[[float], float] | None = None  # None: the identity

    def up(self, value: float) -> float:
        """From a bound on the mean of |f - f'|^2 to one on the mean of d_Y (Jensen's inequality)."""
        return min(value if self.g is None else self.g(value), self.largest)

    def up_each(self, values: NDArray[Any]) -> NDArray[Any]:
        read = values if self.g is None else np.array([self.g(v) for v in np.ravel(values)]).reshape(np.shape(values))
        return np.asarray(np.minimum(read, self.largest))


def readout(output_distance: OutputDistance, layers: list[Layer]) -> Readout:
    """The network whose squared distances bound this output distance, as the output distance itself says."""
    about = described(output_distance)
    if about.reading is None:
        raise CannotCertify(
            "upper bounds exist for mean_squared_logits, squared_error, absolute_probability and total_variation; got "
            f"{about!r}; audit() takes any output distance"
        )
    last = layers[-1]
    change = about.reading.change
    changed = Layer(change(last.weight), change(last.bias))
    return Readout([*layers[:-1], changed], about.name, about.largest, about.reading.up)


def squared_readout(output_distance: OutputDistance, k: int, classifier: bool) -> tuple[Readout, float]:
    """The readout of a model that bounds its own |h(x) - h(x')|^2 for k outputs, and the scale at which it is read.

    Two classes are one log-odds f, the logits (-f/2, f/2): their mean squared change is (df)^2 / 4.
    """
    about, binary = described(output_distance), classifier and k == 1
    scales = {mean_squared_logits: 0.25 if binary else 1 / k, squared_error: 0.5 if binary else 1.0}
    if classifier:
        scales[total_variation] = 1 / 16 if binary else 1 / 8
    if binary:
        scales[absolute_probability] = 1 / 16
    if about.reading is None or about not in scales:
        raise CannotCertify(
            "upper bounds of models that are no networks exist for mean_squared_logits, squared_error, total_variation "
            f"and, for two classes, absolute_probability; got {about!r}; audit() takes any"
        )
    return Readout([], about.name, about.largest, about.reading.up), scales[about]


def voting_readout(output_distance: OutputDistance, k: int) -> Readout:
    """The readout of a model whose k outputs are probabilities and that bounds their total variation itself."""
    about = described(output_distance)
    if about is not total_variation and not (about is absolute_probability and k == 2):
        raise CannotCertify(
            "upper bounds of models that vote with probabilities exist for total_variation and, for two classes, "
            f"absolute_probability; got {about!r}; audit() takes any"
        )
    return Readout([], about.name, about.largest)
