"""CROWN against closed forms on small nets and against sampled points."""

import pytest
import torch

from bounds.nets import other_points, random_points, random_problem
from evenhand.bounds.crown import crown_upper, output_change, output_range
from evenhand.bounds.layers import Layer
from evenhand.bounds.problem import Problem
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def test_one_neuron_has_a_closed_form():
    """f = 2 relu(x_0 + x_1) on [-1, 1]^2: at x = (0.25, 0) it moves by -0.5 .. 3.5, and CROWN's upper is exact."""
    layers = [Layer(tensor([[1.0, 1.0]]), tensor([0.0])), Layer(tensor([[2.0]]), tensor([0.0]))]
    problem = Problem(layers, FairMetric(tensor([[1.0], [0.0]])), Box(-torch.ones(2), torch.ones(2)))
    x = tensor([[0.25, 0.0]])
    low, high = output_change(problem, x, problem.grid(1, [1]), tensor([10.0]))
    assert high.item() == pytest.approx(3.5)
    assert -4.5 - 1e-9 <= low.item() <= -0.5  # the lower slope may be 0 or 1, both are sound
    low, high = output_change(problem, x, problem.grid(1, [1]), tensor([0.0]))  # only x_0 may move
    assert high.item() == pytest.approx(2 * 1.0 - 0.5)
    assert output_range(problem) >= 4.0**2


def test_linear_models_are_exact():
    layers = [Layer(tensor([[0.5, -1.0]]), tensor([0.3]))]
    problem = Problem(layers, FairMetric(tensor([[1.0], [0.0]])), Box(-torch.ones(2), torch.ones(2)))
    low, high = output_change(problem, tensor([[0.0, 0.5]]), problem.grid(1, [1]), tensor([0.25]))
    assert (low.item(), high.item()) == (pytest.approx(-0.75), pytest.approx(0.75))
    assert output_range(problem) == pytest.approx(9.0)


@pytest.mark.parametrize("sizes", [(5, 2), (5, 12, 2), (4, 6, 5, 3)])
@pytest.mark.parametrize("given_sigma", [True, False])
def test_sound(sizes, given_sigma):
    problem = random_problem(sizes, k=1, seed=1, discrete=not given_sigma, given_sigma=given_sigma)
    x = random_points(problem, 4, 0)
    other = other_points(problem, x, 300, 0)
    lam = 0.5
    gain = problem.gain(x[:, None], other, lam).amax(1)
    coarse = crown_upper(problem, x, lam, [2])
    fine = crown_upper(problem, x, lam, [2], rounds=6)
    assert (gain <= fine + 1e-9).all()
    assert (fine <= coarse + 1e-9).all()
    assert (problem.f(x)[:, None] - problem.f(other)).square().sum(-1).max() <= output_range(problem)
    radius = torch.full((len(x) * len(problem.pin_values),), 0.7, dtype=torch.float64)
    low, high = output_change(problem, x, problem.grid(4, [1]), radius)
    cells = problem.grid(4, [1])
    for i in range(len(cells)):
        points = other[cells.person[i]]
        inside = (problem.d_x(points - x[cells.person[i]]) <= 0.49) & (points[:, problem.pinned] == cells.pins[i]).all(
            1
        )
        change = problem.f(points[inside]) - problem.f(x[cells.person[i]][None])
        assert ((change >= low[i] - 1e-9) & (change <= high[i] + 1e-9)).all()
