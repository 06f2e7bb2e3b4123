"""Units of its own: the same distances and the same differences, whatever the units were."""

import pytest
import torch

from bounds.nets import random_layers, random_points, random_problem
from evenhand.bounds.normal import normalised
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import curvature, start_multipliers
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric


def in_odd_units():
    unit = torch.tensor([1.0, 200.0, 0.01, 5.0], dtype=torch.float64)
    layers = random_layers((4, 6, 5, 2), 0)
    layers[0] = layers[0]._replace(weight=layers[0].weight / unit)
    price = torch.tensor([0.0, 1.0, 2.0, 0.5], dtype=torch.float64) / unit.square()
    return Problem(layers, FairMetric(sigma=torch.diag(price)), Box(-unit, unit, binary=[0]))


@pytest.mark.parametrize("problem", [in_odd_units(), random_problem((4, 6, 2), k=1, seed=1)])
def test_differences_and_distances_are_those_of_the_problem(problem):
    normal = normalised(problem)
    x, other = random_points(problem, 20, 0), random_points(problem, 20, 1)
    u, v = x / normal.unit, other / normal.unit
    d_y = (normal.problem.f(u) - normal.problem.f(v)).square().sum(1) * normal.scale**2
    torch.testing.assert_close(d_y, (problem.f(x) - problem.f(other)).square().sum(1))
    torch.testing.assert_close(normal.problem.d_x(u - v), problem.d_x(x - other), rtol=1e-6, atol=1e-12)
    assert normal.problem.box.contains(u).all()


def test_prices_are_one_and_incoming_weights_have_length_one():
    normal = normalised(in_odd_units())
    assert normal.problem.sigma.diagonal().tolist() == pytest.approx([0.0, 1.0, 1.0, 1.0])
    for layer in normal.problem.layers[:-1]:
        length = layer.weight.square().sum(1) + layer.bias.square()
        torch.testing.assert_close(length, torch.ones_like(length))


def test_centred_logits_are_one_output():
    layers = random_layers((3, 4, 1), 0)
    last = layers[-1]
    layers[-1] = last._replace(weight=torch.cat([-last.weight, last.weight]), bias=torch.cat([-last.bias, last.bias]))
    normal = normalised(Problem(layers, FairMetric.euclidean(3, torch.float64), Box(-torch.ones(3), torch.ones(3))))
    assert normal.problem.layers[-1].bias.shape == (1,)


def test_multipliers_move_along():
    """S of the normal problem is S of the problem, its ReLUs' rows and columns in other units, over scale^2."""
    problem = random_problem((4, 6, 2), k=1, seed=1)
    normal, m = normalised(problem), start_multipliers(problem)
    unit = torch.cat([torch.ones(len(problem.free), dtype=torch.float64), *normal.neurons])
    expected = curvature(problem, m) * unit * unit[:, None] / normal.scale**2
    torch.testing.assert_close(curvature(normal.problem, normal.multipliers(m)), expected)
