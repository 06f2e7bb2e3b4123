"""Somebody else's model of tables, made ready for an audit: its table is encoded as ours are, and decoded for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor
from sklearn.pipeline import Pipeline
from torch import Tensor, nn

from evenhand.estimators.inputs import data_bounds
from evenhand.tables.delimited import first_line
from evenhand.tables.encoder import encode, encoded_names, make_encoder, positions
from evenhand.tables.errors import TableError, find_column
from evenhand.tables.kinds import MISSING_CATEGORY, USED, Column, infer, numbers_of, text_of
from evenhand.tables.schema import Schema
from evenhand.workflow.similarity import Proxy, check_free, few_enough, learn_proxy, metric_of, teaches
from evenhand.workflow.views import View, people_box


@dataclass(frozen=True)
class Foreign:
    """A model that takes a table and gives probabilities, decisions, or a quantity for each person: an estimator or
    pipeline of scikit-learn, a function of a frame, an nn.Module of the table's numbers, an ONNX graph.

    ``columns``: what it takes; by default what it says itself, otherwise the whole table.
    ``quantities``: whether its numbers are quantities rather than probabilities; None: regressors of scikit-learn say
    so themselves, everything else gives classes.
    """

    name: str
    model: Any
    given: tuple[str, ...] | None = None
    quantities: bool | None = None

    @property
    def regression(self) -> bool:
        if self.quantities is not None:
            return self.quantities
        return isinstance(self.model, BaseEstimator) and bool(is_regressor(self.model))

    @property
    def classes(self) -> list[Any] | None:
        found = getattr(self.model, "classes_", None)
        return None if found is None else list(np.asarray(found).tolist())

    def of_table(self, names: Sequence[str]) -> Foreign:
        """The same model, for a table with these columns: a model that does not say what it takes takes them all."""
        says = self.given is not None or hasattr(self.model, "feature_names_in_")
        return self if says else replace(self, given=tuple(names))

    def columns(self, frame: pd.DataFrame) -> list[str]:
        known = [str(name) for name in frame.columns]
        wanted = self.given if self.given is not None else getattr(self.model, "feature_names_in_", None)
        if wanted is not None:
            return [find_column(str(name), known, "model") for name in wanted]
        return known

    def probabilities(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """(n, K) for each row; logits of an nn.Module and margins become probabilities, bare decisions zeros and
        ones."""
        taken = frame[self.columns(frame)]
        p = _softmax(self._module(taken)) if isinstance(self.model, nn.Module) else self._answer(taken, self._classes)
        p = p[:, 0] if p.ndim == 2 and p.shape[1] == 1 else p
        p = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
        if p.ndim != 2 or len(p) != len(frame) or not np.isfinite(p).all() or p.min() < -1e-6 or p.max() > 1 + 1e-6:
            raise TableError(
                f"{self.name} must give probabilities, one row for each of the {len(frame)} people; got shape {p.shape}"
                + (f" with values from {p.min():.3g} to {p.max():.3g}" if p.size and np.isfinite(p).all() else "")
                + ". If it predicts a quantity, say so",
                "regression",
            )
        return p

    def predictions(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """(n,): the quantity that the model predicts for each row."""
        taken = frame[self.columns(frame)]
        call = self.model.predict if hasattr(self.model, "predict") else self.model
        module = isinstance(self.model, nn.Module)
        values = self._module(taken) if module else self._answer(taken, lambda given: _numbers(call(given)))
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        if values.shape != (len(frame),) or not np.isfinite(values).all():
            raise TableError(
                f"{self.name} must give a number for each of the {len(frame)} people; got shape {values.shape}"
                + ("" if np.isfinite(values).all() else " with NaN or infinity")
            )
        return values

    def _classes(self, taken: pd.DataFrame) -> NDArray[np.float64]:
        """Probabilities; where the model gives none, its margins as log-odds, and else its decisions."""
        model = self.model
        if hasattr(model, "predict_proba"):
            return _numbers(model.predict_proba(taken))
        if hasattr(model, "decision_function"):
            return _softmax(_numbers(model.decision_function(taken)))
        if not hasattr(model, "predict"):
            return _numbers(model(taken))
        said = model.predict(taken)
        if self.classes is None:  # a booster of LightGBM, a wrapper: numbers, if they are probabilities
            return _numbers(said)
        decided = np.asarray(said).reshape(-1, 1) == np.asarray(self.classes).reshape(1, -1)
        return np.asarray(decided, dtype=np.float64)

    def _answer(self, taken: pd.DataFrame, ask: Callable[[pd.DataFrame], NDArray[np.float64]]) -> NDArray[np.float64]:
        try:
            return ask(taken)
        except TableError:
            raise
        except Exception as error:  # it is somebody else's code
            raise TableError(
                f"{self.name} failed on a table with the columns {', '.join(map(repr, list(taken.columns)[:20]))}: "
                f"{type(error).__name__}: {first_line(error)}. If it takes other columns, name them in its order",
                "columns",
            ) from error

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
            h = self.model.eval()(torch.tensor(taken.to_numpy(dtype=np.float64)).to(parameter))
        self.model.train(was)
        return np.asarray(h.double().cpu().numpy())


@dataclass(frozen=True)
class Cell:
    """How the features at ``places`` become the cell of one column again: x * factor + shift, or one of ``values``."""

    name: str
    places: tuple[int, ...]
    factor: float = 1.0
    shift: float = 0.0
    values: NDArray[Any] | None = None
    whole: bool = False  # the column holds whole numbers

    def of(self, x: NDArray[np.float64]) -> NDArray[Any]:
        """(n, d) encoded -> (n,) as the table has them."""
        if self.values is None:
            value = x[:, self.places[0]] * self.factor + self.shift
            whole = value.round()
            near = self.whole & (np.abs(value - whole) < 1e-4 * (1 + np.abs(whole)))  # float32 on the way
            return np.where(near, whole, value)
        if len(self.places) == 1:
            return np.asarray(self.values[(x[:, self.places[0]] > 0.5).astype(int)])
        return np.asarray(self.values[x[:, list(self.places)].argmax(1)])


class Decoding(BaseEstimator):  # type: ignore[misc]
    """The foreign model as a function of encoded rows: each is turned back into a row of its table."""

    def __init__(self, foreign: Foreign, cells: Sequence[Cell], rest: Mapping[str, Any]) -> None:
        self.foreign, self.cells, self.rest = foreign, cells, rest

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def table(self, X: Any) -> pd.DataFrame:
        x = (X.detach().cpu().numpy() if isinstance(X, Tensor) else np.asarray(X)).astype(np.float64)
        columns: dict[str, Any] = {cell.name: cell.of(x) for cell in self.cells}
        columns |= {name: [value] * len(x) for name, value in self.rest.items()}
        return pd.DataFrame(columns)


class DecodedClasses(ClassifierMixin, Decoding):  # type: ignore[misc]
    """One that decides."""

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return self.foreign.probabilities(self.table(X))

    def predict(self, X: Any) -> NDArray[np.int64]:
        return np.asarray(self.predict_proba(X).argmax(1))


class DecodedQuantity(RegressorMixin, Decoding):  # type: ignore[misc]
    """One that predicts a quantity."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        return self.foreign.predictions(self.table(X))


