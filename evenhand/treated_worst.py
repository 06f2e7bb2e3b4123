"""The people whose outcome differs most from that of somebody similar, as an audit shows them: within the budget, most
different first, and possible people only."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.judged import Judged
from evenhand.search.thorough import Attack
from evenhand.search.within import Similar


class _Entry(NamedTuple):
    d_y: float
    number: int
    label: Any
    source: pd.DataFrame | None  # the person's own line, where x is a frame
    x: Tensor
    x_worst: Tensor


class Worst:
    """Collects them chunk by chunk."""

    def __init__(self, keep: int, judged: Judged, attack: Attack, eps: float) -> None:
        self.keep, self.judged, self.attack, self.eps = keep, judged, attack, eps
        self.entries: list[_Entry] = []

    def add(self, offset: int, source: Any, start: int, x: Tensor, similar: Similar) -> None:
        worst, place = similar.d_y.max(1)
        for i in worst.topk(min(self.keep, len(x))).indices.tolist():
            if worst[i] <= 0:
                continue
            framed = hasattr(source, "iloc")
            label = source.index[start + i] if framed else offset + i
            row = source.iloc[[start + i]] if isinstance(source, pd.DataFrame) else None
            point = similar.points[i, int(place[i])].clone()  # a view would keep the points of the whole chunk
            self.entries.append(_Entry(float(worst[i]), offset + i, label, row, x[i].clone(), point))
        self.entries.sort(key=lambda entry: (-entry.d_y, entry.number))
        del self.entries[self.keep :]

    def frames(self) -> dict[str, Any]:
        """Both sides in the user's own units, their distances and predictions, worst first."""
        d = self.attack.geometry.d
        x = torch.stack([entry.x for entry in self.entries]) if self.entries else torch.zeros(0, d).double()
        x_worst = torch.stack([entry.x_worst for entry in self.entries]) if self.entries else x
        lines = [entry.source for entry in self.entries if entry.source is not None]
        source = pd.concat(lines) if lines and len(lines) == len(self.entries) else None
        if not self.entries:
            empty = pd.DataFrame()
            return {"original": empty, "worst": empty, "x": x, "x_worst": x, "numbers": np.zeros(0, dtype=np.intp)} | {
                name: [] for name in ("labels", "d_y", "d_x", "prediction", "prediction_worst")
            }
        original, worst = self.judged.decode(x.numpy(), source), self.judged.decode(x_worst.numpy(), source)
        x_worst, original, worst = self._possible(x_worst, original, worst, source)
        d_y, d_x = self.attack.distances(x, x_worst[:, None])
        allowed = (d_x[:, 0] <= self.eps) & (d_y[:, 0] > 0) & self.attack.geometry.box.contains(x_worst)
        order = torch.argsort(-d_y[:, 0], stable=True)
        order = order[allowed[order]]
        rows, at = order.tolist(), order.numpy()
        return {
            "original": original.iloc[at].reset_index(drop=True),
            "worst": worst.iloc[at].reset_index(drop=True),
            "numbers": np.array([self.entries[i].number for i in rows], dtype=np.intp),
            "labels": [self.entries[i].label for i in rows],
            "d_y": d_y[order, 0].tolist(),
            "d_x": d_x[order, 0].tolist(),
            "prediction": self.judged.predictions(x[order]),
            "prediction_worst": self.judged.predictions(x_worst[order]),
        }

    def _possible(
        self, x_worst: Tensor, original: pd.DataFrame, worst: pd.DataFrame, source: pd.DataFrame | None
    ) -> tuple[Tensor, pd.DataFrame, pd.DataFrame]:
        """Columns of whole numbers hold whole numbers (towards the original, which costs less), a rare category is one
        that exists; and the encoded people that this makes."""
        given = original if source is None else source.reset_index(drop=True)
        shown, changed = worst.copy(), False
        for column in worst.columns:
            if column not in given.columns:
                continue
            before = given[column]
            if pd.api.types.is_numeric_dtype(before) and pd.api.types.is_numeric_dtype(worst[column]):
                if is_whole(before):
                    shown[column] = towards(before.to_numpy(dtype=np.float64), worst[column].to_numpy(dtype=np.float64))
                    changed = changed or bool((shown[column] != worst[column]).any())
            else:
                rare = worst[column].astype(str) == "infrequent_sklearn"
                if rare.any():
                    same = rare & (original[column].astype(str) == "infrequent_sklearn")
                    other = self.judged.rare_category(column)
                    shown[column] = worst[column].mask(rare, other).mask(same, before)
            original[column] = before.to_numpy()
        if not changed:
            return x_worst, original, shown
        if source is None:
            return torch.from_numpy(shown.to_numpy(dtype=np.float64)), original, shown
        line = given.copy()
        for column in shown.columns:
            if column in line.columns:
                line[column] = shown[column].to_numpy()
        return self.judged.encode(line), original, shown


def is_whole(column: pd.Series) -> bool:
    values = column.to_numpy(dtype=np.float64)
    return bool(np.isfinite(values).all() and (values == np.round(values)).all())


def towards(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """``after`` in whole numbers, no further from ``before`` than it was (but for rounding)."""
    slack = 1e-6 * np.maximum(np.abs(after), 1.0)
    return np.where(after > before, np.floor(after + slack), np.ceil(after - slack)) + 0.0
