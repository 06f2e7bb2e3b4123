"""What a run starts from: a table in four parts, encoded, with its metric and its domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import train_test_split

from evenhand.domain import Box
from evenhand.estimators.inputs import data_bounds
from evenhand.fair_metrics.classifier import AttributeModel, from_classifier
from evenhand.fair_metrics.metric import FairMetric
from evenhand.tables.read import TableError
from evenhand.tables.schema import Schema, encode, encoded_names, make_encoder
from evenhand.workflow.questions import Flip, flips

MIN_ROWS = 200
METRIC_ROWS = 50_000  # enough to learn the directions
PARTS = ("train", "tuning", "validation", "held_out")


@dataclass(frozen=True)
class Part:
    """One part of the table: clean frame in the user's units, encoded features, class codes."""

    frame: pd.DataFrame
    X: pd.DataFrame
    y: NDArray[np.int64]

    def head(self, n: int) -> Part:
        return Part(self.frame.iloc[:n], self.X.iloc[:n], self.y[:n])


@dataclass(frozen=True)
class Task:
    """A table ready for training: parts, encoder, metric, domain, and the questions to ask of a model."""

    schema: Schema
    encoder: ColumnTransformer
    parts: dict[str, Part]
    fair_metric: FairMetric
    proxies: tuple[str, ...]
    questions: list[Flip]
    left_out: dict[str, int] = field(default_factory=dict)  # why -> how many rows

    def groups(self, part: Part) -> dict[str, NDArray[Any]]:
        """The sensitive attributes as groups: categories, or a number cut at its quartiles."""
        groups: dict[str, NDArray[Any]] = {}
        kinds = {column.name: column.kind for column in self.schema.used}
        for name in self.schema.sensitive:
            values = part.frame[name]
            if kinds[name] == "number":
                cuts = np.unique(np.nanquantile(self.parts["train"].frame[name], [0, 0.25, 0.5, 0.75, 1]))
                cuts[0], cuts[-1] = -np.inf, np.inf
                values = pd.cut(values, cuts.tolist()).astype(str)
            groups[name] = values.to_numpy(dtype=str)
        return groups

    def box(self) -> Box:
        """The set of possible people, from the range of the train part."""
        return self._box

    @cached_property
    def _box(self) -> Box:
        low, high = data_bounds(torch.from_numpy(self.parts["train"].X.to_numpy(dtype=np.float32)))
        return people_box(self.schema, self.encoder, low, high)


def people_box(schema: Schema, encoder: ColumnTransformer, low: Any, high: Any) -> Box:
    """The set of possible people: the range of each number, two points for binary columns, one-hot blocks."""
    places = positions(encoder)
    kinds = {column.name: column.kind for column in schema.used}
    binary = [p for name, block in places.items() if kinds[name] == "binary" for p in block]
    blocks = [block for name, block in places.items() if kinds[name] == "category"]
    return Box(low, high, blocks=blocks, binary=binary)


def positions(encoder: ColumnTransformer) -> dict[str, list[int]]:
    """Where each column went: name -> positions of its encoded features."""
    places: dict[str, list[int]] = {}
    for i, (column, _) in enumerate(encoded_names(encoder)):
        places.setdefault(column, []).append(i)
    return places


def prepare(
    frame: pd.DataFrame,
    target: str,
    sensitive: Sequence[str],
    *,
    proxy: bool | Sequence[str] = False,
    missing_sensitive: str = "error",
    keep_dates: bool = False,
    ignore: Sequence[str] = (),
    seed: int = 0,
    held_out: NDArray[np.bool_] | None = None,
    extra_questions: Sequence[Flip] = (),
) -> Task:
    """Kinds, split, encoding and metric; every decision is made on the train part only.

    proxy: also make free what predicts the sensitive columns, all of them or those named. held_out: which rows to hold
    out, where a published split asks for it; by default a stratified fifth.
    """
    schema = Schema.infer(frame, target, sensitive, keep_dates, ignore)
    frame, left_out = _usable(frame, schema, missing_sensitive)
    clean, y = schema.apply(frame), schema.codes(frame)
    rows = _split(y, schema, seed, None if held_out is None else held_out[frame.index.to_numpy()])
    encoder = make_encoder(schema).fit(clean.iloc[rows["train"]])
    parts = {name: _part(encoder, clean, y, rows[name]) for name in PARTS}
    named = tuple(schema.sensitive if proxy is True else () if proxy is False else proxy)
    unknown = set(named) - set(schema.sensitive)
    if unknown:
        raise TableError(f"--proxy-for names {', '.join(map(repr, sorted(unknown)))}, which is not among --sensitive")
    metric = learn(parts["train"], encoder, schema, named)
    questions = [*flips(schema, parts["train"].frame), *extra_questions]
    return Task(schema, encoder, parts, metric, named, questions, left_out)


