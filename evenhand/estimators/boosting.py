"""SenSeI by gradient boosting: loss + rho * the worst case, for trees whose splits are soft.

A boosted model jumps at its thresholds, so that two people who are nearly the same may get very different scores. Here
each split is a ramp as wide as a move of ``smooth`` in the fair metric, and each row is trained together with the worst
version of itself that was found: the functional gradient of rho * (h(x) - h(x'))^2 flows to both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.domain import Box
from evenhand.ensembles.boosting import Boosting, Score, best_constant
from evenhand.ensembles.line import Line, fair_line, usual_range
from evenhand.ensembles.losses import Loss, balanced_log_loss, squared_loss
from evenhand.ensembles.trees import TreeEnsemble
from evenhand.estimators.checks import check_parameters
from evenhand.estimators.inputs import (
    checked_bounds,
    checked_sensitive,
    checked_weight,
    learn_metric,
    names_of,
    select_rows,
    tensor_of,
)
from evenhand.fair_metrics.metric import FairMetric
from evenhand.frames import check_labels, checked_table, plain_labels
from evenhand.search.geometry import exact_sigma

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
TRIED = (0.2, 0.4, 0.4)  # of the rows, for the three kinds of versions: only a quarter of the rows is kept
FAR = 0.5  # of the moves along the directions go anywhere among possible people
STEEP_COLUMNS = 8  # so many slopes are taken at a search
MANY = 5000  # rows, beyond which ramps get shorter: more data show sharper edges
Metric = FairMetric | Callable[..., FairMetric] | None


class Given(NamedTuple):
    """What a fit is given of the rows whose weight is not zero."""

    X: Any  # as it is, with its names
    x: Array
    target: Any
    sample_weight: Array | None
    sensitive: Any

    @property
    def weight(self) -> Array:
        return np.ones(len(self.x)) if self.sample_weight is None else self.sample_weight


class BoostingEstimator(BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor share: the loop, the versions, the soft splits."""

    def __init__(
        self,
        fair_metric: Metric = None,
        rho: float = 2.0,
        eps: float = 0.01,
        bounds: Any = "data",
        random_state: Any = None,
        *,
        trees: int = 100,
        leaves: int = 16,
        learning_rate: float = 0.2,
        smooth: float | None = None,
        versions: int = 3,
        reach: float = 2.0,
        avoid: float = 8.0,
        linear: bool = True,
        search_every: int = 20,
        l2: float = 1.0,
        monotone: Any = None,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        progress: bool = False,
    ) -> None:
        self.fair_metric = fair_metric
        self.rho = rho
        self.eps = eps
        self.bounds = bounds
        self.random_state = random_state
        self.trees = trees
        self.leaves = leaves
        self.learning_rate = learning_rate
        self.smooth = smooth
        self.versions = versions
        self.reach = reach
        self.avoid = avoid
        self.linear = linear
        self.search_every = search_every
        self.l2 = l2
        self.monotone = monotone
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _fit(self, given: Given, loss: Loss, y: Array, weight: Array) -> TreeEnsemble:
        x = given.x
        if self.patience is not None and not 0 < self.validation_fraction < 1:
            raise ValueError("patience needs validation data; set validation_fraction, for example to 0.1")
        seed = self._prepare(given)
        boosting = Boosting(
            trees=self.trees,
            leaves=self.leaves,
            learning_rate=self.learning_rate,
            rho=self.rho,
            eps=self.eps,
            l2=self.l2,
            versions=self.versions,
            search_every=self.search_every,
            monotone=self.monotone,
            worth=self._worth(),
            patience=self.patience,
            progress=self.progress,
        )
        held = np.zeros(len(x), bool)
        if self.validation_fraction > 0:
            held = noise(x, seed)[:, 0] < self.validation_fraction
            if held.all() or not held.any():
                raise ValueError(f"validation_fraction={self.validation_fraction} leaves one part of the rows empty")
        known = np.where(np.isnan(x), 0.0, x)[~held]
        key = noise(known, seed)
        ensemble, history, rounds = boosting.fit(
            x[~held],
            loss,
            y[~held],
            weight[~held],
            lambda rows, number, score: self._versions(rows, key, number, seed + 7919 * number, score),
            self._distance,
            *self._soft(x, weight),
            validation=(x[held], y[held], weight[held]) if held.any() else None,
            line=self._line(x[~held], loss, y[~held], weight[~held]) if self.linear and self.monotone is None else None,
        )
        self.n_iter_ = rounds
        self.history_ = pd.DataFrame(history, dtype=np.float64)
        return ensemble

    def _prepare(self, given: Given) -> int:
        """Learns ``fair_metric_``, sets ``bounds_``; the seed of the fit."""
        x, known = given.x, (given.sensitive, given.sample_weight)
        self.fair_metric_ = learn_metric(self.fair_metric, given.X, x.shape[1], *known).to(dtype=torch.float64)
        box = checked_bounds(self.bounds, tensor_of(x), names_of(self), lambda: possible_people(x))
        self.bounds_ = Box.of(box, x.shape[1])  # which says that bounds are needed
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _soft(self, x: Array, weight: Array) -> tuple[Array, dict[int, tuple[float, float]]]:
        """Half the width of each column's ramps: a move that costs smooth^2, at most half of its usual range."""
        box: Box = self.bounds_
        low, high = usual_range(x, weight)
        smooth = self.smooth
        if smooth is None:
            smooth = 30 * self.eps**0.5 * min(1.0, max(MANY / len(x), 1 / 6))
        price = np.sqrt(np.maximum(exact_sigma(self.fair_metric_)[0].diagonal().numpy(), 1e-12))
        pairs = [j for j in (*box.binary, *(j for block in box.blocks for j in block)) if smooth > 0]
        two = {int(j): (float(box.low[j]), float(box.high[j])) for j in pairs}
        return np.minimum(smooth / price, (high - low) / 2), two

    def _line(self, x: Array, loss: Loss, y: Array, weight: Array) -> Line:
        """Where to start: within eps a score of slope w changes by up to eps * w' Sigma^+ w, and along the directions
        by their reach."""
        sigma, directions = (part.numpy() for part in exact_sigma(self.fair_metric_))
        along = directions * (self.reach * (np.nan_to_num(x) @ directions).std(0))
        worst = self.eps * np.linalg.pinv(sigma, hermitian=True) + along @ along.T
        base, worth = best_constant(loss, y, weight), self._worth()
        worth[self._numbers()] = 1.0  # the form sees what a line does along the directions
        return fair_line(x, loss, y, weight, base, worst, self.rho, self.l2, worth)

    def _worth(self) -> Array:
        """By what the gain of a split counts. (1 - s)^avoid for a column of categories, of which a unit step lies by s
        along the directions: versions see little of them, as hardly anybody possible lies on a direction. For numbers,
        which versions do move along them, the length of a unit step, (1 - s^2)^(1/2), to that power: a column that is
        nearly free itself can only be used in a difference with others, as the line does, not by thresholds."""
        box: Box = self.bounds_
        share = exact_sigma(self.fair_metric_)[1].norm(dim=1).numpy()
        worth, avoid = np.ones(len(share)), self.avoid if self.rho > 0 else 0.0
        discrete, numbers = [*box.binary, *(j for block in box.blocks for j in block)], self._numbers()
        worth[discrete] = np.maximum(1 - share[discrete], 1e-3) ** avoid
        worth[numbers] = np.maximum(1 - share[numbers] ** 2, 1e-6) ** (avoid / 2)
        return worth

    def _versions(self, x: Array, key: Array, number: int, seed: int, score: Score) -> tuple[Rows, Array]:
        """Some of the rows, and a version of each that is a possible person: by turns all numbers moved to where the
        score changes most for the price; another value of a single column, as others have it; and a move along the
        directions, by up to ``reach`` standard deviations or anywhere among possible people, with a small move of each
        number. What a row becomes depends on its values, of which ``key`` is a hash, and the seed only."""
        box: Box = self.bounds_
        kind = number % len(TRIED)
        drawn = noise(key, seed)[:, 0]
        rows = np.flatnonzero(drawn <= max(TRIED[kind], drawn.min()))
        x, key = x[rows], key[rows]
        known = np.where(np.isnan(x), 0.0, x)
        sigma, directions = exact_sigma(self.fair_metric_)
        price = np.sqrt(np.maximum(sigma.diagonal().numpy(), 1e-12))
        if kind == 0:
            moved = known + self._steepest(x, noise(key, seed + 1, 2), np.random.default_rng(seed), score, price)
        elif kind == 1:
            moved = _altered(known, box, noise(key, seed + 1, 2))
        else:
            a = directions.numpy()
            k, d = a.shape[1], x.shape[1]
            sides = 2 * noise(key, seed + 1, k + d) - 1
            along = self.reach * (known @ a).std(0) if k else np.zeros(0)
            free, far = (sides[:, :k] * along) @ a.T, noise(key, seed + 2, 2)
            free *= np.where(far[:, :1] < FAR, far[:, 1:] * self._room(known, free), 1.0)
            small = np.minimum(2 * self.eps**0.5 / price, (box.high - box.low).numpy() / 2)
            moved = known + free + sides[:, k:] * small
        possible = box.round(torch.from_numpy(moved)).numpy()
        return rows, np.where(np.isnan(x), np.nan, possible)

    def _room(self, x: Array, move: Array) -> Array:
        """How many times the move fits between x and where the first number ends, 1 where none moves: (n, 1)."""
        box: Box = self.bounds_
        numbers = self._numbers()
        ahead = np.where(move > 0, box.high.numpy() - x, x - box.low.numpy())[:, numbers]
        by = np.abs(move[:, numbers])
        times = np.divide(ahead, by, out=np.full_like(by, np.inf), where=by > 0).min(1, initial=np.inf, keepdims=True)
        return np.where(np.isfinite(times), np.maximum(times, 0.0), 1.0)

    def _numbers(self) -> list[int]:
        """The columns that are neither categories nor constant."""
        box: Box = self.bounds_
        discrete = {*box.binary, *(j for block in box.blocks for j in block)}
        return [j for j in range(box.d) if j not in discrete and box.high[j] > box.low[j]]

    def _steepest(self, x: Array, drawn: Array, rng: np.random.Generator, score: Score, price: Array) -> Array:
        """A move of numbers that costs between eps and 1, up or down the slope of an output over a move of 9 eps."""
        box: Box = self.bounds_
        low, high, numbers = box.low.numpy(), box.high.numpy(), self._numbers()
        h, slope = score(x), np.zeros_like(x)
        output = rng.integers(h.shape[1])
        for j in rng.permutation(numbers)[:STEEP_COLUMNS]:
            step, other = min(3 * self.eps**0.5 / price[j], (high[j] - low[j]) / 2), x.copy()
            other[:, j] += np.where(x[:, j] + step <= high[j], step, -step)
            slope[:, j] = np.nan_to_num((score(other) - h)[:, output] / (other[:, j] - x[:, j]))
        length = np.sqrt(((slope / price) ** 2).sum(1, keepdims=True))
        far = self.eps ** (drawn[:, :1] / 2) * np.where(drawn[:, 1:] < 0.5, -1.0, 1.0)
        move: Array = far * slope / price**2 / np.where(length > 0, length, 1.0)
        return move

    def _distance(self, x: Array, other: Array) -> Array:
        """d_X of rows and versions; what is missing is missing in both, and costs nothing."""
        move = np.where(np.isnan(x), 0.0, other - x)
        squares: Array = ((move @ exact_sigma(self.fair_metric_)[0].numpy()) * move).sum(1)
        return np.maximum(squares, 0.0)

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self, "ensemble_")
        values = validate_data(
            self, checked_table(X, missing=True), dtype=np.float64, ensure_all_finite="allow-nan", reset=False
        )
        ensemble: TreeEnsemble = self.ensemble_
        return ensemble(values)

    def _rows(self, X: Any, y: Any, sample_weight: Any, sensitive: Any, numeric: bool) -> Given:
        """With sound parameters."""
        check_parameters(self)
        X, y = checked_table(X, missing=True), plain_labels(y)
        check_labels(y, numeric)
        several = np.asarray(y).shape
        if len(several) == 2 and several[1] > 1:
            raise ValueError(
                f"y should be a 1d array, one number for each row, got an array of shape {several} instead; for "
                "several numbers use sklearn.multioutput.MultiOutputRegressor, which trains one model for each"
            )
        values, target = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite="allow-nan", y_numeric=numeric, ensure_min_samples=2
        )
        weight = checked_weight(sample_weight, len(values))
        kept = np.ones(len(values), bool) if weight is None else weight > 0
        X = X if hasattr(X, "columns") else values
        X = X if kept.all() else select_rows(X, kept)
        sensitive = checked_sensitive(sensitive, kept)
        return Given(X, values[kept], target[kept], None if weight is None else weight[kept], sensitive)


