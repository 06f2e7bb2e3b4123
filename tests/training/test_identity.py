"""Two things have the same identity exactly when they do the same."""

import functools
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from evenhand.domain import Box
from evenhand.objectives.clp import CLP
from evenhand.training.identity import differences, digest, identity
from evenhand.variations import Variations


@dataclass(frozen=True)
class rule:
    step: float


def scaled(factor):
    return lambda h, y: factor * h.sum(1)


def clp(values, rho=1.0):
    return CLP(Variations(np.asarray(values), rows=[0]), rho)


def adam(lr):
    return torch.optim.Adam([nn.Parameter(torch.zeros(1))], lr=lr)


class WithBuffer(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.register_buffer("kept", torch.full((1,), value), persistent=False)


MAKERS = {  # a function of one number; other numbers, other behaviour
    "number": lambda v: v,
    "list": lambda v: [1, v],
    "table": lambda v: {"a": v},
    "array": lambda v: np.array([v, 1.0]),
    "texts": lambda v: np.array([str(v)], dtype=object),
    "tensor": lambda v: torch.tensor([0.0, v]),
    "a tensor far down": lambda v: torch.arange(1000.0).index_fill(0, torch.tensor([500]), v),
    "box": lambda v: Box(0.0, 1.0 + v, d=3),
    "box with binary columns": lambda v: Box(0.0, 1.0, d=9, binary=[int(v)]),
    "rule": rule,
    "seed": lambda v: torch.Generator().manual_seed(int(v)),
    "partial": lambda v: functools.partial(scaled, factor=v),
    "captured": scaled,
    "default": lambda v: lambda h, y, c=v: h,
    "method": lambda v: rule(v).__eq__,
    "buffer that is not saved": WithBuffer,
    "versions of people": lambda v: clp([[[0.0, v], [1.0, 1.0]]]),
    "rho of an objective": lambda v: clp([[[0.0, 1.0], [1.0, 1.0]]], rho=v),
    "optimizer": adam,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_same_value_the_same_identity_and_another_another(make):
    one, same, other = identity(part=make(2.0)), identity(part=make(2.0)), identity(part=make(3.0))
    assert one == same
    assert differences(one, other)


def test_functions_by_name_and_lambdas_by_what_they_do():
    assert differences(identity(loss=scaled), identity(loss=adam))
    assert differences(identity(loss=lambda h: h + 1), identity(loss=lambda h: h - 1))
    assert differences(identity(loss=lambda h: h + 1), identity(loss=lambda h: h + 2))


def test_a_generator_that_was_used_is_another():
    fresh, used = torch.Generator().manual_seed(0), torch.Generator().manual_seed(0)
    torch.rand(1, generator=used)
    assert differences(identity(g=fresh), identity(g=used))


def test_training_mode_and_the_last_numbers_are_no_part_of_it():
    objective = clp([[[0.0, 1.0], [1.0, 1.0]]])
    before = identity(objective=objective)
    objective.eval()
    objective.last = {"loss": torch.ones(())}
    assert identity(objective=objective) == before


def test_shape_and_type_count():
    zeros = torch.zeros(4)
    assert len({digest(zeros), digest(zeros.reshape(2, 2)), digest(zeros.int()), digest(zeros[:0])}) == 4
    assert digest(zeros) == digest(torch.zeros(4)) == digest(np.zeros(4, np.float32))


def test_an_object_that_holds_itself_ends():
    ring = type("Ring", (), {})()
    ring.self = ring
    assert identity(ring=ring)


def test_differences_name_what_is_there_on_one_side_only():
    assert differences({"a": 1}, {"b": "x" * 200}) == ["a was 1 and is None", "b was None and is '" + "x" * 96 + "..."]
