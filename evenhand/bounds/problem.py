"""The setting of the upper bounds: a ReLU network with the geometry of its people, in float64."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from evenhand.bounds.activations import slopes
from evenhand.bounds.layers import Layer, forward
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.search.geometry import Geometry


class Problem(Geometry):
    """r_lam(x) = sup over x' in Dom of |f(x) - f(x')|^2 - lam * d_X(x, x'), f a network given by its layers.

    The factor 1/K of the paper's d_Y belongs into the last layer, see ``scaled``.
    """

    def __init__(self, layers: list[Layer], fair_metric: FairMetric, box: Box) -> None:
        width = layers[0].weight.shape[1]
        if box.d != width:
            raise ValueError(
                f"the model reads {width} features but bounds have {box.d}; give the encoded columns' bounds"
            )
        super().__init__(fair_metric, box)
        self.layers = layers
        self.widths = [layer.bias.shape[0] for layer in layers[:-1]]

    def with_layers(self, layers: list[Layer]) -> Problem:
        """The same people seen by another network."""
        other = Problem.__new__(Problem)
        other.__dict__.update(self.__dict__)
        other.layers, other.widths = layers, [layer.bias.shape[0] for layer in layers[:-1]]
        return other

    @property
    def slopes(self) -> list[tuple[Tensor, Tensor] | None]:
        """Of each hidden layer, between which two slopes its units stay; None where they are ReLUs."""
        return [slopes(layer.after) for layer in self.layers[:-1]]

    @property
    def smooth(self) -> bool:
        """Whether some activation is no ReLU."""
        return any(layer.after is not None for layer in self.layers[:-1])

    @cached_property
    def separable(self) -> bool:
        """Whether d_X is a sum over columns and Dom a plain product, so that bounds can be worked out by column."""
        off = self.sigma - torch.diag(self.sigma.diagonal())
        axes = (self.basis.abs() > 1e-6).sum(0) <= 1 if self.k else torch.ones(1, dtype=torch.bool)
        return bool((off == 0).all()) and bool(axes.all()) and type(self.box) is Box

    @cached_property
    def seen(self) -> tuple[Tensor, Tensor]:
        """An orthonormal basis of what d_X charges for, and 1 / sqrt of the price of each of its directions."""
        values, vectors = torch.linalg.eigh(self.sigma)
        paid = values > 1e-9 * values.abs().max().clamp(min=1e-300)
        return vectors[:, paid], values[paid].rsqrt()

    @cached_property
    def reach(self) -> float:
        """sqrt(d_X) between two points of Dom is at most this."""
        span = self.box.high - self.box.low
        if self.separable:
            return float((self.sigma.diagonal() * span.square()).sum().sqrt())
        return float((torch.linalg.eigvalsh(self.sigma)[-1].clamp(min=0) * span.square().sum()).sqrt())

    @property
    def w_free(self) -> Tensor:
        """The first layer's weights on the free columns: (H_1, d_F)."""
        return self.layers[0].weight[:, self.free]

    def f(self, x: Tensor) -> Tensor:
        return forward(self.layers, x)

    def gain(self, x: Tensor, x_other: Tensor, lam: float) -> Tensor:
        """d_Y - lam * d_X of each pair: a lower bound of r_lam(x) when x_other is in Dom."""
        return (self.f(x) - self.f(x_other)).square().sum(-1) - lam * self.d_x(x_other - x)
