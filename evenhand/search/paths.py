"""How the gain and its slope are computed: the fast paths, and the plain one for any model.

A path is made once per batch for a model, a gain and x. The search walks along it, under ``no_grad``:

* ``settle(u)`` goes to x + A u, ``value(v)`` gives the gain at x + A u + v, (n,); ``rows``, where given, are those in
  which v is not zero
* ``slope_u()`` and ``slope_v()`` give the gradient of that last value with respect to u, (n, k), and to v, (n, d)
* after ``start_line()`` and ``value(v)``, ``value_on_line(t)`` is the gain at a share t, (n,), of the way between

When the model begins with a linear layer, W1 (x + A u) + b1 = Z0 + (W1 A) u, with Z0 = W1 x + b1 computed once per
batch: moves inside the subspace then never touch d again. For Linear-ReLU-...-Linear the slope is written out by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from evenhand.output_distances import mean_squared_logits
from evenhand.search.worst_cases import DistanceGain, Gain, Model, value_and_slope


class Path(Protocol):
    def settle(self, u: Tensor) -> None: ...

    def value(self, v: Tensor | None = None, rows: Tensor | None = None) -> Tensor: ...

    def slope_u(self) -> Tensor: ...

    def slope_v(self) -> Tensor: ...

    def start_line(self) -> None: ...

    def value_on_line(self, t: Tensor) -> Tensor: ...

    def z_at(self, u: Tensor, v: Tensor | None, current: Tensor) -> Tensor | None: ...

    def zeros(self, width: int) -> Tensor: ...


class Line:
    """Between two points that were looked at; ``pre`` is the last of them, as the model is given it."""

    pre: Tensor
    line: tuple[Tensor, Tensor | None] | None = None

    def _value_at(self, pre: Tensor) -> Tensor:
        raise NotImplementedError

    def start_line(self) -> None:
        self.line = self.pre.detach(), None

    def value_on_line(self, t: Tensor) -> Tensor:
        assert self.line is not None
        self.line = start, end = self.line[0], self.pre.detach() if self.line[1] is None else self.line[1]
        return self._value_at(torch.lerp(start, end, t[:, None]))


class PlainPath(Line):
    """Any callable of tensors: autograd with respect to the perturbation only."""

    def __init__(self, model: Model, gain: Gain, x: Tensor, directions: Tensor) -> None:
        self.model, self.gain, self.x, self.directions = model, gain, x, directions
        self.base = x

    def settle(self, u: Tensor) -> None:
        self.base = torch.addmm(self.x, u, self.directions.T)

    def value(self, v: Tensor | None = None, rows: Tensor | None = None) -> Tensor:
        return self._value_at(self.base.detach() if v is None else self.base + v)

    def _value_at(self, pre: Tensor) -> Tensor:
        self.pre = pre.requires_grad_(True)
        with torch.enable_grad():
            self.gained = self.gain(self.model(self.pre.clone()))  # the clone may be changed in place by the model
        return self.gained.detach()

    def slope_u(self) -> Tensor:
        return self.slope_v() @ self.directions

    def slope_v(self) -> Tensor:
        return _gradient(self.gained, self.pre, lambda point: self.gain(self.model(point)))

    def z_at(self, u: Tensor, v: Tensor | None, current: Tensor) -> Tensor | None:
        return None

    def zeros(self, width: int) -> Tensor:
        return self.x.new_zeros(len(self.x), width)


class SplitPath(Line):
    """Models that begin with a linear layer: ``tail`` maps the first layer's output to the logits."""

    def __init__(self, tail: Model, linear: nn.Linear, gain: Gain, z: Tensor, directions: Tensor) -> None:
        self.tail, self.gain, self.z, self.weight = tail, gain, z, linear.weight.detach()
        self.response = (directions.T @ self.weight.T).T  # W1 A, (H, k)
        self.base = self.pre = z

    def settle(self, u: Tensor) -> None:
        self.base = torch.addmm(self.z, u, self.response.T)

    def value(self, v: Tensor | None = None, rows: Tensor | None = None) -> Tensor:
        return self._value_at(self.base.detach() if v is None else self._move(v, rows, torch.empty_like(self.z)))

    def _move(self, v: Tensor, rows: Tensor | None, out: Tensor) -> Tensor:
        """The first layer's output at x + A u + v; the large product only for the rows that need it."""
        if rows is None or 2 * len(rows) > len(v):
            return torch.addmm(self.base, v, self.weight.T, out=out)
        out.copy_(self.base)
        if len(rows):
            out[rows] += v[rows] @ self.weight.T
        return out

    def _value_at(self, pre: Tensor) -> Tensor:
        self.pre = pre
        with torch.enable_grad():
            self.gained = self.gain(self.tail(self.pre.requires_grad_(True)))
        return self.gained.detach()

    def slope_u(self) -> Tensor:
        return self._slope_z() @ self.response

    def slope_v(self) -> Tensor:
        return self._slope_z() @ self.weight

    def z_at(self, u: Tensor, v: Tensor | None, current: Tensor) -> Tensor:
        """The first layer's output at x + A u + v; rows that are ``current`` are where the path stands now."""
        z = self.pre.detach()
        stale = (~current).nonzero()[:, 0]
        if len(stale):
            z[stale] = torch.addmm(self.z[stale], u[stale], self.response.T)
        if v is not None:
            stale = stale[
                v[stale].any(dim=1).nonzero()[:, 0]
            ]  # the large product only where there is something to multiply
            if len(stale):
                z[stale] += v[stale] @ self.weight.T
        return z

    def zeros(self, width: int) -> Tensor:
        """(n, width) in the layout of this path, for a move and all that is computed from it."""
        return self.z.new_zeros(len(self.z), width)

    def _slope_z(self) -> Tensor:
        return _gradient(self.gained, self.pre, lambda z: self.gain(self.tail(z)))


