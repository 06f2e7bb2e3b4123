"""Two samples of people, disjoint: a certificate from people the model has seen would say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.audit import take
from evenhand.copies import first_of_each
from evenhand.dual.order import row_keys, seed_of, shuffled
from evenhand.variations import Variations

TEXT_WORDS = 4  # on average: a column of texts and not of categories


class Known:
    """Another sample, against which held-out people are checked, all at once or part by part."""

    def __init__(self, other: Any, name: str) -> None:
        self.other, self.name = _originals(other), name
        self._keys: pd.Series | None = None

    def refuse(self, held_out: Any) -> None:
        """Raises when a held-out person is also in the other sample: by index label where both have them, else by
        value."""
        if self.other is None:
            return
        held_out = _in_order_of(self.other, _originals(held_out))
        if _labelled(held_out) and _labelled(self.other):
            shared = int(held_out.index.isin(self.other.index).sum())
            how = "index labels"
            cure = "draw the held-out people apart from them"
        else:
            if self._keys is None:
                self._keys = _all_keys(self.other)
            shared = sum(int(row_keys(part).isin(self._keys).sum()) for part in _pieces(held_out))
            how = "values"
            cure = "draw them apart; if they are different people who look alike, say distinct_people=True"
        if shared:
            raise ValueError(f"{shared} of {len(held_out)} held-out rows are also in {self.name} (equal {how}); {cure}")


def _in_order_of(other: Any, x: Any) -> Any:
    """Frames of the same columns in the same order: values are compared as they stand."""
    frames = isinstance(other, pd.DataFrame) and isinstance(x, pd.DataFrame)
    return x[other.columns] if frames and other.columns.is_unique and set(other.columns) == set(x.columns) else x


def refuse_overlap(held_out: Any, other: Any, name: str) -> None:
    """Raises when a held-out person is also in the other sample."""
    Known(other, name).refuse(held_out)


def distinct(versions: Variations) -> NDArray[np.intp]:
    """The positions of the individuals who are no copy of one before them.

    A text that comes twice is one document that was pasted twice, not two draws: counted as two it would buy confidence
    that nobody has. White space does not count. Only texts, and rows of a table with a text, are looked at: other
    rows are short, and two people with the same values are mostly two people.

    >>> distinct(Variations([["a b", "a c"], ["d", "e"], ["a  b", "a c"]], rows=[0, 1, 2]))
    array([0, 1])
    """
    first = versions.original
    if not _of_texts(versions):
        return np.arange(len(versions), dtype=np.intp)
    return first_of_each(first.reshape(len(first), -1).tolist())


def without_copies(versions: Variations) -> Variations:
    """Each text once, as `certify` counts them."""
    kept = distinct(versions)
    return Variations(versions.values[kept], versions.rows[kept], versions.like)


def _of_texts(versions: Variations) -> bool:
    """Versions of strings, or of rows whose versions differ in a column of texts (four words or more on average)."""
    values = versions.values
    if len(values) == 0 or values.dtype.kind not in "OU":
        return False
    if values.ndim == 2:
        return all(isinstance(text, str) for text in values[:, 0])
    if values.ndim != 3 or versions.like is None:
        return False
    moved = [j for j in range(values.shape[2]) if any(set(map(str, row[1:])) - {str(row[0])} for row in values[..., j])]
    return any(
        all(isinstance(cell, str) for cell in values[:, 0, j])
        and np.mean([len(cell.split()) for cell in values[:, 0, j]]) >= TEXT_WORDS
        for j in moved
    )


def _originals(people: Any) -> Any:
    """Of people given by their versions: the originals."""
    return people.original if isinstance(people, Variations) else people


def _all_keys(x: Any) -> pd.Series:
    parts = [row_keys(part) for part in _pieces(x)]
    return pd.concat(parts, ignore_index=True) if parts else pd.Series(dtype=np.uint64)


def _pieces(x: Any, rows: int = 65536) -> Iterator[Any]:
    """Slices, because hashing copies what it hashes."""
    take = x.iloc if hasattr(x, "iloc") else x
    for start in range(0, len(x), rows):
        yield take[start : start + rows]


def _labelled(x: Any) -> bool:
    """A frame whose index names people: anything but the default 0, 1, 2, ..."""
    return isinstance(x, pd.DataFrame) and not (
        isinstance(x.index, pd.RangeIndex) and x.index.start == 0 and x.index.step == 1
    )


def separate(x_tune: Any, x_held_out: Any) -> tuple[Any, Any, NDArray[np.intp]]:
    """Tuning people, held-out people, and which rows of what was given the latter are (none for a stream)."""
    if x_tune is not None:
        n = len(x_held_out) if hasattr(x_held_out, "__len__") else 0
        return x_tune, x_held_out, np.arange(n, dtype=np.intp)
    if not hasattr(x_held_out, "__len__"):
        raise ValueError("x_tune is needed when the held-out people come in parts: give other people to tune on")
    count = len(x_held_out) // 5
    if count < 10:
        raise ValueError(
            f"x_tune is needed with only {len(x_held_out)} held-out rows: the multipliers must be chosen on other "
            "people; give x_tune, or at least 50 held-out rows, a fifth of which is then used for tuning"
        )
    order = shuffled(len(x_held_out), seed_of(x_held_out))
    held = np.sort(order[count:])
    return take(x_held_out, order[:count]), take(x_held_out, held), held
