"""The setting: who costs what, how far apart people can be, when columns can be looked at one by one."""

import itertools

import pytest
import torch

from bounds.nets import random_layers, random_points, random_problem
from evenhand.bounds.problem import Problem
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric


def by_column(price):
    price = torch.tensor(price, dtype=torch.float64)
    box = Box(-torch.ones(len(price)), 2 * torch.ones(len(price)))
    return Problem(random_layers((len(price), 4, 2), 0), FairMetric(sigma=torch.diag(price)), box)


def test_separable_is_a_sum_over_columns():
    assert by_column([1.0, 0.0, 3.0]).separable
    assert not random_problem((4, 5, 2), k=1, seed=0, discrete=False).separable


def test_reach_is_the_distance_of_opposite_corners():
    problem = by_column([1.0, 0.0, 3.0])
    corners = torch.tensor(list(itertools.product([-1.0, 2.0], repeat=3)), dtype=torch.float64)
    farthest = problem.d_x(corners[:, None] - corners).max().sqrt().item()
    assert problem.reach == pytest.approx(farthest)
    other = random_problem((4, 5, 2), k=1, seed=0, discrete=False)
    corners = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=4)), dtype=torch.float64)
    assert other.reach >= other.d_x(corners[:, None] - corners).max().sqrt().item() - 1e-9


def test_seen_gives_the_largest_value_of_a_functional_at_a_price():
    """sup of a . delta over d_X(delta) <= 1, for a in the range of Sigma, is |(a . v_j) / sqrt(value_j)|."""
    problem = random_problem((4, 5, 2), k=1, seed=2, given_sigma=True, discrete=False)
    vectors, length = problem.seen
    a = problem.sigma @ torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    best = torch.linalg.lstsq(problem.sigma, a[:, None], driver="gelsd").solution[:, 0]
    best = best / problem.d_x(best).sqrt()
    assert ((a @ vectors) * length).norm().item() == pytest.approx((a @ best).item())


def test_gain_is_what_it_says_and_other_layers_keep_the_people():
    problem = random_problem((3, 4, 2), k=1, seed=0)
    x, other = random_points(problem, 5, 1), random_points(problem, 5, 2)
    expected = (problem.f(x) - problem.f(other)).square().sum(1) - 0.7 * problem.d_x(other - x)
    torch.testing.assert_close(problem.gain(x, other, 0.7), expected)
    again = problem.with_layers(random_layers((3, 6, 6, 1), 1))
    assert again.widths == [6, 6]
    assert again.box is problem.box
    with pytest.raises(ValueError, match="reads 3 features but bounds have 2"):
        Problem(problem.layers, FairMetric.euclidean(2), Box([0, 0], [1, 1]))


@pytest.mark.parametrize("unit", [1e-7, 1.0, 1e7])
def test_what_is_charged_for_is_seen_in_any_units(unit):
    """Sigma is made of what is seen and nothing else; what is free is not seen."""
    problem = random_problem((5, 4, 1), k=2, seed=1, given_sigma=True, discrete=False)
    sigma = problem.sigma / unit**2
    box = Box(-unit * torch.ones(5), unit * torch.ones(5))
    vectors, length = Problem(problem.layers, FairMetric(sigma=sigma), box).seen
    assert vectors.shape == (5, 3)
    torch.testing.assert_close(vectors @ torch.diag(1 / length.square()) @ vectors.T, sigma)
