"""Somebody else's model of tables, made ready for an audit: its table is encoded as ours are, and decoded for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from torch import Tensor, nn

from evenhand.estimators.inputs import data_bounds
from evenhand.judged import Judged
from evenhand.tables.encoder import encode, make_encoder, positions
from evenhand.tables.errors import TableError, find_column
from evenhand.tables.kinds import MISSING_CATEGORY, USED, Column, infer, text_of
from evenhand.tables.schema import Schema
from evenhand.workflow.similarity import Proxy, check_free_share, free_share, learn_proxy, metric_of
from evenhand.workflow.views import View, people_box


@dataclass(frozen=True)
class Foreign:
    """A model that takes a table and gives probabilities, or one number a person: an estimator or pipeline of
    scikit-learn, a function of a frame, an nn.Module of the table's numbers, an ONNX graph.

    ``columns``: what it takes; by default what it says itself, otherwise the whole table.
    """

    name: str
    model: Any
    given: tuple[str, ...] | None = None

    @property
    def classes(self) -> list[Any] | None:
        found = getattr(self.model, "classes_", None)
        return None if found is None else list(np.asarray(found).tolist())

    def columns(self, frame: pd.DataFrame) -> list[str]:
        known = [str(name) for name in frame.columns]
        wanted = self.given if self.given is not None else getattr(self.model, "feature_names_in_", None)
        if wanted is not None:
            return [find_column(str(name), known, "model") for name in wanted]
        return known

    def probabilities(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """(n, K) for each row; logits of an nn.Module become probabilities."""
        taken = frame[self.columns(frame)]
        if isinstance(self.model, nn.Module):
            p = _softmax(self._module(taken))
        else:
            answer = self.model.predict_proba(taken) if hasattr(self.model, "predict_proba") else self.model(taken)
            p = np.asarray(answer.detach().cpu().numpy() if isinstance(answer, Tensor) else answer, dtype=np.float64)
        p = p[:, 0] if p.ndim == 2 and p.shape[1] == 1 else p
        p = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
        if p.ndim != 2 or len(p) != len(frame) or not np.isfinite(p).all() or p.min() < -1e-6 or p.max() > 1 + 1e-6:
            raise TableError(
                f"{self.name} must give probabilities, one row for each of the {len(frame)} people; got shape {p.shape}"
                + (f" with values from {p.min():.3g} to {p.max():.3g}" if p.size and np.isfinite(p).all() else "")
            )
        return p

    def _module(self, taken: pd.DataFrame) -> NDArray[np.float64]:
        text = [str(name) for name in taken.columns if not pd.api.types.is_numeric_dtype(taken[name])]
        if text:
            raise TableError(
                f"{self.name} is an nn.Module, which takes numbers, but column(s) "
                f"{', '.join(map(repr, text[:5]))} hold "
                "text; name the columns that it takes, or wrap it in a function of a table",
                "columns",
            )
        first = next((layer for layer in self.model.modules() if isinstance(layer, nn.Linear)), None)
        if first is not None and first.in_features != taken.shape[1]:
            raise TableError(
                f"{self.name} takes {first.in_features} numbers, but the table has {taken.shape[1]} columns; name the "
                "columns that it takes, in its order",
                "columns",
            )
        parameter = next(self.model.parameters(), torch.zeros(1))
        was = self.model.training
        with torch.no_grad():
            h = self.model.eval()(torch.as_tensor(taken.to_numpy(dtype=np.float64)).to(parameter))
        self.model.train(was)
        return np.asarray(h.double().cpu().numpy())


class Decoding(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The foreign model as a function of encoded rows: each is turned back into a row of its table."""

    def __init__(
        self, foreign: Foreign, encoder: Any, rest: Mapping[str, Any], own: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self.foreign, self.encoder, self.rest, self.own = foreign, encoder, rest, own

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        values = X.detach().cpu().numpy() if isinstance(X, Tensor) else np.asarray(X)
        frame = self._undo(values.astype(np.float64))
        for name, back in self.own.items():
            frame[name] = frame[name].map(lambda text, back=back: back.get(str(text), np.nan))
        frame = frame.assign(**{name: [value] * len(frame) for name, value in self.rest.items()})
        return self.foreign.probabilities(frame)

    def predict(self, X: Any) -> NDArray[np.int64]:
        return np.asarray(self.predict_proba(X).argmax(1))

    def _undo(self, values: NDArray[np.float64]) -> pd.DataFrame:
        judged = Judged.of(Pipeline([("encode", self.encoder), ("nothing", _Nothing())]))
        return judged.decode(values, None)


class _Nothing(BaseEstimator):  # type: ignore[misc]
    """Stands where a Pipeline wants a last step."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        return np.zeros(len(X))


@dataclass(frozen=True)
class Ready:
    """A foreign model before its judges."""

    pipeline: Pipeline
    view: View
    clean: pd.DataFrame  # with the sensitive columns, for the questions
    foreign: Foreign
    proxies: tuple[Proxy, ...]
    free_share: float
    warning: str | None

    @property
    def columns(self) -> Sequence[str]:
        return self.view.columns

    def codes(self, clean: pd.DataFrame) -> NDArray[Any]:
        return np.asarray(self.probabilities(clean).argmax(1))

    def probabilities(self, clean: pd.DataFrame) -> NDArray[np.float64]:
        encoded = encode(self.view.encoder, clean[list(self.columns)])
        return np.asarray(self.pipeline[-1].predict_proba(encoded.to_numpy()))


def make_ready(foreign: Foreign, frame: pd.DataFrame, sensitive: Sequence[str], proxy: bool | None = None) -> Ready:
    """Kinds, encoding, metric and domain from the people at hand.

    A sensitive column that the model takes is free by itself; of one that it does not take, what predicts it is (with
    proxy=True of every one), provided that it can be told from the other columns at all.
    """
    taken = foreign.columns(frame)
    names = list(dict.fromkeys([*taken, *sensitive]))
    columns = tuple(infer(frame[name], name, name in sensitive, keep=name in taken) for name in names)
    for column in columns:
        if column.name in sensitive and column.kind not in USED:
            raise TableError(f"the sensitive column {column.name!r} cannot be used: {column.note}")
    hidden = [name for name in sensitive if name not in taken]
    columns = tuple(Column(c.name, "hidden", c.note) if c.name in hidden else c for c in columns)
    schema = Schema(columns, "", tuple(name for name in sensitive if name in taken), (0, 1), see_sensitive=True)
    kinds = {name: infer(frame[name], name, sensitive=True).kind for name in hidden}
    beside = Schema(tuple(Column(n, k) for n, k in kinds.items()), "", (), (0, 1), see_sensitive=True)
    clean = pd.concat([schema.apply(frame), beside.apply(frame)], axis=1)
    encoder = make_encoder(schema).fit(clean[[c.name for c in schema.used]])
    X = encode(encoder, clean[[c.name for c in schema.used]])
    wanted = list(sensitive) if proxy else [] if proxy is False else hidden
    proxies = _proxies(encoder, X, clean, wanted)
    places = positions(encoder)
    free = [p for name in schema.sensitive for p in places[name]]
    metric = metric_of(X.shape[1], free, proxies)
    share = free_share(metric, X)
    low, high = data_bounds(torch.tensor(X.to_numpy(dtype=np.float32)))
    view = View(schema, encoder, metric, people_box(schema, encoder, low, high))
    rest = {name: frame[name].iloc[0] for name in taken if name not in view.columns}
    own = {c.name: _own(frame[c.name]) for c in schema.used if c.kind != "number"}
    model = Pipeline([("encode", encoder), ("model", Decoding(foreign, encoder, rest, own))])
    return Ready(
        model, view, clean, foreign, tuple(proxies), share, check_free_share(share, proxies) if proxies else None
    )


def _proxies(encoder: Any, X: pd.DataFrame, clean: pd.DataFrame, wanted: Sequence[str]) -> list[Proxy]:
    """Learned on one half of the people, tried on the other; only what is more than chance."""
    half = np.random.default_rng(0).permutation(len(X)) < len(X) // 2
    places = positions(encoder)
    found = []
    for name in wanted:
        others = [p for p in range(X.shape[1]) if p not in places.get(name, [])]
        one = learn_proxy(name, X[half], clean[name][half], others, X[~half], clean[name][~half])
        if one.surely:
            found.append(one)
    return found


def _own(values: pd.Series) -> dict[str, Any]:
    """The cell behind each category's text."""
    back = {text_of(value): value for value in pd.unique(values) if not pd.isna(value)}
    return back | {MISSING_CATEGORY: np.nan}


def _softmax(h: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logits as probabilities; one logit is that of the second class. What sums to one already is left as it is."""
    h = h[:, None] if h.ndim == 1 else h
    if h.shape[1] == 1:
        inside = bool(((h >= 0) & (h <= 1)).all())
        return h if inside else 1 / (1 + np.exp(-h))
    if bool((h >= 0).all()) and np.allclose(h.sum(1), 1, atol=1e-4):
        return h
    e = np.exp(h - h.max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))
