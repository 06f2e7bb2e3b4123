"""The steps of a traced program that can be bounded: affine ones, and activations as sums of units."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenhand.bounds.activations import (
    ELU,
    GELU,
    GELU_TANH,
    IDENTITY,
    MISH,
    RELU,
    SIGMOID,
    SILU,
    SOFTPLUS,
    SOFTSIGN,
    TANH,
    Kind,
)

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


class Unit(NamedTuple):
    """factor * kind(scale * z + shift)."""

    factor: float | Tensor
    kind: Kind
    scale: float = 1.0
    shift: float = 0.0


class Sum(NamedTuple):
    """What an activation is: a constant and a sum of units."""

    units: list[Unit]
    constant: float = 0.0


def _leaky(slope: float | Tensor) -> Sum:
    return Sum([Unit(1.0, RELU), Unit(-slope, RELU, -1.0)])


def _between(low: float | None, high: float | None) -> Sum:
    if low is None and high is None:
        return Sum([Unit(1.0, IDENTITY)])
    if low is None:
        assert high is not None
        return Sum([Unit(-1.0, RELU, -1.0, high)], high)
    units = [Unit(1.0, RELU, 1.0, -low)]
    return Sum([*units, Unit(-1.0, RELU, 1.0, -high)] if high is not None else units, low)


def _elu(alpha: float = 1.0, scale: float = 1.0) -> Sum:
    units = [Unit(scale * alpha, ELU)]
    return Sum([*units, Unit(scale * (1 - alpha), RELU)] if alpha != 1 else units)


def _softplus(beta: float = 1.0, threshold: float = 20.0) -> Sum | None:
    return Sum([Unit(1 / beta, SOFTPLUS, beta)]) if threshold == 20 and beta > 0 else None


def _gelu(approximate: str = "none") -> Sum:
    return Sum([Unit(1.0, GELU_TANH if approximate == "tanh" else GELU)])


def _one(kind: Kind) -> Sum:
    return Sum([Unit(1.0, kind)])


_SIX = Sum([Unit(1 / 6, RELU, 1.0, 3.0), Unit(-1 / 6, RELU, 1.0, -3.0)])
_ABS = Sum([Unit(1.0, RELU), Unit(1.0, RELU, -1.0)])
_LOG_SIGMOID = Sum([Unit(-1.0, SOFTPLUS, -1.0)])
_TANHSHRINK = Sum([Unit(1.0, IDENTITY), Unit(-1.0, TANH)])

MODULES: dict[type[nn.Module], Callable[[Any], Sum | None]] = {
    nn.ReLU: lambda m: _one(RELU),
    nn.LeakyReLU: lambda m: _leaky(m.negative_slope),
    nn.RReLU: lambda m: _leaky((m.lower + m.upper) / 2),
    nn.PReLU: lambda m: _leaky(m.weight.to(device="cpu", dtype=torch.float64)),
    nn.ReLU6: lambda m: _between(0.0, 6.0),
    nn.Hardtanh: lambda m: _between(m.min_val, m.max_val),
    nn.Hardsigmoid: lambda m: _SIX,
    nn.Tanh: lambda m: _one(TANH),
    nn.Sigmoid: lambda m: _one(SIGMOID),
    nn.LogSigmoid: lambda m: _LOG_SIGMOID,
    nn.Softplus: lambda m: _softplus(m.beta, m.threshold),
    nn.GELU: lambda m: _gelu(m.approximate),
    nn.SiLU: lambda m: _one(SILU),
    nn.Mish: lambda m: _one(MISH),
    nn.ELU: lambda m: _elu(m.alpha),
    nn.SELU: lambda m: _elu(_SELU_ALPHA, _SELU_SCALE),
    nn.CELU: lambda m: Sum([Unit(m.alpha, ELU, 1 / m.alpha)]),
    nn.Softsign: lambda m: _one(SOFTSIGN),
    nn.Tanhshrink: lambda m: _TANHSHRINK,
}

# Called as f(z, ...): what follows z comes by position or by name, in this order.
FUNCTIONS: dict[Any, tuple[tuple[str, ...], Callable[..., Sum | None]]] = {
    "relu": ((), lambda: _one(RELU)),
    "leaky_relu": (("negative_slope",), lambda negative_slope=0.01: _leaky(negative_slope)),
    "prelu": (("weight",), lambda weight: _leaky(weight)),
    "relu6": ((), lambda: _between(0.0, 6.0)),
    "hardtanh": (("min_val", "max_val"), lambda min_val=-1.0, max_val=1.0: _between(min_val, max_val)),
    "clamp": (("min", "max"), lambda min=None, max=None: _between(min, max)),
    "clip": (("min", "max"), lambda min=None, max=None: _between(min, max)),
    "hardsigmoid": ((), lambda: _SIX),
    "abs": ((), lambda: _ABS),
    "tanh": ((), lambda: _one(TANH)),
    "sigmoid": ((), lambda: _one(SIGMOID)),
    "logsigmoid": ((), lambda: _LOG_SIGMOID),
    "softplus": (("beta", "threshold"), _softplus),
    "gelu": (("approximate",), _gelu),
    "silu": ((), lambda: _one(SILU)),
    "mish": ((), lambda: _one(MISH)),
    "elu": (("alpha",), lambda alpha=1.0: _elu(alpha)),
    "selu": ((), lambda: _elu(_SELU_ALPHA, _SELU_SCALE)),
    "celu": (("alpha",), lambda alpha=1.0: Sum([Unit(alpha, ELU, 1 / alpha)])),
    "softsign": ((), lambda: _one(SOFTSIGN)),
    "tanhshrink": ((), lambda: _TANHSHRINK),
}

AFFINE_MODULES = (
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d,
    nn.Flatten, nn.Unflatten, nn.ZeroPad2d, nn.ConstantPad1d,
)  # fmt: skip
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
SAME_MODULES = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.AlphaDropout)
SAME = {"dropout", "dropout1d", "dropout2d", "alpha_dropout", "contiguous", "clone", "detach", "float", "double", "to"}
AFFINE = {
    "add", "iadd", "sub", "isub", "neg", "rsub", "cat", "concat", "hstack", "flatten", "unflatten", "reshape", "view",
    "squeeze", "unsqueeze", "permute", "transpose", "narrow", "index_select", "select", "getitem", "mean", "sum", "pad",
    "avg_pool1d", "avg_pool2d",
}  # fmt: skip
PRODUCTS = {"mul", "imul", "matmul", "mm", "linear", "addmm", "einsum", "conv1d", "conv2d"}  # of a value and constants
QUOTIENTS = {"truediv", "div", "true_divide", "divide", "itruediv"}  # of a value by a constant


def name_of(target: Any) -> str:
    """What a step is called: functions, methods and operators of the same name do the same."""
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    return name.rstrip("_").removeprefix("_")


def function_of(target: Any) -> Callable[..., Any]:
    """A method's name as a function of the object and its arguments."""
    if not isinstance(target, str):
        return target  # type: ignore[no-any-return]

    def call(value: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(value, target)(*args, **kwargs)

    return call


_KNOWN = (torch, F, operator)


def is_known(target: Any) -> bool:
    """Whether the step is torch's or Python's own: another function of the same name may do anything."""
    if isinstance(target, str):
        return True
    module = str(getattr(target, "__module__", "") or "")
    return module.startswith(("torch", "_operator")) or any(
        getattr(home, getattr(target, "__name__", ""), None) is target for home in _KNOWN
    )