class ReLUPath(SplitPath):
    """Linear-ReLU-...-Linear: the slope by hand, in buffers that are made once per batch.

    All buffers hold the individuals side by side in memory (see ``beside``), in which the thin products with W2 and
    W1 A run several times faster than row by row.
    """

    def __init__(
        self, layers: Sequence[nn.Linear], linear: nn.Linear, gain: Gain, z: Tensor, directions: Tensor
    ) -> None:
        super().__init__(layers[-1], linear, gain, z, directions)  # the tail is written out below
        self.layers = [(layer.weight.detach(), None if layer.bias is None else layer.bias.detach()) for layer in layers]
        self.back = [weight for weight, _ in self.layers]  # what the slope is multiplied with on its way back
        self.closed_form = isinstance(gain, DistanceGain) and gain.output_distance is mean_squared_logits
        if isinstance(gain, DistanceGain) and self.closed_form:
            # The slope of (1/K) |h - h(x)|^2 is (2/K) (h - h(x)); its factor goes into the last weights.
            self.h_x = beside(z, gain.h_x.shape[1]).copy_(gain.h_x)
            self.squares = torch.empty_like(self.h_x)
            self.back[-1] = self.back[-1] * (2 / gain.h_x.shape[1])
        self.settled = torch.empty_like(z)
        self.moved: Tensor | None = None
        widths = [weight.shape[0] for weight, _ in self.layers]
        self.outputs = [beside(z, width) for width in widths]  # of each layer after the first
        self.post = [torch.empty_like(z)] + [torch.empty_like(output) for output in self.outputs[:-1]]
        self.u_slope = beside(z, directions.shape[1])
        self.v_slope: Tensor | None = None

    def settle(self, u: Tensor) -> None:
        self.base = torch.addmm(self.z, u, self.response.T, out=self.settled)

    def value(self, v: Tensor | None = None, rows: Tensor | None = None) -> Tensor:
        if v is None:
            return self._value_at(self.base)
        self.moved = torch.empty_like(self.z) if self.moved is None else self.moved
        return self._value_at(self._move(v, rows, self.moved))

    def start_line(self) -> None:
        super().start_line()
        self.moved = None  # the line may start in this buffer, which must then stay as it is

    def _value_at(self, pre: Tensor) -> Tensor:
        self.pre = z = pre
        for (weight, bias), post, output in zip(self.layers, self.post, self.outputs):
            torch.clamp_min(z, 0, out=post)
            if bias is None:
                torch.mm(post, weight.T, out=output)
            else:
                torch.addmm(bias, post, weight.T, out=output)
            z = output
        if self.closed_form:
            self.h_slope = z.sub_(self.h_x)
            return torch.mul(z, z, out=self.squares).sum(1).div_(z.shape[1])
        value, self.h_slope = value_and_slope(self.gain, z)
        return value

    def slope_u(self) -> Tensor:
        return torch.mm(self._slope_z(), self.response, out=self.u_slope)

    def slope_v(self) -> Tensor:
        self.v_slope = beside(self.z, self.weight.shape[1]) if self.v_slope is None else self.v_slope
        return torch.mm(self._slope_z(), self.weight, out=self.v_slope)

    def zeros(self, width: int) -> Tensor:
        return beside(self.z, width).zero_()

    def _slope_z(self) -> Tensor:
        """Back through the layers; the slope overwrites the activations, which are not needed any more."""
        slope, pres = self.h_slope, [self.pre, *self.outputs[:-1]]
        for weight, pre, post in zip(reversed(self.back), reversed(pres), reversed(self.post)):
            torch.mm(slope, weight, out=post)
            slope = torch.ops.aten.threshold_backward.grad_input(post, pre, 0, grad_input=post)
        return slope


def beside(like: Tensor, width: int) -> Tensor:
    """An empty (n, width) matrix whose columns are contiguous: feature by feature, the individuals side by side."""
    return like.new_empty(width, like.shape[0]).T


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
