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

SHORTER = (0.75, 0.5, 0.25, 0.0)  # of the way that numbers move, where rounding has made a pair too different


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
        original, worst = (self.judged.decode(y.numpy(), source).reset_index(drop=True) for y in (x, x_worst))
        x_worst, original, worst, d_y, d_x, allowed = self._similar(x, x_worst, original, worst, source)
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

    def _similar(
        self, x: Tensor, found: Tensor, original: pd.DataFrame, worst: pd.DataFrame, source: pd.DataFrame | None
    ) -> tuple[Tensor, pd.DataFrame, pd.DataFrame, Tensor, Tensor, Tensor]:
        """Possible people, their distances, and which of them are still similar. Where rounding took somebody out of
        the budget, the numbers move less, in the end not at all: what costs nothing is kept."""
        x_worst, shown_first, shown = self._possible(found, original.copy(), worst, source)
        d_y, d_x, allowed = self._judge(x, x_worst)
        for share in SHORTER:
            if bool(allowed.all()):
                break
            nearer, _, shown_nearer = self._possible(found, original.copy(), worst, source, share)
            y_nearer, x_nearer, allowed_nearer = self._judge(x, nearer)
            take = ~allowed & allowed_nearer
            x_worst = torch.where(take[:, None], nearer, x_worst)
            d_y, d_x = torch.where(take[:, None], y_nearer, d_y), torch.where(take[:, None], x_nearer, d_x)
            chosen = take.numpy()
            shown = pd.concat([shown[~chosen], shown_nearer[chosen]]).sort_index()
            allowed = allowed | take
        return x_worst, shown_first, shown, d_y, d_x, allowed

    def _judge(self, x: Tensor, x_worst: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        d_y, d_x = self.attack.distances(x, x_worst[:, None])
        inside = self.attack.geometry.box.contains(x_worst)
        return d_y, d_x, (d_x[:, 0] <= self.eps) & (d_y[:, 0] > 0) & inside

    def _possible(
        self,
        x_worst: Tensor,
        original: pd.DataFrame,
        worst: pd.DataFrame,
        source: pd.DataFrame | None,
        share: float = 1.0,
    ) -> tuple[Tensor, pd.DataFrame, pd.DataFrame]:
        """Numbers have the decimals of their column (towards the original, which costs less), a rare category is one
        that exists; and the encoded people that this makes. share: of the way that the numbers move."""
        given = original if source is None else source.reset_index(drop=True)
        shown, changed = worst.copy(), False
        for column in worst.columns:
            if column not in given.columns:
                continue
            before = given[column]
            if pd.api.types.is_numeric_dtype(before) and pd.api.types.is_numeric_dtype(worst[column]):
                was, now = (values.to_numpy(dtype=np.float64) for values in (before, worst[column]))
                goal = now if share == 1 else was + share * (now - was)
                digits = decimals(was)
                shown[column] = goal if digits is None else towards(was, goal, digits)
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
            return torch.from_numpy(np.array(shown, dtype=np.float64)), original, shown
        line = given.copy()
        for column in shown.columns:
            if column in line.columns:
                line[column] = shown[column].to_numpy()
        return self.judged.encode(line), original, shown


def decimals(values: NDArray[np.float64]) -> int | None:
    """With how many decimals the numbers of a column are written, up to two; None where they have more."""
    known = values[np.isfinite(values)]
    for digits in range(3):
        if len(known) and np.allclose(known, known.round(digits), rtol=1e-6, atol=0.0):
            return digits
    return None


def towards(before: NDArray[np.float64], after: NDArray[np.float64], digits: int = 0) -> NDArray[np.float64]:
    """``after`` with so many decimals, no further from ``before`` than it was (but for rounding)."""
    unit = 10.0**digits
    slack = 1e-6 * np.maximum(np.abs(after * unit), 1.0)
    ends = np.where(after > before, np.floor(after * unit + slack), np.ceil(after * unit - slack)) / unit
    return np.where(np.abs(after - before) <= 1e-6 * np.abs(before), before, ends) + 0.0