class BoostingClassifier(ClassifierMixin, BoostingEstimator):  # type: ignore[misc]
    """What boosted classifiers share: classes that count equally, logits, probabilities."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> Self:
        """Train on X (numbers, NaN allowed; frame or array) and labels of any kind."""
        given = self._rows(X, y, sample_weight, sensitive_features, numeric=False)
        check_classification_targets(given.target)
        self.classes_, codes = np.unique(given.target, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("a classifier needs two classes or more; y holds one class only")
        share = np.bincount(codes, weights=given.weight)
        weight = given.weight / share[codes] * share.sum() / len(share)  # classes count equally
        k = len(self.classes_)
        target = codes[:, None].astype(float) if k == 2 else np.eye(k)[codes]
        self.ensemble_ = self._fit(given, balanced_log_loss, target, weight)
        self.__dict__.pop("offset_", None)  # the calibration of an earlier fit
        return self

    def decision_function(self, X: Any) -> Array:
        """Logits: (n, K), or for two classes the log-odds of the second (n,)."""
        h = super()._outputs(X)
        return h[:, 0] if h.shape[1] == 1 else h

    def _outputs(self, X: Any) -> Array:
        """Logits (n, K); the log-odds f of two classes as (-f/2, f/2)."""
        h = super()._outputs(X)
        return np.column_stack([-h[:, 0] / 2, h[:, 0] / 2]) if h.shape[1] == 1 else h

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, K), columns in the order of ``classes_``."""
        h = self._outputs(X) + getattr(self, "offset_", 0.0)
        e = np.exp(h - h.max(axis=1, keepdims=True))
        return cast(Array, e / e.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of ``predict_proba``, finite where a probability rounds to zero."""
        return cast(Array, log_softmax(self._outputs(X) + getattr(self, "offset_", 0.0), axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        best = self._outputs(X).argmax(axis=1)
        return cast(NDArray[Any], self.classes_[best])


class SenSeIBoostingClassifier(BoostingClassifier):
    """Boosted trees that treat similar people similarly: log loss + rho * the worst case, relative to the spread of
    the scores, so that smaller scores are no gain. Needs the extra ``trees`` (LightGBM) to fit, not to predict.

    fair_metric: who is similar, as for ``SenSeIClassifier``; with ``fit(..., sensitive_features=S)`` a learner is
        called as ``fair_metric(X, S)``, so that the sensitive columns need not be features. rho weighs fairness against
        accuracy. eps: the fair distance within which people count as similar. smooth: splits are ramps that cost
        smooth^2 to cross; None is thirty times the square root of eps, less with more than 5,000 rows, 0 keeps hard
        splits. linear: start from a fair straight line, unless there are monotone columns. bounds: the possible
        people, by default the range of the data with its binary columns and one-hot blocks. trees, leaves,
        learning_rate, l2: as usual for boosting. search_every: after how many trees each row's version may be
        replaced by a worse one (larger d_Y - lam * d_X); versions: how many are tried then; reach: how far along the
        learned directions half of them lie, in standard deviations; the others may lie anywhere. avoid: a binary or
        one-hot column of which a unit step lies by s along the directions is split only where that gains
        1 / (1 - s)^avoid as much as elsewhere, a number only for 1 / (1 - s^2)^(avoid / 2). monotone: -1, 0
        or 1 for each column, kept by the hard splits and therefore by the soft ones. NaN goes where LightGBM sends it.
        Classes count equally. sample_weight counts rows, so that its size matters: a row of weight two is about the row
        given twice, and weights that are all a thousand times larger are a thousand times more data, beside which l2
        weighs nothing. Weights that only say what counts more should have mean one.
    Fitted: ``ensemble_`` (a ``TreeEnsemble``), ``classes_``, ``fair_metric_``, ``bounds_``, ``n_iter_``,
        ``history_`` (before each tree: ``loss``, and ``d_y``, the worst difference over the variance of the scores).
    """


class SenSeIBoostingRegressor(RegressorMixin, BoostingEstimator):  # type: ignore[misc]
    """Boosted trees for numbers: squared error + rho * the worst case. Parameters as for the classifier; targets are
    standardised for training, so that rho means the same whatever their unit. One number for each row; of several,
    ``sklearn.multioutput.MultiOutputRegressor`` trains one model for each."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> Self:
        """Train on X (numbers, NaN allowed; frame or array) and numeric targets."""
        given = self._rows(X, y, sample_weight, sensitive_features, numeric=True)
        target, weight = given.target.astype(np.float64), given.weight
        mean = float(np.average(target, weights=weight))
        scale = float(np.sqrt(np.average((target - mean) ** 2, weights=weight))) or 1.0
        standard = ((target - mean) / scale)[:, None]
        fitted = self._fit(given, squared_loss, standard, weight)
        self.ensemble_ = fitted.scaled(scale, mean)
        return self

    def predict(self, X: Any) -> Array:
        """The predicted number of each row."""
        return self._outputs(X)[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions."""
        check_labels(y, numeric=True)
        return float(super().score(X, y, checked_weight(sample_weight, len(y))))


def possible_people(x: Array) -> Box:
    """The range of the data; columns with two values as binary, neighbouring 0/1 columns that always add up to one as
    a one-hot block."""
    low, high = np.nanmin(x, axis=0), np.nanmax(x, axis=0)
    low, high = np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), 0.0, high)
    two = np.array([low[j] < high[j] and bool(np.isin(x[:, j], (low[j], high[j])).all()) for j in range(x.shape[1])])
    indicator = two & (low == 0) & (high == 1)
    blocks: list[list[int]] = []
    j = 0
    while j < x.shape[1]:
        total, stop = np.zeros(len(x)), j
        while stop < x.shape[1] and indicator[stop] and total.max(initial=0) <= 1:
            total += x[:, stop]
            stop += 1
            if stop - j > 1 and bool((total == 1).all()):
                break
        if stop - j > 1 and bool((total == 1).all()):
            blocks.append(list(range(j, stop)))
            j = stop
        else:
            j += 1
    inside = {c for block in blocks for c in block}
    return Box(low, high, blocks, [int(c) for c in np.flatnonzero(two) if c not in inside], d=x.shape[1])


def _altered(x: Array, box: Box, drawn: Array) -> Array:
    """A single column, or one-hot block, of each row with another value: a category, the other of two values, or a
    quantile of the column."""
    single = [(j,) for j in range(x.shape[1]) if not any(j in block for block in box.blocks)]
    groups = [*box.blocks, *single]
    chosen = np.minimum((drawn[:, 0] * len(groups)).astype(int), len(groups) - 1)
    moved = x.copy()
    for g, columns in enumerate(groups):
        rows = np.flatnonzero(chosen == g)
        if len(columns) > 1:
            category = np.minimum((drawn[rows, 1] * len(columns)).astype(int), len(columns) - 1)
            moved[rows[:, None], list(columns)] = np.eye(len(columns))[category]
        elif columns[0] in box.binary:
            j = columns[0]
            moved[rows, j] = float(box.low[j] + box.high[j]) - x[rows, j]
        elif len(rows):
            moved[rows, columns[0]] = np.quantile(x[:, columns[0]], drawn[rows, 1])
    return moved


def noise(x: Array, seed: int, columns: int = 1) -> Array:
    """Numbers in [0, 1) that depend on each row's values and the seed, not on its place: (n, columns)."""
    bits = np.ascontiguousarray(np.where(np.isnan(x), 0.0, x) + 0.0).view(np.uint64)  # -0.0 is 0.0
    key = np.full(len(x), seed, np.uint64)
    for j in range(x.shape[1]):
        key = _mixed(key ^ bits[:, j])
    steps = np.arange(1, columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (_mixed(key[:, None] + steps) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of each number spread over all of it (the last steps of SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