def learn(train: Part, encoder: ColumnTransformer, schema: Schema, proxies: Sequence[str]) -> FairMetric:
    """The sensitive columns cost nothing; nor, for each proxy, does the direction that predicts it from the others."""
    places = positions(encoder)
    X = train.X.iloc[:METRIC_ROWS]
    d = X.shape[1]
    free = [p for name in schema.sensitive for p in places[name]]
    parts, models = [np.eye(d)[:, free]], []
    for name in proxies:
        others = [p for p in range(d) if p not in places[name]]
        inner = from_classifier(X.iloc[:, others], (), {name: _attribute(train.frame[name].iloc[:METRIC_ROWS])})
        model: AttributeModel = inner.attribute_models[0]
        lifted = np.zeros((d, model.directions.shape[1]))
        lifted[others] = model.directions
        parts.append(lifted)
        models.append(AttributeModel(name, model.estimator, tuple(others), lifted))
    metric = FairMetric(torch.as_tensor(np.concatenate(parts, axis=1), dtype=torch.float32))
    metric.attribute_models = tuple(models)
    return metric


def _attribute(values: pd.Series) -> NDArray[Any]:
    if values.dtype.kind == "f":
        return values.fillna(values.median()).to_numpy()
    return values.to_numpy(dtype=str)


def _usable(frame: pd.DataFrame, schema: Schema, missing_sensitive: str) -> tuple[pd.DataFrame, dict[str, int]]:
    """Rows that can be used; what is left out is counted."""
    left_out: dict[str, int] = {}
    frame = frame.reset_index(drop=True)
    without = frame[schema.target].isna()
    if without.any():
        left_out[f"no value in the target {schema.target!r}"] = int(without.sum())
        frame = frame[~without]
    missing = schema.missing_sensitive(frame)
    if missing:
        counts = ", ".join(f"{count:,} in {name!r}" for name, count in missing.items())
        lacking = frame[list(schema.sensitive)].isna().any(axis=1)
        if missing_sensitive == "error":
            rows = (np.flatnonzero(lacking.to_numpy())[:5] + 2).tolist()
            raise TableError(
                f"sensitive values are missing: {counts} (lines {', '.join(map(str, rows))}"
                f"{' ...' if lacking.sum() > 5 else ''}). Fairness towards these people cannot be judged. Fill them "
                f"in, or leave these {int(lacking.sum()):,} of {len(frame):,} rows out with --missing-sensitive drop, "
                "or make them a group of their own with --missing-sensitive category"
            )
        if missing_sensitive == "drop":
            left_out[f"a sensitive value is missing ({counts})"] = int(lacking.sum())
            frame = frame[~lacking]
    if len(frame) < MIN_ROWS:
        raise TableError(f"only {len(frame)} usable rows; training, choosing and certifying need at least {MIN_ROWS}")
    return frame, left_out


def _split(
    y: NDArray[np.int64], schema: Schema, seed: int, held_out: NDArray[np.bool_] | None
) -> Mapping[str, NDArray[np.intp]]:
    """60 % train, 5 % tuning (for the certificate), 15 % validation (to choose rho), 20 % held out (for the report)."""
    counts = np.bincount(y, minlength=len(schema.labels))
    if counts.min() < 10:
        label = schema.labels[int(counts.argmin())]
        raise TableError(
            f"class {label!r} of the target has {counts.min()} rows; each class needs at least 10, so that every part "
            "of the split holds some. Merge or leave out such classes"
        )
    every = np.arange(len(y))
    if held_out is None:
        rest, held = train_test_split(every, test_size=0.2, stratify=y, random_state=seed)
    else:
        rest, held = every[~held_out], every[held_out]
    train, other = train_test_split(rest, test_size=0.25, stratify=y[rest], random_state=seed)
    validation, tuning = train_test_split(other, test_size=0.25, random_state=seed)
    rng = np.random.default_rng(seed)
    return {name: rng.permutation(rows) for name, rows in zip(PARTS, (train, tuning, validation, held))}


def _part(encoder: ColumnTransformer, clean: pd.DataFrame, y: NDArray[np.int64], rows: NDArray[np.intp]) -> Part:
    frame = clean.iloc[rows]
    return Part(frame, encode(encoder, frame), y[rows])
