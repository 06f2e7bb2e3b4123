"""Ranks within each person."""

import torch

from evenhand.bounds.ranks import rank_of


def test_the_largest_of_each_person_comes_first():
    person = torch.tensor([1, 0, 1, 2, 1])
    value = torch.tensor([5.0, 1.0, 9.0, 0.0, 7.0])
    assert rank_of(person, value, 3).tolist() == [2, 0, 0, 0, 1]
