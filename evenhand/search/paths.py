"""How the gain and its slope are computed: the fast paths, and the plain one for any model.

A path is made once per batch for a model, a gain and x. The search walks along it, under ``no_grad``:

* ``settle(u)`` goes to x + A u, after which ``value()`` gives the gain there, (n,), and ``value(v)`` the gain at
  x + A u + v; ``rows``, where given, are those in which v is not zero
* ``slope_u()`` and ``slope_v()`` give the gradient of that last value with respect to u, (n, k), and to v, (n, d)
* after ``start_line()`` and ``value(v)``, ``value_on_line(t)`` is the gain at a share t, (n,), of the way between

When the head of the model is known in closed form (search/head.py), a walk (search/walks.py) follows its output, and
the model is asked for the rest only. For a tail of ReLU-Linear-...-Linear the slope is written out by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from evenhand.output_distances import mean_squared_logits
from evenhand.search.walks import Walk, beside
from evenhand.search.worst_cases import DistanceGain, Gain, Model, value_and_slope


class Path(Protocol):
    def settle(self, u: Tensor) -> None: ...

    def value(self, v: Tensor | None = None, rows: Tensor | None = None) -> Tensor: ...

    def slope_u(self) -> Tensor: ...

    def slope_v(self) -> Tensor: ...

    def start_line(self) -> None: ...

    def value_on_line(self, t: Tensor) -> Tensor: ...

    def z_at(self, u: Tensor, v: Tensor | None, current: Tensor) -> Tensor | None: ...

    def z_settled(self, u: Tensor, rows: Tensor) -> Tensor | None: ...

    def zeros(self, width: int) -> Tensor: ...


class PlainPath:
    """Any callable of tensors: autograd with respect to the perturbation only."""

    def __init__(self, model: Model, gain: Gain, x: Tensor, directions: Tensor) -> None:
        self.model, self.gain, self.x, self.directions = model, gain, x, directions
        self.base = x
        self.line: tuple[Tensor, Tensor | None] = x, None

    def settle(self, u: Tensor) -> None:
        self.base = torch.addmm(self.x, u, self.directions.T)

    def value(self, v: Tensor | None = None, rows: Tensor | None = None) -> Tensor:
        return self._value_at(self.base.detach() if v is None else self.base + v)

    def start_line(self) -> None:
        self.line = self.pre.detach(), None

    def value_on_line(self, t: Tensor) -> Tensor:
        self.line = start, end = self.line[0], self.pre.detach() if self.line[1] is None else self.line[1]
        return self._value_at(torch.lerp(start, end, t[:, None]))

    def _value_at(self, pre: Tensor) -> Tensor:
        self.pre = pre.requires_grad_(True)
        with torch.enable_grad():
            self.gained = self.gain(self.model(self.pre))
        return self.gained.detach()

    def slope_u(self) -> Tensor:
        return self.slope_v() @ self.directions

    def slope_v(self) -> Tensor:
        return _gradient(self.gained, self.pre, lambda point: self.gain(self.model(point)))

    def z_at(self, u: Tensor, v: Tensor | None, current: Tensor) -> Tensor | None:
        return None

    def z_settled(self, u: Tensor, rows: Tensor) -> Tensor | None:
        return None

    def zeros(self, width: int) -> Tensor:
        return self.x.new_zeros(len(self.x), width)


class SplitPath:
    """Models whose head is known: ``tail`` maps the head's output z to the logits."""

    def __init__(self, tail: Model, walk: Walk, gain: Gain, like: Tensor) -> None:
        self.tail, self.walk, self.gain, self.like = tail, walk, gain, like  # (n, H) as what is walked at x

    def settle(self, u: Tensor) -> None:
        self.base = self.walk.settle(u)

    def value(self, v: Tensor | None = None, rows: Tensor | None = None) -> Tensor:
        return self._value_at(self.base if v is None else self.walk.move(v, rows))

    def start_line(self) -> None:
        self.walk.start_line()

    def value_on_line(self, t: Tensor) -> Tensor:
        return self._value_at(self.walk.on_line(t))

    def slope_u(self) -> Tensor:
        return self.walk.slope_u(self._slope_z())

    def slope_v(self) -> Tensor:
        return self.walk.slope_v(self._slope_z())

    def z_at(self, u: Tensor, v: Tensor | None, current: Tensor) -> Tensor:
        """What the training step needs of x + A u + v; rows that are ``current`` are where the path stands now."""
        return self.walk.walked_at(u, v, current)

    def z_settled(self, u: Tensor, rows: Tensor) -> Tensor:
        """The same of x + A u, for some of the rows."""
        return self.walk.settled_at(u, rows)

    def zeros(self, width: int) -> Tensor:
        """(n, width) in the layout of this path, for a move and all that is computed from it."""
        return self.like.new_zeros(len(self.like), width)

    def _value_at(self, z: Tensor) -> Tensor:
        self.pre = z.detach().requires_grad_(True)
        with torch.enable_grad():
            self.gained = self.gain(self.tail(self.pre))
        return self.gained.detach()

    def _slope_z(self) -> Tensor:
        return _gradient(self.gained, self.pre, lambda z: self.gain(self.tail(z)))


