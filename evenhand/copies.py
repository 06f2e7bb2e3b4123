"""Rows that repeat another: a text that was pasted five times is one text, and buys the confidence of one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["first_of_each"]


def first_of_each(rows: Iterable[Iterable[Any]]) -> NDArray[np.intp]:
    """The positions of the rows that repeat none before them; white space in their texts does not count.

    >>> first_of_each([["a b", 1], ["a b", 2], ["a  b ", 1]])
    array([0, 1])
    """
    seen: dict[tuple[Any, ...], int] = {}
    for i, row in enumerate(rows):
        seen.setdefault(tuple(" ".join(cell.split()) if isinstance(cell, str) else str(cell) for cell in row), i)
    return np.array(list(seen.values()), dtype=np.intp)
