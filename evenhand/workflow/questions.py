"""The same people with other values in the sensitive columns, and how a model's decisions change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.tables.schema import Schema
from evenhand.workflow.measures import wilson

MAX_VALUES = 120  # of one column; of more, so many spread over its range
MAX_VERSIONS = 400  # of one person
AT_ONCE = 20_000  # rows of one call
BUDGET = 1_500_000  # versions of people that a model is asked about for one question
MATERIAL = 0.1  # a quantity counts as changed when it moves by more than this share of the target's spread


class Asked(Protocol):
    """A model that questions are put to."""

    @property
    def columns(self) -> Sequence[str]: ...
    def codes(self, frame: pd.DataFrame) -> NDArray[Any]: ...
    def probabilities(self, frame: pd.DataFrame) -> NDArray[np.float64]: ...


@dataclass(frozen=True)
class Flip:
    """A question: would the decision be the same if these columns had other values?"""

    name: str  # "sex", "race", "sex or race"
    changes: Mapping[str, Sequence[Any]]
    keep_original: bool = True
    occur: Mapping[str, int] = field(default_factory=dict)  # how many values each column has in training

    def versions(self, frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
        """The frame as it is, then with every combination of the values."""
        if self.keep_original:
            yield frame
        for values in product(*self.changes.values()):
            yield frame.assign(**{name: _column(frame[name], v) for name, v in zip(self.changes, values)})

    @property
    def count(self) -> int:
        return int(np.prod([len(values) for values in self.changes.values()])) + self.keep_original

    @property
    def tried(self) -> str:
        """'all 2 values of sex, 40 of 73 values of age': what was tried, in words."""
        words = []
        for name, values in self.changes.items():
            known = self.occur.get(name, len(values))
            words.append(
                f"all {known} values of {name}"
                if known <= len(values)
                else f"{len(values)} of {known} values of {name}"
            )
        return ", ".join(words)


def flips(schema: Schema, frame: pd.DataFrame) -> list[Flip]:
    """One question for each sensitive column, and one for all of them together; every value that occurs is tried, or
    ``tried`` says how many."""
    values: dict[str, list[Any]] = {}
    occur: dict[str, int] = {}
    for name in schema.sensitive:
        if schema.kind(name) == "number":
            every = np.unique(frame[name].dropna())
            occur[name] = len(every)
            values[name] = [float(v) for v in _spread(every, MAX_VALUES)]
        else:
            counts = frame[name].value_counts().sort_index().sort_values(ascending=False, kind="stable")
            occur[name] = len(counts)
            values[name] = [str(v) for v in counts.index[:MAX_VALUES]]
    questions = [Flip(name, {name: values[name]}, occur=occur) for name in schema.sensitive]
    if len(values) > 1:
        for name in sorted(values, key=lambda n: -len(values[n])):  # the longest lists are thinned first
            others = np.prod([len(v) for other, v in values.items() if other != name])
            if others * len(values[name]) > MAX_VERSIONS and schema.kind(name) == "number":
                values[name] = list(_spread(np.array(values[name]), max(2, int(MAX_VERSIONS // others))))
        if np.prod([len(v) for v in values.values()]) <= MAX_VERSIONS:
            questions.append(Flip(" or ".join(schema.sensitive), values, occur=occur))
    return questions


def broadest(questions: Sequence[Flip], sensitive: Sequence[str]) -> Flip:
    """The question about all sensitive columns together, or the first one."""
    joined = " or ".join(sensitive)
    return next((q for q in questions if q.name == joined), questions[0])


def changed(model: Asked, frame: pd.DataFrame, question: Flip, spread: float | None = None) -> dict[str, Any]:
    """Share of people whose decision depends on what the question changes.

    spread: of the target, for a model that predicts a quantity; it counts as changed when it moves by a tenth of that.
    """
    few = frame.iloc[: max(50, BUDGET // question.count)]
    moved, different = np.zeros(len(few)), np.zeros(len(few), dtype=bool)
    if set(question.changes) & set(model.columns):  # otherwise nothing can change
        own: NDArray[Any] | None = None
        first: NDArray[Any] | None = None
        for codes, values in _answers(model, few, question, quantity=spread is not None):
            own, first = (codes, values) if own is None or first is None else (own, first)
            moved = np.maximum(moved, np.abs(values - first).max(1))
            different |= codes != own
        different = different if spread is None else moved > MATERIAL * spread
    return {
        "share": float(different.mean()),
        "interval": wilson(int(different.sum()), len(few)),
        "mean_change": float(moved.mean()),
        "max_change": float(moved.max()),
        "versions": question.count,
        "n": len(few),
        "tried": question.tried,
        "seen": bool(set(question.changes) & set(model.columns)),
    }


def most_changed(
    model: Asked, frame: pd.DataFrame, question: Flip, schema: Schema, k: int = 20
) -> list[dict[str, Any]]:
    """The people whose score changes most between themselves and another version: who, what, how much."""
    if not set(question.changes) & set(model.columns):
        return []
    few = frame.iloc[: max(50, BUDGET // 4 // question.count)]
    versions = list(question.versions(few))
    values = np.stack([given for _, given in _answers(model, few, question, schema.regression)], axis=1)
    change = np.abs(values - values[:, :1]).max(-1)
    worst = change.argmax(1)
    size = change[np.arange(len(few)), worst]
    chosen = [int(i) for i in np.argsort(-size, kind="stable")[:k] if size[i] > 0]
    if not chosen:
        return []
    others = pd.concat([versions[worst[i]].iloc[[i]] for i in chosen])
    shown = compared(model, few.iloc[chosen], others, schema)
    return [{"row": str(few.index[i]), "change": float(size[i]), **person} for i, person in zip(chosen, shown)]


def _answers(
    model: Asked, frame: pd.DataFrame, question: Flip, quantity: bool
) -> Iterator[tuple[NDArray[Any], NDArray[np.float64]]]:
    """What the model says of each version: codes (n,) and probabilities (n, K), or the quantity as both. Versions of
    few people are asked about together: one call costs more than a thousand rows."""
    together = max(1, AT_ONCE // max(len(frame), 1))
    versions = question.versions(frame)
    while block := list(islice(versions, together)):
        whole = pd.concat(block)
        codes = model.codes(whole)
        values = codes[:, None] if quantity else model.probabilities(whole)
        for i in range(len(block)):
            part = slice(i * len(frame), (i + 1) * len(frame))
            yield codes[part], values[part]


def compared(model: Asked, own: pd.DataFrame, other: pd.DataFrame, schema: Schema) -> list[dict[str, Any]]:
    """Each person beside another, row by row: what differs, both scores and both decisions. The model is asked about
    all of them at once."""
    people: list[dict[str, Any]] = []
    if len(own) == 0:
        return people
    codes = model.codes(pd.concat([own, other]))
    p = None if schema.regression else model.probabilities(pd.concat([own, other]))
    for i in range(len(own)):
        record = {str(name): show(own[name].iloc[i]) for name in own.columns}
        would = {str(name): show(other[name].iloc[i]) for name in other.columns}
        changed = {name: [record[name], would[name]] for name in would if would[name] != record.get(name)}
        person: dict[str, Any] = {"changed": changed, "record": record}
        mine, theirs = codes[i], codes[len(own) + i]
        if p is None:
            person |= {"score": float(mine), "score_other": float(theirs)}
            person |= {"decision": show(float(mine)), "decision_other": show(float(theirs))}
        else:
            moved = np.abs(p[len(own) + i] - p[i])
            most = int(moved.argmax()) if len(schema.classes) > 2 else len(schema.classes) - 1
            person |= {"label": schema.labels[most], "score": float(p[i, most])}
            person |= {"score_other": float(p[len(own) + i, most]), "decision": schema.labels[int(mine)]}
            person |= {"decision_other": schema.labels[int(theirs)]}
        people.append(person)
    return people


def show(value: Any) -> str:
    """A value as a person would write it; whole numbers stay whole."""
    if not isinstance(value, float | np.floating):
        return str(value)
    number = float(value)
    if np.isnan(number):
        return "(missing)"
    if abs(number - round(number)) < 1e-6 * (1 + abs(number)):
        return f"{round(number):d}"
    return f"{number:.4g}" if abs(number) < 1e4 else f"{number:.0f}"


def _spread(values: NDArray[Any], most: int) -> NDArray[Any]:
    """All values, or so many of them from the smallest to the largest."""
    if len(values) <= most:
        return values
    return np.asarray(values[np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))])


def _column(old: pd.Series, value: Any) -> pd.Series:
    kind = np.float32 if old.dtype == np.float32 else object
    return pd.Series(np.full(len(old), value, dtype=kind), index=old.index, name=old.name, dtype=kind)
