"""BuDRO (Vargo, Zhang, Yurochkin and Sun, ICLR 2021): gradient boosting against the worst distribution nearby.

At every round an adversary moves the training labels to other training rows: max over couplings of the mean loss of
(x_j, y_i), with a mean transport cost d_X(x_i, x_j) of at most eps. Its dual is one number eta, and each person i sends
its label to t(i) = argmax_j loss(f(x_j), y_i) - eta * d_X(x_i, x_j). The next tree follows the gradient there. Trees
never need a derivative in x, as the adversary only chooses among rows.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.ensembles.boosting import lightgbm
from evenhand.ensembles.losses import Loss
from evenhand.ensembles.read import read_ensemble
from evenhand.ensembles.trees import TreeEnsemble
from evenhand.estimators.base import parameters
from evenhand.estimators.boosting import Array, BoostingClassifier, Given, Metric, noise
from evenhand.search.geometry import exact_sigma

AT_ONCE = 2048  # rows whose neighbours are looked for together
PRICED_ON = 4000  # rows that eta is found on


@parameters()
class BuDROClassifier(BoostingClassifier):
    """The published fair boosting, to compare with ``SenSeIBoostingClassifier``.

    eps: the adversary's budget, the mean d_X by which labels may be moved. neighbours: to how many of the most similar
    rows each label may go; support: among so many rows, drawn at random (the paper solves over all pairs of rows).
    Classes count equally. sample_weight counts rows: its size matters beside l2, so let weights have mean one. Needs
    the extra ``trees`` to fit, not to predict.
    """

    fair_metric: Metric = field(default=None, kw_only=False)
    eps: float = field(default=0.1, kw_only=False)
    bounds: Any = field(default="data", kw_only=False)
    random_state: Any = field(default=None, kw_only=False)
    trees: int = 100
    leaves: int = 16
    learning_rate: float = 0.1
    neighbours: int = 50
    support: int = 4000
    l2: float = 1.0

    def _fit(self, given: Given, loss: Loss, y: Array, weight: Array) -> TreeEnsemble:
        x, seed = given.x, self._prepare(given)
        lgb = lightgbm()
        near, cost = self._neighbours(x, seed)
        settings = {
            "objective": "none", "num_class": y.shape[1], "learning_rate": self.learning_rate,
            "num_leaves": self.leaves, "lambda_l2": self.l2, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 1.0,
            "num_threads": 1, "deterministic": True, "force_col_wise": True, "verbose": -1,
        }  # fmt: skip
        data = lgb.Dataset(x, label=np.zeros(len(x)), params=settings)
        booster, few = lgb.Booster(settings, data), np.argsort(noise(x, seed + 1)[:, 0])[:PRICED_ON]

        history = list[dict[str, float]]()

        def objective(scores: Array, _: Any) -> tuple[Array, Array]:
            h = np.asarray(scores, dtype=np.float64).reshape(len(x), y.shape[1])
            losses = self._moved(loss, h, y, near)
            eta = price_of(losses[few], cost[few], weight[few], self.eps)
            history.append({"step": len(history), "loss": float(np.average(losses[:, 0], weights=weight)), "lam": eta})
            to = near[np.arange(len(x)), (losses - eta * cost).argmax(1)]  # t(i)
            _, gradient, curvature = loss(h[to], y)
            g, c = np.zeros_like(h), np.full_like(h, 1e-9)
            np.add.at(g, to, gradient * weight[:, None])
            np.add.at(c, to, curvature * weight[:, None])
            return (g[:, 0], c[:, 0]) if h.shape[1] == 1 else (g, c)

        for _ in range(self.trees):
            booster.update(fobj=objective)
        ensemble = read_ensemble(booster)
        assert ensemble is not None
        self.n_iter_ = self.trees
        self.history_ = pd.DataFrame(history, dtype=np.float64)
        return ensemble

    @staticmethod
    def _moved(loss: Loss, h: Array, y: Array, near: NDArray[np.int64]) -> Array:
        """loss(f(x_j), y_i) for each row i and its neighbours j: (n, neighbours)."""
        labels = np.unique(y, axis=0)
        found = np.empty(near.shape)
        for label in labels:
            own = (y == label).all(1)
            found[own] = loss(h, np.broadcast_to(label, h.shape))[0][near[own]]
        return found

    def _neighbours(self, x: Array, seed: int) -> tuple[NDArray[np.int64], Array]:
        """The most similar rows of the support, each row itself first, and their d_X."""
        known = np.where(np.isnan(x), 0.0, x)
        values, vectors = np.linalg.eigh(exact_sigma(self.fair_metric_)[0].numpy())
        z = known @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        support = np.argsort(noise(x, seed)[:, 0], kind="stable")[: self.support]
        k = min(self.neighbours, len(support))
        near, cost = np.empty((len(x), k + 1), np.int64), np.zeros((len(x), k + 1))
        near[:, 0] = np.arange(len(x))
        squares = (z[support] ** 2).sum(1)
        for start in range(0, len(x), AT_ONCE):
            part = z[start : start + AT_ONCE]
            d_x = np.maximum((part**2).sum(1)[:, None] + squares - 2 * part @ z[support].T, 0.0)
            closest = np.argpartition(d_x, k - 1, axis=1)[:, :k]
            near[start : start + len(part), 1:] = support[closest]
            cost[start : start + len(part), 1:] = np.take_along_axis(d_x, closest, 1)
        return near, cost


def price_of(gains: Array, cost: Array, weight: Array, eps: float) -> float:
    """eta >= 0 that minimises eta * eps + mean over rows of max_j (gains_ij - eta * cost_ij), by bisection on the
    slope; column 0 costs nothing."""
    share, rows = weight / weight.sum(), np.arange(len(gains))

    def spent(eta: float) -> float:
        return float(share @ cost[rows, (gains - eta * cost).argmax(1)])

    if spent(0.0) <= eps:
        return 0.0
    low, high = 0.0, 1.0
    while spent(high) > eps and high < 1e12:
        low, high = high, 4 * high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > eps else (low, middle)
    return high
