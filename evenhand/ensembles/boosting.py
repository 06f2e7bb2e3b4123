"""The boosting loop: LightGBM chooses the splits, the leaves are fitted to the soft splits, versions are replaced."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.ensembles.line import Line
from evenhand.ensembles.losses import Loss, squared_loss
from evenhand.ensembles.read import Tree, join_trees, lightgbm_tree
from evenhand.ensembles.trees import TreeEnsemble

Array = NDArray[np.float64]
Score = Callable[[Array], Array]  # (n, d) -> (n, K)
FIRST_SEARCH = 5  # rounds, after which the scores say something
FADE = 0.001  # variance of the scores above which only differences relative to it count


class Columns(NamedTuple):
    """Rows turned on their side: one column after the other, and in which of them values are missing."""

    values: Array  # (d, n)
    holes: NDArray[np.bool_]  # (d,)

    @classmethod
    def of(cls, x: Array) -> Columns:
        values = np.ascontiguousarray(x.T)
        return cls(values, np.asarray(np.isnan(values).any(1)))


class Pairs(NamedTuple):
    """Rows, by number, and a version of each with its d_X."""

    row: NDArray[np.int64]  # (m,)
    other: Array  # (m, d)
    cost: Array  # (m,)


class Slope(NamedTuple):
    """The objective at the present scores: its gradient and the loss's curvature for rows and versions, and how
    strongly each pair is tied (zero where the version is too dear)."""

    gradient: Array  # (n + m, K)
    curvature: Array
    row: NDArray[np.int64]  # (m,)
    strength: Array  # (m,)
    loss: float
    d_y: float  # mean square of the differences that count, over the variance of the scores
    lam: float


class Boosted(NamedTuple):
    """The ensemble, and before each round: loss, the worst difference relative to the scores' variance, lam."""

    ensemble: TreeEnsemble
    history: list[dict[str, float]]
    rounds: int


