"""What a run has learned from: hashes of its rows, so that nobody takes them for new people."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom

MOST = 100_000  # rows remembered; of more, so many drawn at random


@dataclass(frozen=True)
class Seen:
    """Hashes of the rows that a run trained, chose and tuned on, as the model sees them.

    ``chance``: the share of new people whose row equals one of these by chance, counted on the run's held-out part.
    """

    hashes: NDArray[np.uint64]  # sorted
    rows: int
    chance: float

    @classmethod
    def of(cls, clean: pd.DataFrame, held_out: pd.DataFrame) -> Self:
        every = row_hashes(clean)
        kept = np.random.default_rng(0).permutation(every)[:MOST]
        found = cls(np.unique(kept), len(every), 0.0)
        return cls(found.hashes, len(every), float(found.contains(held_out).mean()) if len(held_out) else 0.0)

    def contains(self, clean: pd.DataFrame) -> NDArray[np.bool_]:
        """Which rows equal one that was seen."""
        return np.asarray(np.isin(row_hashes(clean), self.hashes))

    def too_many(self, clean: pd.DataFrame) -> int:
        """How many rows were seen, if that is more than chance explains (1 in 1,000); otherwise 0."""
        shared = int(self.contains(clean).sum())
        return shared if shared > binom.ppf(0.999, len(clean), self.chance) else 0

    def to_json(self) -> dict[str, Any]:
        text = base64.b64encode(self.hashes.astype("<u8").tobytes()).decode()
        return {"hashes": text, "rows": self.rows, "chance": self.chance}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Self:
        raw = base64.b64decode(str(given["hashes"]), validate=True)
        return cls(np.frombuffer(raw, dtype="<u8").astype(np.uint64), int(given["rows"]), float(given["chance"]))


def row_hashes(clean: pd.DataFrame) -> NDArray[np.uint64]:
    """One number for each row, from its values alone."""
    frame = clean.reset_index(drop=True)
    frame = frame[sorted(frame.columns)]
    numbers = frame.select_dtypes("number").columns
    frame[numbers] = frame[numbers].astype(np.float32).astype(np.float64) + 0.0
    return np.asarray(pd.util.hash_pandas_object(frame, index=False), dtype=np.uint64)
