"""One step backwards through an activation and the affine map before it, as CROWN makes it (Zhang et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.bounds.activations import Lines
from evenhand.bounds.layers import Layer

# What is lost between the lines grows with every layer behind it, and the line 0 forgets it: over large boxes the
# ranges of trained networks with two to five hidden layers are a tenth to a half narrower than with 1, over small ones
# of random networks up to a fifth wider.
DEEP = 3.0
FEW = 4  # functionals shared by all rows: from here on they are multiplied once for all of them


def mostly_on(layers: list[Layer]) -> float:
    """When z rather than 0 is taken as the line below a ReLU of this network, see ``relaxation``."""
    return 1.0 if len(layers) <= 2 else DEEP


def above_and_below(
    layers: list[Layer], last: int, units: list[Lines], start: Tensor | None = None, lost: list[Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """a, c with z <= a . x + c and, as the second half of the functionals, -z <= a . x + c for what enters activation
    ``last`` (or the output), between the lines of those before: (N or 1, 2 H, d), (N or 1, 2 H).

    start (N, H): what enters the first activation at x = 0, where that is not its bias; lost: is given, layer by layer,
    what the lines of each unit may lose, (N, 2 H, units).
    """
    weight, bias = layers[last].weight, layers[last].bias
    a, constant = torch.cat([weight, -weight])[None], torch.cat([bias, -bias])[None]
    for i in range(last, 0, -1):
        unit, layer = units[i - 1], layers[i - 1]
        if lost is not None:
            lost.insert(0, a.abs() * unit.offset[:, None])
        a, more = backward(a, unit, layer.weight, layer.bias if i > 1 or start is None else start)
        constant = constant + more
    return a, constant


def backward(a: Tensor, unit: Lines, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """a', c with a . act(weight y + bias) <= a' . y + c between the lines of each row: a (N or 1, m, H), bias (H,) or
    (N, H) -> (N, m, H'), (N, m)."""
    up = a.clamp(min=0)
    constant = _against(up, unit.offset)
    if unit.floor is not None:
        constant = constant + _against(a - up, unit.floor)
    if len(a) == 1 and a.shape[1] >= FEW and len(unit.slope) > 1:
        slopes, level = _shared(up[0], (a - up)[0], unit, weight, bias)
    else:
        middle = torch.where(a > 0, unit.slope[:, None], unit.under[:, None]).mul_(a)
        slopes, level = middle @ weight, _against(middle, bias) if bias.ndim == 2 else middle @ bias
    return slopes, constant + level


def _against(a: Tensor, v: Tensor) -> Tensor:
    """a . v of each row: (N or 1, m, H), (N, H) -> (N, m)."""
    return v @ a[0].T if len(a) == 1 else (a @ v[..., None])[..., 0]


def _shared(up: Tensor, down: Tensor, unit: Lines, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """The functionals up and down (m, H) of all rows, a single product of matrices: the lines scale what is behind
    them, [up, down] [slope W; under W], so that no functional is copied for every row."""
    n = len(unit.slope)
    behind = torch.cat([weight[:, None].expand(-1, n, -1), bias.expand(n, -1).T[..., None]], 2)  # (H, N, H' + 1)
    scaled = torch.cat([unit.slope.T[..., None] * behind, unit.under.T[..., None] * behind])
    found = (torch.cat([up, down], 1) @ scaled.flatten(1)).reshape(len(up), n, -1).transpose(0, 1)
    return found[..., :-1].contiguous(), found[..., -1]