@dataclass(frozen=True)
class Boosting:
    """Settings of the loop; see ``SenSeIBoostingClassifier``."""

    trees: int
    leaves: int
    learning_rate: float
    rho: float
    eps: float
    l2: float
    versions: int
    search_every: int
    monotone: Any = None
    worth: Array | None = None  # (d,) by what the gain of a split on each column is multiplied
    patience: int | None = None
    progress: bool = False

    def fit(
        self,
        x: Array,
        loss: Loss,
        y: Array,
        weight: Array,
        version: Callable[[Array, int, Score], tuple[NDArray[np.int64], Array]],
        distance: Callable[[Array, Array], Array],
        width: Array,
        two_values: dict[int, tuple[float, float]],
        validation: tuple[Array, Array, Array] | None = None,
        line: Line | None = None,
    ) -> Boosted:
        """version(x, number, score): some rows and a version of each, others for each number; distance: d_X,
        (n, d), (n, d) -> (n,); line: what the trees start from.
        Stopped by the keyboard it returns the trees that there are."""
        lgb = lightgbm()
        n, d, k = len(x), x.shape[1], y.shape[1]
        settings, base = self._parameters(k, d), best_constant(loss, y, weight) if line is None else line.base
        parts, output, straight = ([], [], np.zeros(0)) if line is None else line.stumps()
        soft = [_one(tree, d).ramped(np.array([half])) for tree, half in zip(parts, straight)]
        first = lgb.Dataset(x, label=np.zeros(n), free_raw_data=False, params=settings)
        booster, began, columns, number = lgb.Booster(settings, first), 0, Columns.of(x), 0
        given = len(parts)
        pairs, h = Pairs(np.zeros(0, np.int64), x[:0], np.zeros(0)), base + _sum_of(soft, output, columns, k)
        history = list[dict[str, float]]()
        best, best_round, rounds = np.inf, 0, 0
        seen = None if validation is None else Columns.of(validation[0])
        h_val = None if validation is None else base + _sum_of(soft, output, Columns.of(validation[0]), k)
        searches = {FIRST_SEARCH, *range(self.search_every, self.trees, self.search_every)} if self.rho > 0 else set()

        def score(rows: Array) -> Array:
            return base + _sum_of(soft, output, Columns.of(rows), k)

        try:
            for round_ in range(self.trees):
                if round_ in searches:
                    for _ in range(self.versions):
                        rows, tried = version(x, number, score)
                        new, number = Pairs(rows, tried, distance(x[rows], tried)), number + 1
                        pairs, h = self._worse(pairs, h, weight, new, score(tried))
                    everybody = np.vstack([x, pairs.other])
                    columns = Columns.of(everybody)
                    labels = np.zeros(len(everybody))  # LightGBM wants some; the gradient is ours
                    data = lgb.Dataset(everybody, label=labels, reference=first, params=settings)
                    booster, began = lgb.Booster(settings, data), round_
                slope = self._gradient(h, loss, y, weight, pairs)
                history.append({"step": round_, "loss": slope.loss, "d_y": slope.d_y, "lam": slope.lam})
                booster.update(fobj=_given(slope))
                document = booster.dump_model(num_iteration=1, start_iteration=round_ - began)
                for c, info in enumerate(document["tree_info"]):
                    tree = lightgbm_tree(info)
                    one = _one(tree, d).softened(width, two_values)
                    shares = leaf_shares(one, columns)
                    if self.monotone is None:
                        one = replace(one, value=self._leaves(one, shares, slope, c))
                    h[:, c] += one.value[one.feature < 0] @ shares
                    if h_val is not None and seen is not None:
                        h_val[:, c] += one.value[one.feature < 0] @ leaf_shares(one, seen)
                    parts.append(tree._replace(value=one.value))
                    soft.append(one)
                    output.append(c)
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
            parts = parts[: given + rounds * k]
            if not rounds:
                raise
        if self.patience is not None and validation is not None:
            rounds = best_round
            parts = parts[: given + rounds * k]
        ensemble = join_trees(parts, output[: len(parts)], base, d).softened(width, two_values)
        return Boosted(ensemble.ramped(straight), history, rounds)

    def _worse(self, old: Pairs, h: Array, weight: Array, new: Pairs, h_new: Array) -> tuple[Pairs, Array]:
        """Of the old versions and the new ones the worst of each row; of the rows those that give most for the price,
        at most a quarter: the others are not what R is made of."""
        n = len(weight)
        row, other = np.append(old.row, new.row), np.vstack([old.other, new.other])
        cost, h_other = np.append(old.cost, new.cost), np.vstack([h[n:], h_new])
        squares = ((h[row] - h_other) ** 2).sum(1)
        lam = price(squares, cost, weight[row], self.eps, weight.sum())
        gain = squares - lam * cost
        order = np.lexsort((-gain, row))
        worst = order[np.append(True, np.diff(row[order]) > 0)]  # the first of each row
        worth = squares[worst] / np.maximum(cost[worst], self.eps)
        kept = np.sort(worst[np.argsort(-worth, kind="stable")[: max(n // 4, 1)]])
        return Pairs(row[kept], other[kept], cost[kept]), np.vstack([h[:n], h_other[kept]])

    def _gradient(self, h: Array, loss: Loss, y: Array, weight: Array, pairs: Pairs) -> Slope:
        """Of weight * (loss + rho * R / V): R = sup of the mean |h(x) - h(x')|^2 over versions x' that cost eps on the
        mean, which is reached by those with |h(x) - h(x')|^2 > lam d_X, and V the variance of h.

        The variance is differentiated too: shrinking all scores changes the penalty by nothing. While V < FADE, at the
        start, the penalty is faded in, V * |.|^2, or it would keep scores from ever growing apart.
        """
        n, row, cost = len(y), pairs.row, pairs.cost
        losses, slope, bend = loss(h[:n], y)
        gradient, curvature, strength = np.zeros_like(h), np.zeros_like(h), np.zeros(len(row))
        gradient[:n], curvature[:n] = slope * weight[:, None], np.maximum(bend, 1e-9) * weight[:, None]
        d_y, lam = 0.0, 0.0
        if len(row):
            centred = h[:n] - np.average(h[:n], axis=0, weights=weight)
            variance = float(np.average((centred**2).sum(1), weights=weight))
            move = h[row] - h[n:]
            squares = (move**2).sum(1)
            lam = price(squares, cost, weight[row], self.eps, weight.sum())
            counts = (squares > lam * cost) * weight[row]
            strength = 2 * self.rho * min(variance / FADE, 1.0) / max(variance, FADE) * counts
            d_y = float((squares * counts).sum() / weight.sum()) / max(variance, 1e-300)
            gradient[n:] = -strength[:, None] * move
            gradient[row] += strength[:, None] * move
            if variance > FADE:
                gradient[:n] -= 2 * self.rho / variance * d_y * centred * weight[:, None]
        return Slope(gradient, curvature, row, strength, float(np.average(losses, weights=weight)), d_y, lam)

    def _leaves(self, tree: TreeEnsemble, shares: Array, slope: Slope, c: int) -> Array:
        """Newton's step of every leaf for the soft splits, times the learning rate.

        A leaf of weight w(x) that rises by v changes h(x) - h(x') by (w(x) - w(x')) v only: leaves which hold a person
        and the version alike are not held back by the penalty. Twice its curvature, because leaves move together.
        """
        g, bend = shares @ slope.gradient[:, c], shares @ slope.curvature[:, c]
        tied = np.flatnonzero(slope.strength)
        if len(tied):
            n = shares.shape[1] - len(slope.row)
            apart = shares[:, slope.row[tied]] - shares[:, n + tied]
            bend += apart**2 @ (2 * slope.strength[tied])
        value = np.zeros(len(tree.feature))
        value[tree.feature < 0] = -self.learning_rate * g / (bend + self.l2)
        return value

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
            "force_row_wise": True,  # several times faster on one-hot columns; left to itself LightGBM tries both
            "feature_pre_filter": False,
            "verbose": -1,
        }
        if self.monotone is not None:
            signs = list(self.monotone) if np.iterable(self.monotone) else []
            if len(signs) != d or any(isinstance(v, str) or v not in (-1, 0, 1) for v in signs):
                raise ValueError(
                    f"monotone must hold -1, 0 or 1 for each of the {d} columns; got {len(signs)} values, "
                    f"{sum(isinstance(v, str) or v not in (-1, 0, 1) for v in signs)} of them others"
                )
            settings["monotone_constraints"] = [int(v) for v in signs]
        if self.worth is not None:
            settings["feature_contri"] = [float(v) for v in self.worth]
        return settings


def price(squares: Array, cost: Array, weight: Array, eps: float, total: float) -> float:
    """lam: moving everybody with squares > lam * cost costs eps on the (weighted) mean, or moving the next one would
    cost more. The most for the price come first, as in a knapsack that may be filled with parts of people."""
    worth = np.where(cost > 0, squares / np.where(cost > 0, cost, 1.0), np.inf)
    order = np.argsort(-worth, kind="stable")
    spent = np.cumsum((weight * cost)[order]) / total
    beyond = int(np.searchsorted(spent, eps * (1 + 1e-9), side="right"))
    return 0.0 if beyond == len(order) else float(worth[order[beyond]])


def leaf_shares(tree: TreeEnsemble, columns: Columns) -> Array:
    """How much of each row every leaf of a single tree holds: (leaves, n), leaves in their order.

    Node by node over all rows at once, which is several times faster than a walk for each row."""
    leaves = np.flatnonzero(tree.feature < 0)
    first = np.zeros(len(tree.feature), np.int64)  # in which line a node keeps its weights: its leftmost leaf's
    first[leaves] = np.arange(len(leaves))
    inner = np.flatnonzero(tree.feature >= 0).tolist()
    for node in reversed(inner):  # parents come before their children
        first[node] = first[tree.left[node]]
    shares = np.empty((len(leaves), columns.values.shape[1]))
    shares[first[0]] = 1.0
    for node in inner:
        j, t, w, here = tree.feature[node], tree.threshold[node], tree.width[node], shares[first[node]]
        v, right = columns.values[j], shares[first[tree.right[node]]]
        if w > 0:
            np.subtract(v, t - w, out=right)
            right *= 1 / (2 * w)
            np.maximum(right, 0.0, out=right)
            np.minimum(right, 1.0, out=right)
        else:
            np.greater(v, t, out=right)
        if columns.holes[j]:
            right[np.isnan(v)] = 0.0 if tree.missing_left[node] else 1.0
        right *= here
        here -= right
    return shares


def _sum_of(trees: list[TreeEnsemble], output: list[int], columns: Columns, k: int) -> Array:
    """The trees' sum: (n, K)."""
    total = np.zeros((columns.values.shape[1], k))
    for c, tree in zip(output, trees):
        total[:, c] += tree.value[tree.feature < 0] @ leaf_shares(tree, columns)
    return total


def _one(tree: Tree, d: int) -> TreeEnsemble:
    return join_trees([tree], [0], np.zeros(1), d)


def _given(slope: Slope) -> Any:
    """LightGBM's own scores are those of hard splits: it is given the gradient at ours, and to choose splits by half
    the penalty's curvature, as it does not see which rows belong together."""
    gradient, curvature = slope.gradient, slope.curvature + 1e-9
    n = len(curvature) - len(slope.row)
    curvature[slope.row] += 0.5 * slope.strength[:, None]
    curvature[n:] += 0.5 * slope.strength[:, None]
    one = gradient.shape[1] == 1
    return lambda _scores, _data: (gradient[:, 0], curvature[:, 0]) if one else (gradient, curvature)


def best_constant(loss: Loss, y: Array, weight: Array) -> Array:
    """The best constant: log-odds or log-shares of the labels, or their mean."""
    mean = np.average(y, axis=0, weights=weight)
    if loss is squared_loss:
        return np.asarray(mean, dtype=np.float64)
    share = np.clip(mean, 1e-6, 1 - 1e-6)
    return np.log(share / (1 - share)) if y.shape[1] == 1 else np.log(share)


def lightgbm() -> Any:
    """The package, or how to get it."""
    try:
        import lightgbm as package
    except ImportError as error:
        raise ModuleNotFoundError("boosted trees are fitted by LightGBM: pip install 'evenhand[trees]'") from error
    return package
