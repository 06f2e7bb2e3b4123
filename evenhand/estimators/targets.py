"""The unit of what is predicted: numbers are standardised while training, and given back as they were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

LOST = 1e-5  # of the spread of the outputs: a rounding that is larger is not accepted


@dataclass
class Targets:
    """How many outputs the targets need, and what undoes the scale that they have while training."""

    outputs: int
    scale: np.ndarray | None = None  # (K,) of numbers
    mean: np.ndarray | None = None

    def after(self, module: nn.Module) -> nn.Module:
        """The module with its output in the original unit."""
        return module if self.scale is None or self.mean is None else rescaled(module, self.scale, self.mean)

    def before(self, module: nn.Module) -> nn.Module:
        """The module in the unit of training, from one in the original unit."""
        if self.scale is None or self.mean is None:
            return module
        return rescaled(module, 1 / self.scale, -self.mean / self.scale)


@dataclass(frozen=True)
class Moments:
    """Number, mean and sum of squared deviations of values that come in parts (Chan, Golub and LeVeque 1979): around
    the mean, so that nothing cancels."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def with_values(self, values: np.ndarray) -> Moments:
        if len(values) == 0:
            return self
        mean = float(values.mean())
        return self.joined(Moments(len(values), mean, float(((values - mean) ** 2).sum())))

    def joined(self, other: Moments) -> Moments:
        n, gap = self.n + other.n, other.mean - self.mean
        if n == 0:
            return self
        mean = self.mean + gap * other.n / n
        return Moments(n, mean, self.squares + other.squares + gap**2 * self.n * other.n / n)

    @property
    def scale(self) -> float:
        """The standard deviation, 1 for values that are all alike."""
        spread = float((self.squares / self.n) ** 0.5)
        return spread if spread > 1e-12 * abs(self.mean) else 1.0


def rescaled(module: nn.Module, scale: np.ndarray, mean: np.ndarray) -> nn.Module:
    """The module with its outputs (n, K) times scale (K,) plus mean (K,), folded into its last linear layer.

    The parameters are float32, which cannot hold a mean of 1e8 to the next integer. Such a mean is kept in two numbers:
    what float32 leaves of it in that layer, the rest in a layer of its own that adds it. Asked in float64, as
    ``float64_outputs`` does, the module then loses nothing.
    """
    net, last, bias = _with_linear_end(module, len(scale))
    weight = last.weight.detach().cpu().double() * torch.as_tensor(scale)[:, None]
    bias = bias * torch.as_tensor(scale) + torch.as_tensor(mean)
    most = bias.to(last.bias.dtype).double()
    lost = bool(((bias - most).abs() > LOST * weight.abs().sum(1)).any())
    with torch.no_grad():
        last.weight.copy_(weight)
        last.bias.copy_(bias - most if lost else bias)
    if lost:
        net.append(_shift(most, last.bias))
    return net.eval()


def float64_outputs(module: nn.Module, x: Tensor) -> Tensor:
    """What a module in the unit of the targets gives for x in the module's own precision, its last shift in float64."""
    *layers, last = module if _is_sequential(module) else (module,)
    if not _is_shift(last):
        outputs: Tensor = module(x)
        return outputs.cpu().double()
    for layer in layers:
        x = layer(x)
    return x.cpu().double() + last.bias.cpu().double()


def _with_linear_end(module: nn.Module, k: int) -> tuple[nn.Sequential, nn.Linear, Tensor]:
    """The module as a Sequential that ends in a linear layer, without its shift; that layer; its bias with the shift,
    in float64."""
    own = _is_sequential(module) and _is_linear(module[-1])
    net = module if own else nn.Sequential(module, _shift(torch.zeros(k), next(module.parameters())))
    assert isinstance(net, nn.Sequential)
    last = net[-1]
    assert isinstance(last, nn.Linear)
    bias = last.bias.detach().cpu().double()
    before = net[-2] if len(net) > 1 else None
    if before is not None and _is_shift(last) and _is_linear(before):
        del net[-1]
        return net, before, bias + before.bias.detach().cpu().double()
    return net, last, bias


def _shift(by: Tensor, like: Tensor) -> nn.Linear:
    """A layer that adds ``by`` (K,)."""
    layer = nn.Linear(len(by), len(by), device=like.device, dtype=like.dtype)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(len(by)))
        layer.bias.copy_(by)
    return layer


def _is_shift(layer: nn.Module) -> TypeGuard[nn.Linear]:
    if not _is_linear(layer) or layer.in_features != layer.out_features:
        return False
    return torch.equal(layer.weight, torch.eye(layer.in_features).to(layer.weight))


def _is_linear(layer: nn.Module) -> TypeGuard[nn.Linear]:
    return type(layer) is nn.Linear and layer.bias is not None


def _is_sequential(module: nn.Module) -> TypeGuard[nn.Sequential]:
    return isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward and len(module) > 0
