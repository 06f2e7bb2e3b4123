"""Rows that repeat another: a text that was pasted five times is one text, and buys the confidence of one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["first_of_each", "firsts"]


def firsts(rows: Iterable[Hashable]) -> NDArray[np.intp]:
    """For each row the position of the first one that is equal to it.

    >>> firsts(["a", "b", "a"])
    array([0, 1, 0])
    """
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(row, i) for i, row in enumerate(rows)], dtype=np.intp)


def first_of_each(rows: Iterable[Iterable[Any]]) -> NDArray[np.intp]:
    """The positions of the rows that repeat none before them; white space in their texts does not count.

    >>> first_of_each([["a b", 1], ["a b", 2], ["a  b ", 1]])
    array([0, 1])
    """
    said = (tuple(" ".join(cell.split()) if isinstance(cell, str) else str(cell) for cell in row) for row in rows)
    return np.unique(firsts(said))