def cells_of(schema: Schema, encoder: Any, frame: pd.DataFrame) -> list[Cell]:
    """Each column that the encoder takes, and how to undo what it did to it."""
    places, names = positions(encoder), encoded_names(encoder)
    cells = []
    for part, transformer, columns in encoder.transformers_:
        for j, name in enumerate(columns):
            if part == "number":
                clip, scale = transformer.named_steps["clip"], transformer.named_steps["scale"]
                factor = scale.scale_[j] / clip.scale_[j]
                shift = (scale.mean_[j] - clip.min_[j]) / clip.scale_[j]
                whole = bool((numbers_of(frame[name], name).dropna() % 1 == 0).all())
                cells.append(Cell(name, tuple(places[name]), float(factor), float(shift), whole=whole))
            elif part in ("binary", "category"):
                own, known = _own(frame[name]), [str(c) for c in transformer.categories_[j]]
                shown = [names[p][1] for p in places[name]]
                texts = [*(c for c in known if c not in shown), *shown] if len(shown) == 1 else shown
                rare = next((c for c in known if c not in shown), known[-1])
                values = np.empty(len(texts), dtype=object)
                values[:] = [own.get(rare if text == "(rare)" else text, np.nan) for text in texts]
                values = pd.Series(values).infer_objects().to_numpy()  # numbers stay numbers, as in the table
                cells.append(Cell(name, tuple(places[name]), values=values))
    return cells


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

    @property
    def regression(self) -> bool:
        return self.foreign.regression

    def codes(self, clean: pd.DataFrame) -> NDArray[Any]:
        """Class numbers, or quantities."""
        encoded = encode(self.view.encoder, clean[list(self.columns)])
        return np.asarray(self.pipeline[-1].predict(encoded.to_numpy()))

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
    columns = tuple(Column(c.name, "category") if c.unit else c for c in columns)  # the model knows it as text
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
    places = positions(encoder)
    free = [p for name in schema.sensitive for p in places[name]]
    proxies = _proxies(places, X, clean, wanted, free)
    metric = metric_of(X.shape[1], free, proxies)
    share, warning = check_free(metric, X)
    low, high = data_bounds(torch.tensor(X.to_numpy(dtype=np.float32)))
    view = View(schema, encoder, metric, people_box(schema, encoder, low, high))
    rest = {name: frame[name].iloc[0] for name in taken if name not in view.columns}
    decoded = DecodedQuantity if foreign.regression else DecodedClasses
    model = Pipeline([("encode", encoder), ("model", decoded(foreign, cells_of(schema, encoder, frame), rest))])
    return Ready(model, view, clean, foreign, tuple(proxies), share, warning)


def _proxies(
    places: Mapping[str, list[int]], X: pd.DataFrame, clean: pd.DataFrame, wanted: Sequence[str], free: Sequence[int]
) -> list[Proxy]:
    """Learned on one half of the people, tried on the other; only what is more than chance."""
    half = np.random.default_rng(0).permutation(len(X)) < len(X) // 2
    found = []
    for name in wanted:
        if not teaches(clean[name][half]):
            continue
        others = [p for p in range(X.shape[1]) if p not in places.get(name, [])]
        one = learn_proxy(name, X[half], clean[name][half], others, X[~half], clean[name][~half])
        if one.surely:
            found.append(one)
    return few_enough(found, free, X)


def _own(values: pd.Series) -> dict[str, Any]:
    """The cell behind each category's text."""
    back = {text_of(value): value for value in pd.unique(values) if not pd.isna(value)}
    return back | {MISSING_CATEGORY: np.nan}


def _numbers(answer: Any) -> NDArray[np.float64]:
    given = answer.detach().cpu().numpy() if isinstance(answer, Tensor) else answer
    return np.asarray(given, dtype=np.float64)


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
