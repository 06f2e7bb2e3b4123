"""What a model sees: the table encoded with the sensitive columns or without them, its metric and its domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer

from evenhand.domain import Box
from evenhand.estimators.inputs import data_bounds
from evenhand.fair_metrics.classifier import AttributeModel
from evenhand.fair_metrics.metric import FairMetric
from evenhand.tables.encoder import encode, encoded_names, make_encoder, positions
from evenhand.tables.schema import Schema
from evenhand.workflow.similarity import Proxy, metric_of


@dataclass(frozen=True)
class Part:
    """One part of the table: clean frame in the user's units (sensitive columns included), and the target."""

    frame: pd.DataFrame
    y: NDArray[Any]  # class numbers, or quantities

    def head(self, n: int) -> Part:
        return Part(self.frame.iloc[:n], self.y[:n])

    def rows(self, kept: NDArray[np.bool_]) -> Part:
        return Part(self.frame[kept], self.y[kept])


@dataclass(frozen=True)
class View:
    """The table as one kind of model sees it."""

    schema: Schema
    encoder: ColumnTransformer
    fair_metric: FairMetric
    box: Box  # the set of possible people, from the range of the train part

    @property
    def columns(self) -> list[str]:
        return [column.name for column in self.schema.used]

    def encode(self, part: Part) -> pd.DataFrame:
        return encode(self.encoder, part.frame[self.columns])

    def inside(self, part: Part) -> NDArray[np.bool_]:
        """Whose categories were all seen in training: the others are outside the domain of the statements."""
        x = torch.tensor(self.encode(part).to_numpy(dtype=np.float64))
        return np.asarray(self.box.contains(x).numpy())


def fit_encoder(schema: Schema, train: Part) -> ColumnTransformer:
    return make_encoder(schema).fit(train.frame[[column.name for column in schema.used]])


def make_view(schema: Schema, encoder: ColumnTransformer, train: Part, proxies: Sequence[Proxy]) -> View:
    """Metric and domain for an encoding. The sensitive columns cost nothing; nor does what the proxies found."""
    places = positions(encoder)
    free = [p for name in schema.sensitive for p in places.get(name, [])]
    X = encode(encoder, train.frame[[column.name for column in schema.used]])
    low, high = data_bounds(torch.tensor(X.to_numpy(dtype=np.float32)))
    return View(schema, encoder, metric_of(X.shape[1], free, proxies), people_box(schema, encoder, low, high))


def carry_over(proxies: Sequence[Proxy], learned_on: ColumnTransformer, to: ColumnTransformer) -> list[Proxy]:
    """The same directions among the columns of another encoding; what it lacks is sensitive and free anyway."""
    source, names = {name: i for i, name in enumerate(encoded_names(learned_on))}, encoded_names(to)

    def moved(model: AttributeModel) -> AttributeModel:
        directions = np.zeros((len(names), model.directions.shape[1]))
        for i, name in enumerate(names):
            if name in source:
                directions[i] = model.directions[source[name]]
        used = tuple(i for i, name in enumerate(names) if source.get(name) in set(model.used))
        return AttributeModel(model.name, model.estimator, used, directions)

    return [replace(proxy, models=tuple(map(moved, proxy.models))) for proxy in proxies]


def people_box(schema: Schema, encoder: ColumnTransformer, low: Any, high: Any) -> Box:
    """The set of possible people: the range of each number, two points for binary columns, one-hot blocks."""
    places = positions(encoder)
    kinds = {column.name: column.kind for column in schema.used}
    binary = [p for name, block in places.items() if kinds[name] == "binary" for p in block]
    blocks = [block for name, block in places.items() if kinds[name] == "category"]
    return Box(low, high, blocks=blocks, binary=binary)
