"""What a sweep found: means over the folds with intervals, the Pareto front, and a choice by a stated rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import clone


@dataclass(frozen=True)
class Choice:
    """A model chosen from a sweep: its parameters, an unfitted estimator that has them, and why it was chosen."""

    params: dict[str, Any]
    estimator: Any
    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True)
class Frontier:
    """A finished sweep. ``frame`` has one row a model and fold; all scores are of held-out folds.

    ``seconds`` is CPU time of fit and scores, in one thread.
    """

    frame: pd.DataFrame
    parameters: tuple[str, ...]
    scores: tuple[str, ...]
    estimator: Any
    confidence: float = 0.95

    @property
    def table(self) -> pd.DataFrame:
        """One row a setting: the mean of each score over the folds, its interval (_low, _high), and whether the setting
        is on the front. The intervals are Student's, over the folds; with a single fold they are NaN."""
        keys = [self.frame[name].map(repr) for name in self.parameters] or [self.frame["fold"] * 0]  # a single setting
        grouped = self.frame.groupby(keys, sort=False)
        result = grouped[list(self.parameters)].first().reset_index(drop=True)
        k = grouped.size().to_numpy()
        factor = np.array([stats.t.ppf(0.5 + self.confidence / 2, n - 1) / np.sqrt(n) if n > 1 else np.nan for n in k])
        for name in self.scores:
            mean, spread = grouped[name].mean().to_numpy(), grouped[name].std(ddof=1).to_numpy()
            result[name] = mean
            result[f"{name}_low"], result[f"{name}_high"] = mean - factor * spread, mean + factor * spread
        result["folds"] = k
        result["front"] = pareto(result["accuracy"].to_numpy(), result["unfairness"].to_numpy())
        return result

    @property
    def front(self) -> pd.DataFrame:
        """The settings that no other beats in one score without losing in the other, from fair to accurate."""
        table = self.table
        return table[table["front"]].sort_values("unfairness").reset_index(drop=True)

    def choose(self, *, max_accuracy_loss: float | None = None, max_unfairness: float | None = None) -> Choice:
        """The fairest setting that loses at most so much accuracy, or the most accurate that is at most so unfair.

        Decided on the means over the held-out folds; accuracy is lost against the most accurate setting of the sweep.
        """
        if (max_accuracy_loss is None) == (max_unfairness is None):
            raise ValueError("give either max_accuracy_loss=... or max_unfairness=...")
        table = self.table.dropna(subset=["accuracy", "unfairness"])
        if table.empty:
            raise ValueError("no model of the sweep has both scores defined; there is nothing to choose from")
        best = table.iloc[int(np.argmax(table["accuracy"]))]
        if max_accuracy_loss is not None:
            allowed = table[table["accuracy"] >= best["accuracy"] - max_accuracy_loss]
            row = allowed.sort_values(["unfairness", "accuracy"], ascending=[True, False]).iloc[0]
            rule = (
                f"the least unfair of the {len(allowed)} of {len(table)} settings whose accuracy is within "
                f"{max_accuracy_loss:g} of the best, {best['accuracy']:.3f} at {self._name(best)}"
            )
        else:
            allowed = table[table["unfairness"] <= max_unfairness]
            if allowed.empty:
                least = table.iloc[int(np.argmin(table["unfairness"]))]
                raise ValueError(
                    f"no setting has unfairness of at most {max_unfairness:g}; the least is "
                    f"{least['unfairness']:.4g} at {self._name(least)}. Extend the sweep, or allow more"
                )
            row = allowed.sort_values(["accuracy", "unfairness"], ascending=[False, True]).iloc[0]
            rule = (
                f"the most accurate of the {len(allowed)} of {len(table)} settings whose unfairness is at most "
                f"{max_unfairness:g}"
            )
        why = f"{self._name(row)} is {rule}: {self._with_interval(row)}, mean of {row['folds']} held-out folds."
        params = {name: row[name] for name in self.parameters}
        return Choice(params, clone(self.estimator).set_params(**params), why)

    def __str__(self) -> str:
        table, front = self.table, self.front
        return (
            f"{len(table)} settings on {self.frame['fold'].nunique()} folds, {len(front)} on the front: from accuracy "
            f"{front['accuracy'].iloc[0]:.3f} at unfairness {front['unfairness'].iloc[0]:.3g} "
            f"to {front['accuracy'].iloc[-1]:.3f} at {front['unfairness'].iloc[-1]:.3g}"
        )

    def _name(self, row: pd.Series[Any]) -> str:
        shown = {name: f"{row[name]:g}" if _number(row[name]) else str(row[name]) for name in self.parameters}
        return ", ".join(f"{name}={value}" for name, value in shown.items()) or "the only setting"

    def _with_interval(self, row: pd.Series[Any]) -> str:
        parts = []
        for name, form in (("accuracy", ".3f"), ("unfairness", ".3g")):
            text = f"{name} {row[name]:{form}}"
            if np.isfinite(row[f"{name}_low"]):
                low = max(0.0, row[f"{name}_low"])
                text += f" ({self.confidence:.0%} interval {low:{form}} to {row[f'{name}_high']:{form}})"
            parts.append(text)
        return ", ".join(parts)


def pareto(accuracy: np.ndarray, unfairness: np.ndarray) -> np.ndarray:
    """Whether each point is on the front: no other has at least its accuracy and at most its unfairness, one strictly.

    NaN is on no front and beats nothing.
    """
    with np.errstate(invalid="ignore"):
        as_good = (accuracy[None] >= accuracy[:, None]) & (unfairness[None] <= unfairness[:, None])
        better = (accuracy[None] > accuracy[:, None]) | (unfairness[None] < unfairness[:, None])
    result: np.ndarray = ~(as_good & better).any(axis=1) & np.isfinite(accuracy) & np.isfinite(unfairness)
    return result


def _number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
