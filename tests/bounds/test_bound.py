"""What all bounds share."""

import torch

from bounds.nets import random_layers, random_points, random_problem
from evenhand.bounds.bound import Bracket, Priced
from evenhand.bounds.network import bound_network


def test_brackets_are_joined_row_by_row():
    first, second = (
        Bracket(torch.full((n,), float(n)), torch.full((n,), 2.0 * n), torch.full((n, 3), float(n))) for n in (1, 2)
    )
    both = Bracket.join([first, second])
    assert both.lower.tolist() == [1.0, 2.0, 2.0]
    assert both.upper.tolist() == [2.0, 4.0, 4.0]
    assert both.witness[:, 0].tolist() == [1.0, 2.0, 2.0]


def test_a_network_is_bounded_at_any_lam_and_a_larger_one_is_smaller():
    problem = random_problem((3, 5, 1), k=0, seed=1)
    x = random_points(problem, 10, 0)
    bound = bound_network(problem, random_layers((3, 5, 1), 1), x, 0.05, n=100, alpha=0.025, steps=10, rounds=2)
    assert isinstance(bound, Priced)
    assert not isinstance(object(), Priced)
    lam, largest = bound.confident
    assert lam >= bound.lam
    assert largest <= bound.largest
    for factor in (0.7, 1.5):
        other = bound.at(factor * bound.lam)
        reached = problem.gain(x[:, None], random_points(problem, 300, 3).expand(10, -1, -1), other.lam).amax(1)
        assert (other.upper(x).upper >= reached - 1e-9).all()
        assert other.lam == factor * bound.lam
