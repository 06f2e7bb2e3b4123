"""The same people with other values in the sensitive columns, and how a model's decisions change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.evaluation import balanced_accuracy, prediction_consistency, tpr_gaps
from evenhand.tables.schema import Schema

MAX_VALUES = 8  # of one sensitive column: its most frequent categories
MAX_VERSIONS = 40  # of one person


@dataclass(frozen=True)
class Flip:
    """A question: would the decision be the same if these columns had other values?"""

    name: str  # "sex", "race", "sex and race"
    changes: Mapping[str, Sequence[Any]]
    keep_original: bool = True

    def versions(self, frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
        """The frame as it is, then with every combination of the values."""
        if self.keep_original:
            yield frame
        for values in product(*self.changes.values()):
            yield frame.assign(**{name: _column(frame[name], v) for name, v in zip(self.changes, values)})


def flips(schema: Schema, frame: pd.DataFrame) -> list[Flip]:
    """One question for each sensitive column, and one for all of them together.

    A categorical column takes its most frequent values, a number its tenth, fiftieth and ninetieth percentile.
    """
    kinds = {column.name: column.kind for column in schema.used}
    values: dict[str, list[Any]] = {}
    for name in schema.sensitive:
        if kinds[name] == "number":
            values[name] = [float(q) for q in np.nanquantile(frame[name], [0.1, 0.5, 0.9])]
        else:
            values[name] = [str(v) for v in frame[name].value_counts().index[:MAX_VALUES]]
    questions = [Flip(name, {name: values[name]}) for name in schema.sensitive]
    if len(values) > 1 and np.prod([len(v) for v in values.values()]) <= MAX_VERSIONS:
        questions.append(Flip(" or ".join(schema.sensitive), values))
    return questions


def scores(
    model: Any,
    frame: pd.DataFrame,
    y: NDArray[np.int64],
    groups: Mapping[str, NDArray[Any]],
    questions: Sequence[Flip],
) -> dict[str, Any]:
    """Accuracy, gaps between groups, and the share of people whose decision depends on what the questions change."""
    predicted = np.asarray(model.predict(frame))
    probability = np.asarray(model.predict_proba(frame))
    result: dict[str, Any] = {
        "n": len(y),
        "accuracy": float(np.mean(predicted == y)),
        "balanced_accuracy": balanced_accuracy(y, predicted),
        "log_loss": float(-np.mean(np.log(np.clip(probability[np.arange(len(y)), y], 1e-12, 1)))),
        "changed": {},
        "gaps": {},
    }
    for question in questions:
        probabilities = np.stack([np.asarray(model.predict_proba(v)) for v in question.versions(frame)], axis=1)
        labels = probabilities.argmax(-1)
        moved = np.abs(probabilities - probabilities[:, :1]).max((1, 2))
        result["changed"][question.name] = {
            "share": 1 - prediction_consistency(labels),
            "interval": wilson(int((labels != labels[:, :1]).any(1).sum()), len(labels)),
            "mean_probability_change": float(moved.mean()),
            "max_probability_change": float(moved.max()),
            "versions": labels.shape[1],
        }
    for name, group in groups.items():
        result["gaps"][name] = group_gaps(y, predicted, group)
    return result


def most_changed(
    model: Any, frame: pd.DataFrame, question: Flip, labels: Sequence[str], k: int = 50
) -> list[dict[str, Any]]:
    """The people whose probabilities change most between themselves and another version: who, what, how much."""
    versions = list(question.versions(frame))
    p = np.stack([np.asarray(model.predict_proba(v)) for v in versions], axis=1)
    change = np.abs(p - p[:, :1]).max(-1)
    worst = change.argmax(1)
    people = []
    for i in np.argsort(-change[np.arange(len(frame)), worst], kind="stable")[:k]:
        other = versions[worst[i]].iloc[i]
        mine, theirs = p[i, 0], p[i, worst[i]]
        most = int(np.abs(theirs - mine).argmax()) if len(labels) > 2 else len(labels) - 1
        record = {str(name): show(value, float(value).is_integer()) if isinstance(value, np.floating) else str(value)
                  for name, value in frame.iloc[i].items()}  # fmt: skip
        people.append(
            {
                "row": str(frame.index[i]),
                "change": float(change[i, worst[i]]),
                "label": str(labels[most]),
                "probability": float(mine[most]),
                "probability_worst": float(theirs[most]),
                "prediction": str(labels[int(mine.argmax())]),
                "prediction_worst": str(labels[int(theirs.argmax())]),
                "changed": {
                    str(name): [record[str(name)], show(other[name])]
                    for name in question.changes
                    if show(other[name]) != record[str(name)]
                },
                "record": record,
            }
        )
    return people


def show(value: Any, whole: bool = False) -> str:
    """A value as a person would write it; columns of whole numbers stay whole."""
    if not isinstance(value, float | np.floating):
        return str(value)
    number = float(value)
    if np.isnan(number):
        return "(missing)"
    if whole:
        return f"{round(number):d}"
    return f"{number:.4g}" if abs(number) < 1e4 else f"{number:.0f}"


def group_gaps(y: NDArray[np.int64], predicted: NDArray[np.int64], group: NDArray[Any]) -> dict[str, Any]:
    """The gaps of ``tpr_gaps`` with the rate of each group and class, its Wilson interval and its count."""
    gaps = tpr_gaps(y, predicted, np.asarray(group, dtype=str))
    rates = []
    for k, by_group in gaps.rates.items():
        for name, rate in by_group.items():
            n = int(((y == k) & (np.asarray(group, dtype=str) == name)).sum())
            right = round(rate * n) if np.isfinite(rate) else 0
            rates.append({"class": int(k), "group": str(name), "n": n, "rate": rate, "interval": wilson(right, n)})
    return {
        "rms": gaps.rms,
        "max": gaps.max,
        "per_class": {str(k): gap for k, gap in gaps.per_class.items()},
        "rates": rates,
        "undefined": list(gaps.undefined),
    }


def wilson(successes: int, n: int, z: float = 1.959964) -> list[float]:
    """The 95 % Wilson interval of a share."""
    if n == 0:
        return [0.0, 1.0]
    p = successes / n
    centre, spread = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [float(max(0, (centre - spread) / (1 + z * z / n))), float(min(1, (centre + spread) / (1 + z * z / n)))]


def _column(old: pd.Series, value: Any) -> pd.Series:
    kind = np.float32 if old.dtype == np.float32 else object
    return pd.Series(np.full(len(old), value, dtype=kind), index=old.index, name=old.name, dtype=kind)