class ReLUPath(SplitPath):
    """The tail ReLU-Linear-...-Linear: the slope by hand, in buffers that are made once per batch.

    All buffers hold the individuals side by side in memory (see ``beside``), in which the thin products with W2 and
    W1 A run several times faster than row by row.
    """

    def __init__(self, layers: Sequence[nn.Linear], walk: Walk, gain: Gain, like: Tensor) -> None:
        super().__init__(layers[-1], walk, gain, like)  # the tail is written out below
        weights = [layer.weight.detach() for layer in layers]
        starts = [None if layer.bias is None else layer.bias.detach() for layer in layers]
        self.closed_form = isinstance(gain, DistanceGain) and gain.output_distance is mean_squared_logits
        if isinstance(gain, DistanceGain) and self.closed_form:
            # (1/K) |h - h(x)|^2 is the square of what the last layer gives with W / sqrt(K) and (b - h(x)) / sqrt(K).
            share = gain.h_x.shape[1] ** -0.5
            weights[-1], start = weights[-1] * share, gain.h_x.neg() if starts[-1] is None else starts[-1] - gain.h_x
            starts[-1] = beside(like, gain.h_x.shape[1]).copy_(start).mul_(share)
            self.squares = torch.empty_like(starts[-1])
        self.layers = [(weight.T, start) for weight, start in zip(weights, starts)]
        self.back = weights  # what the slope is multiplied with on its way back
        if self.closed_form:
            self.back[-1] = 2 * self.back[-1]
        self.outputs = [beside(like, len(weight)) for weight in weights]  # of each layer after the first
        self.post = [torch.empty_like(like)] + [torch.empty_like(output) for output in self.outputs[:-1]]

    def _value_at(self, z: Tensor) -> Tensor:
        self.pre = z
        for (weight, start), post, output in zip(self.layers, self.post, self.outputs):
            torch.clamp_min(z, 0, out=post)
            if start is None:
                torch.mm(post, weight, out=output)
            else:
                torch.addmm(start, post, weight, out=output)
            z = output
        if self.closed_form:
            self.h_slope = z
            return torch.mul(z, z, out=self.squares).sum(1)
        value, self.h_slope = value_and_slope(self.gain, z)
        return value

    def zeros(self, width: int) -> Tensor:
        return beside(self.like, width).zero_()

    def _slope_z(self) -> Tensor:
        """Back through the layers; the slope overwrites the activations, which are not needed any more."""
        slope, pres = self.h_slope, [self.pre, *self.outputs[:-1]]
        for weight, pre, post in zip(reversed(self.back), reversed(pres), reversed(self.post)):
            torch.mm(slope, weight, out=post)
            slope = torch.ops.aten.threshold_backward.grad_input(post, pre, 0, grad_input=post)
        return slope


def _gradient(gained: Tensor, point: Tensor, gain_at: Gain) -> Tensor:
    if not gained.requires_grad:
        raise ValueError(
            "the gain does not depend on x' by differentiable operations, so there is no slope to follow; "
            "use CandidateSearch for models without gradients"
        )
    (slope,) = torch.autograd.grad(gained, point, torch.ones_like(gained), allow_unused=True)
    if slope is not None:
        return slope
    with torch.no_grad():  # autograd sees no way from the point to the gain: is there none?
        elsewhere = gain_at(point.detach() + 1.0)
    if not torch.allclose(elsewhere, gained.detach(), rtol=1e-4, atol=1e-6, equal_nan=True):
        raise ValueError(
            "the model's output changes with x', but no gradient leads there, so that nothing would be searched: its "
            "forward runs a part under torch.no_grad() or detaches it; freeze that part with requires_grad_(False) "
            "instead, or say with at= the layer behind it, whose output may move"
        )
    return torch.zeros_like(point)
