"""The head of a model: its first linear layer with the norm before it, whose output is known in closed form as x moves.

    z = W x + b                          a linear layer, also behind a BatchNorm, which is W1 diag(g / std) in eval mode
    z = s(x) W x + b                     behind a norm of each row: W = W1 diag(g) P, with P the centring of LayerNorm
    s(x) = (|P x|^2 / d + eps)^(-1/2)

In both, x reaches z by one linear map; s is one number for each person, and 1 / s^2 a quadratic of x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Norm = nn.Module  # of exactly one of these types; torch has RMSNorm since 2.4
NORMS: tuple[type[Any], ...] = (nn.BatchNorm1d, nn.LayerNorm, *([nn.RMSNorm] if hasattr(nn, "RMSNorm") else []))


@dataclass(frozen=True)
class RowNorm:
    """s(x) of LayerNorm and, without the centring, of RMSNorm."""

    centres: bool
    eps: float

    def centred(self, x: Tensor) -> Tensor:
        """P x, row by row; also of the rows of a matrix."""
        return x - x.mean(-1, keepdim=True) if self.centres else x

    def scale(self, mean_square: Tensor) -> Tensor:
        """s, from |P x|^2 / d."""
        return (mean_square + self.eps).rsqrt_()


@dataclass(frozen=True)
class Affine:
    """The head as its parameters are now, with gradients for them."""

    weight: Tensor  # W, (H, d)
    bias: Tensor | None  # b, (H,), where a norm of rows comes first; otherwise it is part of ``walked``
    norm: RowNorm | None
    walked: Callable[[Tensor], Tensor]  # what moves linearly with x: W x + b, or W P x without its s

    def finished(self, walked: Tensor, *x: Tensor) -> Tensor:
        """z at x, given in one piece or several, from what has walked there."""
        if self.norm is None:
            return walked
        assert self.bias is not None
        scales = [self.norm.scale(self.norm.centred(rows).square().mean(-1, keepdim=True)) for rows in x]
        return torch.addcmul(self.bias, walked, scales[0] if len(x) == 1 else torch.cat(scales))


@dataclass(frozen=True)
class Head:
    """A linear layer that the model begins with, or that follows the norm that it begins with."""

    linear: nn.Linear
    norm: Norm | None = None
    beside: bool = False  # the output with the individuals side by side in memory: thin products run faster so

    def tensors(self) -> list[Tensor]:
        """All of its real numbers."""
        parts = [part for part in (self.linear, self.norm) if part is not None]  # layers of torch: they have no others
        held = [t for part in parts for t in (*part._parameters.values(), *part._buffers.values())]
        return [t for t in held if t is not None and t.is_floating_point()]

    def now(self) -> Affine:
        first, bias, norm = self.linear.weight, self.linear.bias, self.norm
        product = beside_product if self.beside else F.linear
        if norm is None:
            return Affine(first, None, None, lambda x: product(x, first, bias))
        gain, shift = _gain_and_shift(norm)
        weight: Tensor = first if gain is None else first * gain
        if isinstance(norm, nn.BatchNorm1d):
            return Affine(weight, None, None, lambda x: product(norm(x), first, bias))
        rows = _row_norm(norm, first.dtype)
        weight = rows.centred(weight)
        constant: Tensor = first.new_zeros(len(first)) if bias is None else bias
        constant = constant if shift is None else constant + first @ shift
        return Affine(weight, constant, rows, lambda x: product(rows.centred(x), weight, None))


def foldable(norm: Norm, linear: nn.Linear) -> bool:
    """Whether a norm, as it is now, can be taken together with the linear layer behind it."""
    if type(norm) is nn.BatchNorm1d:
        return not norm.training and norm.running_mean is not None and norm.num_features == linear.in_features
    return type(norm) in NORMS and tuple(getattr(norm, "normalized_shape", ())) == (linear.in_features,)


def beside_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b with the individuals side by side in memory."""
    return above_product(x.T, weight, bias).T


def above_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """W x + b of individuals that are columns."""
    return weight @ x if bias is None else torch.addmm(bias[:, None], weight, x)


def _gain_and_shift(norm: Norm) -> tuple[Tensor | None, Tensor | None]:
    """What each feature is multiplied with, and what is added then (of a BatchNorm the gain alone: it runs itself)."""
    gain, shift = getattr(norm, "weight", None), getattr(norm, "bias", None)
    if isinstance(norm, nn.BatchNorm1d):
        assert norm.running_var is not None
        per_std = (norm.running_var + norm.eps).rsqrt()
        return per_std if gain is None else gain * per_std, None
    return gain, shift


def _row_norm(norm: Norm, dtype: torch.dtype) -> RowNorm:
    eps = getattr(norm, "eps", None)
    return RowNorm(isinstance(norm, nn.LayerNorm), torch.finfo(dtype).eps if eps is None else float(eps))
