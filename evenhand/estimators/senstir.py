"""SenSTIR (Bower et al. 2021): rankings that treat similar items similarly.

The estimator, scores of rankings, and a task to try them on; the objective is in evenhand/objectives/senstir.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from scipy.stats import kendalltau
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from evenhand.estimators.base import mlp, parameters
from evenhand.estimators.checks import check_parameters
from evenhand.estimators.inputs import checked_bounds, data_bounds, learn_metric, names_of, tensor_of
from evenhand.fair_metrics.metric import FairMetric
from evenhand.frames import check_labels, checked_table, numbers, plain_labels
from evenhand.objectives.senstir import SenSTIR
from evenhand.output_distances import squared_error
from evenhand.regularizer import FairRegularizer, gradient_rule
from evenhand.search.worst_cases import Search
from evenhand.training.loop import train

__all__ = ["Items", "SenSTIRRanker", "ndcg", "rank_consistency", "synthetic_ranking"]


def ndcg(relevance: ArrayLike, scores: ArrayLike, query: ArrayLike, *, k: int | None = None) -> float:
    """Mean NDCG over the queries that have a relevant item: gain 2^relevance - 1, discount 1 / log2(1 + rank).

    >>> ndcg([1, 0], [0.2, 0.9], [7, 7])
    0.6309297535714575
    """
    values, s, r = [], numbers(scores, "scores"), numbers(relevance, "relevance")
    for rows in _queries(query, len(s)):
        gain = np.exp2(r[rows]) - 1
        discount = 1 / np.log2(2 + np.arange(len(rows)))
        discount[len(rows) if k is None else k :] = 0
        ideal = np.sort(gain)[::-1] @ discount
        if ideal > 0:
            values.append(gain[np.argsort(-s[rows], kind="stable")] @ discount / ideal)
    if not values:
        raise ValueError("no query has an item of positive relevance: NDCG is not defined")
    return float(np.mean(values))


def rank_consistency(scores: ArrayLike, scores_other: ArrayLike, query: ArrayLike) -> float:
    """Mean over the queries of Kendall's tau between two rankings of their items, 1 for equal rankings.

    >>> round(rank_consistency([3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [0, 0, 0]), 6)
    0.333333
    """
    a, b = numbers(scores, "scores"), numbers(scores_other, "scores_other")
    values = [kendalltau(a[rows], b[rows]).statistic for rows in _queries(query, len(a)) if len(rows) > 1]
    if not values or np.isnan(values).any():
        raise ValueError("rank consistency needs queries of two items or more whose scores are not all equal")
    return float(np.mean(values))


@parameters()
class SenSTIRRanker(BaseEstimator):  # type: ignore[misc]
    """A scoring model for ranking that treats similar items similarly.

    Parameters as for ``SenSeIClassifier``; rho = 0 is plain training. ``fit(X, y, query)`` takes one row for each
    item, its relevance, and the query that it belongs to. Fitted: ``module_`` gives a score (n, 1).
    """

    fair_metric: FairMetric | Callable[[Any], FairMetric] | None = field(default=None, kw_only=False)
    hidden: tuple[int, ...] = field(default=(), kw_only=False)
    rho: float = field(default=1.0, kw_only=False)
    eps: float = field(default=0.01, kw_only=False)
    bounds: Any = field(default="data", kw_only=False)
    random_state: Any = field(default=None, kw_only=False)
    search: Search | None = None
    lam: float = 1.0
    samples: int = 16
    steps: int = 1000
    batch_size: int = 32
    lr: float = 1e-2
    device: str = "cpu"
    progress: bool = False

    def fit(self, X: Any, y: Any, query: Any) -> Self:
        """Train on items X (n, d), their relevance (n,) and their queries (n,); ``batch_size`` counts queries."""
        check_parameters(self)
        X, y = checked_table(X), plain_labels(y)
        check_labels(y, numeric=True)
        values, relevance = validate_data(self, X, y, dtype=np.float32, y_numeric=True)
        X, relevance = X if hasattr(X, "columns") else values, relevance.astype(np.float64)
        if relevance.min() < 0:
            raise ValueError("relevance must be zero or positive: NDCG has the gain 2^relevance - 1")
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        x, target = (part.to(self.device) for part in pad(values, relevance, query))
        items = tensor_of(values)
        self.fair_metric_ = learn_metric(self.fair_metric, X, values.shape[1]).to(self.device, torch.float32)
        self.bounds_ = checked_bounds(self.bounds, items, names_of(self), lambda: data_bounds(items, self.fair_metric_))
        self.module_ = mlp(values.shape[1], self.hidden, 1, torch.Generator().manual_seed(seed)).to(self.device)
        regularizer = FairRegularizer(
            self.fair_metric_,
            self.eps,
            self.bounds_,
            squared_error,
            self.search,
            gradient_rule(self.lr * self.rho),
            self.lam,
            torch.Generator(self.device).manual_seed(seed + 1),
        )
        generator = torch.Generator(self.device).manual_seed(seed + 2)
        history = train(
            self.module_,
            SenSTIR(regularizer, self.rho, self.samples, generator).to(self.device),
            x,
            target,
            steps=self.steps,
            batch_size=self.batch_size,
            lr=self.lr,
            balanced=False,
            generator=generator,
            progress=self.progress,
        )
        self.module_.eval()
        self.history_ = pd.DataFrame(history.records)
        return self

    @torch.no_grad()
    def predict(self, X: Any) -> np.ndarray:
        """The score of each item; a larger score ranks before."""
        check_is_fitted(self, "module_")
        x = tensor_of(validate_data(self, checked_table(X), dtype=np.float32, reset=False), self.device)
        scores: np.ndarray = self.module_(x)[:, 0].cpu().double().numpy()
        return scores

    def score(self, X: Any, y: Any, query: Any) -> float:
        """NDCG."""
        return ndcg(y, self.predict(X), query)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def pad(X: np.ndarray, relevance: np.ndarray, query: Any) -> tuple[Tensor, Tensor]:
    """Items grouped by query: (queries, items, d) and the relevance (queries, items), NaN where there is no item."""
    groups = list(_queries(query, len(X)))
    longest = max(len(rows) for rows in groups)
    x = torch.zeros(len(groups), longest, X.shape[1])
    y = torch.full((len(groups), longest), float("nan"))
    for i, rows in enumerate(groups):
        x[i, : len(rows)] = torch.as_tensor(X[rows])
        y[i, : len(rows)] = torch.as_tensor(relevance[rows], dtype=torch.float32)
    return x, y


def _queries(query: Any, n: int) -> Iterator[np.ndarray]:
    """The rows of each query."""
    ids = np.asarray(query)
    if ids.shape != (n,) or n == 0:
        raise ValueError(f"query must name the query of each of the {n} items; got shape {ids.shape}")
    order = np.argsort(ids, kind="stable")
    yield from np.split(order, np.flatnonzero(ids[order][1:] != ids[order][:-1]) + 1)


class Items(NamedTuple):
    """Items of a ranking task: features, relevance 0 to 4, and the query of each."""

    X: pd.DataFrame
    y: np.ndarray
    query: np.ndarray


def synthetic_ranking(n_queries: int = 200, n_items: int = 10, seed: int = 0, *, bias: float = 0.7) -> Items:
    """A task whose relevance labels favour a group: merit = skill + experience decides, plus ``bias`` for group 1.

    Columns: skill, experience, proxy (a shifted copy of the group with noise) and group (0 or 1).
    """
    rng = np.random.default_rng(seed)
    n = n_queries * n_items
    skill, experience, group = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 2, n)
    proxy = group - 0.5 + 0.5 * rng.normal(size=n)
    merit = skill + experience + bias * (2 * group - 1) + 0.3 * rng.normal(size=n)
    y = np.digitize(merit, [-1.5, 0.0, 1.0, 2.0])
    X = pd.DataFrame({"skill": skill, "experience": experience, "proxy": proxy, "group": group.astype(float)})
    return Items(X, y, np.repeat(np.arange(n_queries), n_items))
