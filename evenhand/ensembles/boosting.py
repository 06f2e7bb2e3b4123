"""The boosting loop: LightGBM chooses the splits, the leaves are fitted to the soft splits, versions are replaced."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.ensembles.read import Tree, join_trees, lightgbm_tree
from evenhand.ensembles.trees import TreeEnsemble

Array = NDArray[np.float64]
Loss = Callable[[Array, Array], tuple[Array, Array, Array]]  # h (n, K), y (n, K) -> loss (n,), gradient, curvature


def balanced_log_loss(h: Array, y: Array) -> tuple[Array, Array, Array]:
    """Log loss of log-odds (n, 1), or of K logits against one-hot labels."""
    if h.shape[1] == 1:
        p = 1 / (1 + np.exp(-np.clip(h, -500, 500)))
        loss = np.logaddexp(0, np.where(y == 1, -h, h))[:, 0]
        return loss, p - y, p * (1 - p)
    e = np.exp(h - h.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    return -np.log(np.maximum((p * y).sum(1), 1e-300)), p - y, p * (1 - p)


def squared_loss(h: Array, y: Array) -> tuple[Array, Array, Array]:
    """Half the squared error."""
    return 0.5 * ((h - y) ** 2).sum(1), h - y, np.ones_like(h)


class _Slope(NamedTuple):
    """The objective at the present scores: its gradient, the loss's curvature, and each row's worst version with the
    curvature of what ties the two."""

    gradient: Array  # (rows and versions, K)
    curvature: Array
    worst: NDArray[np.int64]  # (n,) or (0,)
    strength: Array
    loss: float
    d_y: float  # mean square of the worst difference, over the variance of the scores


class Boosted(NamedTuple):
    """The ensemble, and before each round: loss, and the worst difference relative to the scores' variance."""

    ensemble: TreeEnsemble
    history: list[dict[str, float]]


