"""The same problem in units of its own, so that no bound depends on the units of columns, neurons or outputs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from evenhand.bounds.crown import output_range
from evenhand.bounds.layers import Layer
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Multipliers
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric


@dataclass(frozen=True)
class Normal:
    """``problem`` reads x / unit and gives f / scale; d_X is the same, so lam and r_lam shrink by scale^2."""

    problem: Problem
    unit: Tensor  # (d,)
    scale: float
    neurons: list[Tensor]  # by what the outputs of each hidden layer were divided

    def multipliers(self, m: Multipliers) -> Multipliers:
        """Multipliers of the problem as it was, for the normal one (whose columns must have kept their units)."""
        square = self.scale**2
        eta = [e * c.square() / square for e, c in zip(m.eta, self.neurons, strict=True)]
        return Multipliers(m.lam / square, eta, m.gam / square, m.th / square)


def normalised(problem: Problem) -> Normal:
    """Columns in units in which a move by 1 costs 1 (free ones in units of their span), where Sigma was given as a
    matrix; ReLUs with incoming weights of length 1; outputs whose squared range over Dom is about 1."""
    unit = _units(problem)
    scale = max(output_range(problem), 0.0) ** 0.5 or 1.0
    given = [*problem.layers[:-1], _fewest_outputs(problem.layers[-1])]
    layers, neurons = [Layer(given[0].weight * unit, given[0].bias, given[0].after)], []
    for after in given[1:]:
        weight, bias, kinds = layers[-1]
        length = torch.sqrt(weight.square().sum(1) + bias.square())
        length = torch.where(length > 0, length, torch.ones_like(length))
        if kinds is not None:  # units of their own are a ReLU's alone
            length = torch.ones_like(length)
        layers[-1] = Layer(weight / length[:, None], bias / length, kinds)
        layers.append(Layer(after.weight * length, after.bias, after.after))
        neurons.append(length)
    layers[-1] = Layer(layers[-1].weight / scale, layers[-1].bias / scale)
    if bool((unit == 1).all()):
        return Normal(problem.with_layers(layers), unit, scale, neurons)
    box = Box(problem.box.low / unit, problem.box.high / unit, problem.box.blocks, problem.box.binary)
    metric = FairMetric(sigma=problem.sigma * unit * unit[:, None])
    return Normal(Problem(layers, metric, box), unit, scale, neurons)


def _fewest_outputs(last: Layer) -> Layer:
    """The outputs rotated into as few as differ between people, such as one for two centred logits; distances stay."""
    u, size, _ = torch.linalg.svd(last.weight, full_matrices=False)
    rank = max(1, int((size > 1e-13 * size[0]).sum())) if len(size) else 0
    if rank == 0 or rank == last.bias.shape[0]:
        return last
    return Layer(u[:, :rank].T @ last.weight, u[:, :rank].T @ last.bias)


def _units(problem: Problem) -> Tensor:
    ones = torch.ones(problem.d, dtype=torch.float64)
    if problem.directions is not None or type(problem.box) is not Box:
        return ones
    price, span = problem.sigma.diagonal(), problem.box.high - problem.box.low
    across = price * span.square()
    unit = torch.where(across > 1e-9 * across.max(), price.clamp(min=1e-300).rsqrt(), torch.where(span > 0, span, ones))
    unit[[j for block in problem.box.blocks for j in block]] = 1.0
    return unit
