"""Each person's worst parts first."""

from __future__ import annotations

import torch
from torch import Tensor


def rank_of(person: Tensor, value: Tensor, n: int) -> Tensor:
    """Of each entry among its person's, the largest value first."""
    order = torch.argsort(value, descending=True, stable=True)
    order = order[torch.argsort(person[order], stable=True)]
    first = torch.searchsorted(person[order].contiguous(), torch.arange(n))
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order)) - first[person[order]]
    return rank