@dataclass(frozen=True)
class Boosting:
    """Settings of the loop; see ``SenSeIBoostingClassifier``."""

    trees: int
    leaves: int
    learning_rate: float
    rho: float
    l2: float
    versions: int
    search_every: int
    monotone: Any = None
    patience: int | None = None
    progress: bool = False

    def fit(
        self,
        x: Array,
        loss: Loss,
        y: Array,
        weight: Array,
        version: Callable[[Array, int], Array],
        width: Array,
        two_values: dict[int, tuple[float, float]],
        validation: tuple[Array, Array, Array] | None = None,
    ) -> Boosted:
        """version(x, number): one version of each row, another for each number. Stopped by the keyboard it returns the
        trees that there are."""
        lgb = _lightgbm()
        n, k, m = len(x), y.shape[1], self.versions if self.rho > 0 else 0
        number, rows = 0, [x]
        for _ in range(m):
            rows.append(version(x, number))
            number += 1
        settings, everybody = self._parameters(k, x.shape[1]), np.vstack(rows)
        first = lgb.Dataset(everybody, label=np.zeros(len(everybody)), free_raw_data=False, params=settings)
        booster, began = lgb.Booster(settings, first), 0
        base = _start(loss, y, weight)
        h = np.repeat(base[None], n * (1 + m), 0)
        parts: list[Tree] = []
        ensemble = join_trees([], [], base, x.shape[1])
        best, best_round, h_val = (
            np.inf,
            0,
            None if validation is None else np.repeat(base[None], len(validation[0]), 0),
        )
        rounds, history = 0, list[dict[str, float]]()
        try:
            for round_ in range(self.trees):
                if m and round_ and round_ % self.search_every == 0:
                    whole = join_trees(parts, [i % k for i in range(len(parts))], base, x.shape[1])
                    soft = whole.softened(width, two_values)
                    for v in range(m):
                        other = version(x, number)
                        number += 1
                        h_other = soft(other)
                        now = h[(1 + v) * n : (2 + v) * n]
                        worse = ((h_other - h[:n]) ** 2).sum(1) >= ((now - h[:n]) ** 2).sum(1)
                        rows[1 + v] = np.where(worse[:, None], other, rows[1 + v])
                        now[worse] = h_other[worse]
                    everybody = np.vstack(rows)
                    labels = np.zeros(len(everybody))  # LightGBM wants some; the gradient is ours
                    data = lgb.Dataset(everybody, label=labels, reference=first, params=settings)
                    booster, began = lgb.Booster(settings, data), round_
                slope = self._gradient(h, n, m, loss, y, weight)
                history.append({"step": round_, "loss": slope.loss, "d_y": slope.d_y})
                booster.update(fobj=_given(slope))
                new = []
                for c, info in enumerate(
                    booster.dump_model(num_iteration=1, start_iteration=round_ - began)["tree_info"]
                ):
                    tree = lightgbm_tree(info)
                    one = join_trees([tree], [0], np.zeros(1), x.shape[1]).softened(width, two_values)
                    fitted = self._leaves(one, everybody, slope, c)
                    if self.monotone is None:
                        one = replace(one, value=fitted)
                    new.append(tree._replace(value=one.value))
                    h[:, c : c + 1] += one(everybody)
                    if h_val is not None and validation is not None:
                        h_val[:, c : c + 1] += one(validation[0])
                parts += new
                rounds = round_ + 1
                if h_val is not None and validation is not None:
                    value = float(np.average(loss(h_val, validation[1])[0], weights=validation[2]))
                    if value < best:
                        best, best_round = value, rounds
                    if self.patience is not None and rounds - best_round >= self.patience:
                        break
                if self.progress and rounds % 25 == 0:
                    print(f"boosting: {rounds} of {self.trees} trees", file=sys.stderr)
        except KeyboardInterrupt:
            if not parts:
                raise
        if self.patience is not None and validation is not None:
            parts = parts[: best_round * k]
        ensemble = join_trees(parts, [i % k for i in range(len(parts))], base, x.shape[1])
        return Boosted(ensemble.softened(width, two_values), history)

    def _gradient(self, h: Array, n: int, m: int, loss: Loss, y: Array, weight: Array) -> _Slope:
        """Of weight * (loss + rho * max_v |h(x) - h(x_v)|^2 / V) with V the variance of h.

        The variance is differentiated too: shrinking all scores changes the penalty by nothing. While V < 1, at the
        start, the penalty is faded in, V * |.|^2, or it would keep scores from ever growing apart.
        """
        losses, slope, bend = loss(h[:n], y)
        gradient, curvature = np.zeros_like(h), np.zeros_like(h)
        gradient[:n], curvature[:n] = slope, np.maximum(bend, 1e-9)
        worst, strength, d_y = np.zeros(0, np.int64), 0.0, 0.0
        if m:
            centred = h[:n] - np.average(h[:n], axis=0, weights=weight)
            variance = float(np.average((centred**2).sum(1), weights=weight))
            apart = h[None, :n] - h[n:].reshape(m, n, -1)
            squares = (apart**2).sum(2)
            each, largest = np.arange(n), squares.argmax(0)
            move = apart[largest, each]
            strength = 2 * self.rho * min(variance, 1.0) / max(variance, 1.0)
            d_y = float(np.average(squares[largest, each], weights=weight)) / max(variance, 1e-300)
            relative = d_y if variance > 1 else 0.0
            gradient[:n] += strength * (move - relative * centred)
            worst = n + largest * n + each
            gradient[worst] -= strength * move
        every = np.tile(weight, 1 + m)[:, None]
        mean = float(np.average(losses, weights=weight))
        return _Slope(gradient * every, curvature * every, worst, strength * weight[: len(worst)], mean, d_y)

    def _leaves(self, tree: TreeEnsemble, x: Array, slope: _Slope, c: int) -> Array:
        """Newton's step of every leaf for the soft splits, times the learning rate.

        A leaf of weight w(x) that rises by v changes h(x) - h(x') by (w(x) - w(x')) v only: leaves which hold a person
        and the version alike are not held back by the penalty. Twice its curvature, because leaves move together.
        """
        from evenhand.ensembles.kernels import leaf_sums

        g, bend = np.zeros(len(tree.feature)), np.zeros(len(tree.feature))
        gradient, curvature = np.ascontiguousarray(slope.gradient[:, c]), np.ascontiguousarray(slope.curvature[:, c])
        tied = 2 * slope.strength
        leaf_sums(  # type: ignore[no-untyped-call]
            x, tree.arrays(), tree.missing_left, gradient, curvature, slope.worst, tied, g, bend
        )
        return np.where(tree.feature < 0, -self.learning_rate * g / (bend + self.l2), 0.0)

    def _parameters(self, k: int, d: int) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "objective": "none",
            "num_class": k if k > 1 else 1,
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "lambda_l2": self.l2,
            "min_data_in_leaf": 1,
            "min_data_in_bin": 1,
            "min_sum_hessian_in_leaf": 1.0,
            "num_threads": 1,
            "deterministic": True,
            "force_col_wise": True,
            "feature_pre_filter": False,
            "verbose": -1,
        }
        if self.monotone is not None:
            signs = [int(v) for v in self.monotone]
            if len(signs) != d or any(v not in (-1, 0, 1) for v in signs):
                raise ValueError(f"monotone must hold -1, 0 or 1 for each of the {d} columns; got {signs}")
            settings["monotone_constraints"] = signs
        return settings


def _given(slope: _Slope) -> Any:
    """LightGBM's own scores are those of hard splits: it is given the gradient at ours, and to choose splits by half
    the penalty's curvature, as it does not see which rows belong together."""
    gradient, curvature = slope.gradient, slope.curvature + 1e-9
    if len(slope.worst):
        curvature[: len(slope.worst)] += 0.5 * slope.strength[:, None]
        curvature[slope.worst] += 0.5 * slope.strength[:, None]
    one = gradient.shape[1] == 1
    return lambda _scores, _data: (gradient[:, 0], curvature[:, 0]) if one else (gradient, curvature)


def _start(loss: Loss, y: Array, weight: Array) -> Array:
    """The best constant: log-odds or log-shares of the labels, or their mean."""
    mean = np.average(y, axis=0, weights=weight)
    if loss is squared_loss:
        return np.asarray(mean, dtype=np.float64)
    share = np.clip(mean, 1e-6, 1 - 1e-6)
    return np.log(share / (1 - share)) if y.shape[1] == 1 else np.log(share)


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise ModuleNotFoundError("boosted trees are fitted by LightGBM: pip install 'evenhand[trees]'") from error
    return lightgbm
