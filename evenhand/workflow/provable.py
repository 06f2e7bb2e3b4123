"""Somebody else's model of numbers, made ready for a certificate: what it sees, who is similar, who is possible.

A network, a linear model or trees, alone or at the end of a Pipeline, are bounded in the units that they see
themselves: the table after the Pipeline's own preparation. Which of those features belong to which column is found by
altering that column alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.tables.errors import TableError
from evenhand.tables.kinds import infer
from evenhand.tables.schema import Schema
from evenhand.workflow.foreign import Foreign
from evenhand.workflow.similarity import Proxy, check_free, few_enough, learn_proxy, metric_of, teaches

ALIKE = 1e-9  # of a feature's spread: less is no change


@dataclass(frozen=True)
class Provable:
    """What ``certify`` takes, in the model's own units."""

    model: Any
    fair_metric: FairMetric
    box: Box
    people: pd.DataFrame
    tuning: pd.DataFrame
    free: tuple[str, ...]  # sensitive columns that the model takes
    proxies: tuple[Proxy, ...]
    left_out: int  # people with missing values, or outside the range of the tuning people
    warning: str | None  # where much of the difference between people is free


def make_provable(
    foreign: Foreign, people: pd.DataFrame, tuning: pd.DataFrame, sensitive: Sequence[str], proxy: bool | None = None
) -> Provable:
    """Metric and domain from the tuning people: a feature costs by its standard deviation, except what belongs to the
    sensitive columns or predicts one that the model does not take; the domain is the range of every feature."""
    taken = foreign.columns(tuning)
    see = _sight(foreign, taken)
    x, known = see(tuning)
    tuning, x = tuning[known], x[known]
    if len(x) < 20:
        raise TableError(f"only {len(x)} tuning people without missing values; at least 20 are needed")
    spread = x.std(0)
    moves = {name: _places(see, tuning, name, spread) for name in taken}
    free = tuple(name for name in sensitive if name in taken)
    hidden = [name for name in sensitive if name not in taken or proxy] if proxy is not False else []
    unit = np.where(spread > 0, spread, 1.0)
    places = sorted({p for name in free for p in moves[name]})
    proxies = tuple(few_enough(_proxies(x / unit, tuning, hidden, moves), places, pd.DataFrame(x / unit)))
    alike = metric_of(x.shape[1], places, proxies)
    warning = check_free(alike, pd.DataFrame(x / unit))[1]
    exact = FairMetric(alike.directions.double()) if alike.directions.shape[1] else FairMetric.euclidean(alike.d)
    metric = FairMetric(sigma=exact.sigma.double() / torch.from_numpy(unit[:, None] * unit))
    box = _domain(x, moves)
    encoded, whole = see(people)
    inside = np.zeros(len(people), dtype=bool)
    inside[whole] = box.contains(torch.from_numpy(encoded[whole])).numpy()
    return Provable(
        foreign.model,
        metric,
        box,
        people.loc[inside, taken],
        tuning[taken],
        free,
        proxies,
        int((~inside).sum()),
        warning,
    )


Sight = Callable[[pd.DataFrame], tuple[NDArray[np.float64], NDArray[np.bool_]]]


def _sight(foreign: Foreign, taken: Sequence[str]) -> Sight:
    """A table as the model itself sees it, (n, d), and whose rows are complete."""
    model = foreign.model
    before = model[:-1] if isinstance(model, Pipeline) and len(model) > 1 else None

    def see(frame: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        try:
            given: Any = frame[list(taken)] if before is None else before.transform(frame[list(taken)])
            x = np.asarray(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            what = "the columns that it takes" if before is None else "what its Pipeline prepares"
            raise TableError(
                f"{foreign.name} cannot be certified on this table: {what} must be numbers ({type(error).__name__}). A "
                "Pipeline that ends in the model and encodes the table itself can be",
                "columns",
            ) from error
        return x, np.asarray(np.isfinite(x).all(1))

    return see


def _places(see: Sight, frame: pd.DataFrame, name: str, spread: NDArray[np.float64]) -> list[int]:
    """The features that change when the column alone does."""
    own, known = see(frame)
    moved = np.zeros(own.shape[1], dtype=bool)
    for shift in sorted({1, len(frame) // 3, len(frame) // 2}):
        altered = frame.copy()
        altered[name] = frame[name].array.take(np.roll(np.arange(len(frame)), shift))
        other, there = see(altered)
        both = known & there
        moved |= (np.abs(other[both] - own[both]) > ALIKE * spread).any(0)
    return [int(p) for p in moved.nonzero()[0]]


def _proxies(
    x: NDArray[np.float64], frame: pd.DataFrame, wanted: Sequence[str], moves: dict[str, list[int]]
) -> list[Proxy]:
    """Learned on one half of the tuning people, tried on the other; only what is more than chance."""
    X = pd.DataFrame(x)
    half = np.random.default_rng(0).permutation(len(X)) < len(X) // 2
    found = []
    for name in wanted:
        column = infer(frame[name], name, sensitive=True)
        attribute = Schema((column,), "", (), (0, 1), see_sensitive=True).apply(frame)[name].reset_index(drop=True)
        if not teaches(attribute[half]):
            continue
        others = [p for p in range(X.shape[1]) if p not in moves.get(name, [])]
        one = learn_proxy(name, X[half], attribute[half], others, X[~half], attribute[~half])
        if one.surely:
            found.append(one)
    return found


def _domain(x: NDArray[np.float64], moves: dict[str, list[int]]) -> Box:
    """The range of each feature; a feature of two values is one of them; the indicators of one column are one-hot."""
    low, high = x.min(0), x.max(0)
    blocks, binary = [], []
    for j in range(x.shape[1]):
        if len(np.unique(x[:, j])) == 2:
            binary.append(j)
    for places in moves.values():
        own = [p for p in places if sum(p in other for other in moves.values()) == 1]
        one_hot = len(own) > 1 and len(own) == len(places) and np.isin(x[:, own], (0.0, 1.0)).all()
        if one_hot and (x[:, own].sum(1) == 1).all():
            blocks.append(own)
            low[own], high[own] = 0.0, 1.0
    held = {p for block in blocks for p in block}
    return Box(low, high, blocks=blocks, binary=[j for j in binary if j not in held])
