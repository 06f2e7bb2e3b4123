"""Sensitive coordinates and the directions that give them away: columns + regression coefficients (Adult)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from evenhand.fair_metrics.columns import Column, column_names, column_positions, coordinate_directions, width
from evenhand.fair_metrics.metric import MUCH_FREE, FairMetric, free_share
from evenhand.fair_metrics.regression import distinct, fit_to_the_end, newton, regression
from evenhand.fair_metrics.strengths import ENOUGH, STRENGTHS, adds, leading


@dataclass(frozen=True)
class AttributeModel:
    """The inner model that predicts one sensitive attribute, and the directions it contributed."""

    name: str
    estimator: Any  # fitted LogisticRegression or Ridge
    used: tuple[int, ...]  # positions of the columns it was fitted on
    directions: np.ndarray  # (d, number of directions), zero at the columns that were left out

    def __str__(self) -> str:
        kind, k = type(self.estimator).__name__, self.directions.shape[1]
        return f"{self.name}: {kind} on {len(self.used)} columns, {k} directions"


def from_classifier(
    X: Any,
    columns: Sequence[Column] = (),
    predict: Sequence[Column] | Mapping[str, Any] | None = None,
    *,
    classifier: Any = None,
    regressor: Any = None,
    l2: float | Sequence[float] | None = None,
    sample_weight: Any = None,
) -> FairMetric:
    """The metric of the paper's Adult experiment: sensitive columns and what predicts them cost nothing.

    ``columns`` are free by themselves. Each attribute of ``predict`` adds the coefficients of a model that predicts it
    from the other columns: logistic regression for a binary attribute, softmax regression for several categories, ridge
    regression for a number, which whole numbers are if they have more than 20 values (give codes of categories as
    strings or as a categorical column). ``predict`` names columns of X, or maps a name to its values when it lives
    outside X; None predicts every one of ``columns``. The inner models minimise the mean loss plus l2/2 |w|^2;
    ``classifier`` and ``regressor`` are others (any scikit-learn estimator with ``coef_``). The fitted models are in
    ``metric.attribute_models``. A row of ``sample_weight`` two counts as the row given twice.

    A large l2 finds all that goes along with the attribute, a small one what gives it away most surely. With several,
    ``l2=(0.1, 1e-5)``, the directions of both cost nothing. None takes 0.15 and also 1e-5 where that tells more about
    the attribute, unless both would make more than a third of the difference between people in other columns free; of
    an attribute with several groups it takes only the directions that tell them apart better than chance would. The
    paper's is ``l2=0.1``, and all directions.
    """
    from sklearn.linear_model import Ridge  # at use: it takes as long to import as torch

    values = _finite_array(X)
    weight = None if sample_weight is None else _positive(sample_weight, len(values))
    attributes = _attributes(X, values, columns if predict is None else predict)
    replaced = classifier is not None or regressor is not None
    strengths = _strengths(l2) if l2 is not None else [STRENGTHS[0]] if replaced else list(STRENGTHS)
    if len(strengths) > 1 and replaced:
        raise ValueError("several l2 are of the inner models that classifier= and regressor= replace; give one of both")
    total = len(values) if weight is None else float(weight.sum())
    models = []
    for name, target, left_out in attributes:
        for penalty in (strength * total for strength in strengths):
            classify = classifier if classifier is not None else regression(penalty, target, values.shape)
            regress = regressor if regressor is not None else Ridge(alpha=penalty)
            models.append(_fit(values, name, target, left_out, classify, regress, weight))
    if l2 is None and not replaced:
        targets = [target for _, target, _ in attributes]
        others = values * _others(X, columns)
        return _unless_idle(
            X, columns, models, targets, values, lambda metric: free_share(metric, others, weight), weight
        )
    return _metric(X, columns, models)


def _unless_idle(
    X: Any,
    columns: Sequence[Column],
    models: list[AttributeModel],
    targets: Sequence[np.ndarray],
    values: np.ndarray,
    share: Callable[[FairMetric], float],
    weight: np.ndarray | None = None,
) -> FairMetric:
    """The metric of the models of both STRENGTHS, in turn, but for those that add nothing or free too much."""
    twice = [target for target in targets for _ in STRENGTHS]
    models = [telling(model, values, target, weight) for model, target in zip(models, twice, strict=True)]
    kept = []
    for strong, hardly, target in zip(models[::2], models[1::2], targets, strict=True):
        kept += [strong, hardly] if tells_more(strong, hardly, values, target, weight) else [strong]
    metric = _metric(X, columns, kept)
    return _metric(X, columns, models[::2]) if len(kept) > len(targets) and share(metric) > MUCH_FREE else metric


def telling(
    model: AttributeModel, values: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None
) -> AttributeModel:
    """The model of an attribute with several groups, without the directions that tell them apart no better than chance;
    see ``leading``."""
    if model.directions.shape[1] < 2:
        return model
    every = -(-len(values) // ENOUGH)
    values, target, weight = (
        values[::every],
        _codes(np.asarray(target)[::every]),
        None if weight is None else weight[::every],
    )
    if len(np.unique(target)) < 3:
        return model
    mixed = leading(values @ model.directions, target, len(model.used), weight)
    return replace(model, directions=model.directions @ mixed)


def _others(X: Any, columns: Sequence[Column]) -> np.ndarray:
    """(d,) 0 for ``columns``, which are free however they are coded, and 1 for the others."""
    others = np.ones(width(X))
    others[column_positions(X, columns)] = 0.0
    return others


def tells_more(
    strong: AttributeModel,
    hardly: AttributeModel,
    values: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None = None,
) -> bool:
    """Whether the second of two models of an attribute knows something that the first does not; see ``adds``."""
    every = -(-len(values) // ENOUGH)
    values, target, weight = values[::every], np.asarray(target)[::every], None if weight is None else weight[::every]
    numeric = not hasattr(strong.estimator, "classes_")
    if not numeric:
        target = _codes(target)
    return adds(values @ strong.directions, values @ hardly.directions, target, len(strong.used), numeric, weight)


def _metric(X: Any, columns: Sequence[Column], models: list[AttributeModel]) -> FairMetric:
    """The sensitive columns themselves and what predicts them are free."""
    parts = [coordinate_directions(X, columns).numpy()] if len(columns) else []
    parts += [model.directions for model in models]
    if not parts:
        raise ValueError("name at least one sensitive column in columns= or predict=")
    metric = FairMetric(torch.as_tensor(np.concatenate(parts, axis=1), dtype=torch.float32))
    metric.attribute_models = tuple(models)
    return metric


def _strengths(l2: float | Sequence[float]) -> list[float]:
    try:
        strengths = [float(strength) for strength in (l2 if isinstance(l2, Iterable) else [l2])]
    except (TypeError, ValueError):
        strengths = []
    if not strengths or not all(0 < strength < np.inf for strength in strengths):
        raise ValueError(f"l2 must be a positive number, or several, such as (0.1, 1e-5); got {l2!r}")
    return strengths


def _finite_array(X: Any) -> np.ndarray:
    from evenhand.frames import check_kinds, plain_table  # pandas takes long to import, and a loop needs none

    width(X)
    X = plain_table(X)
    check_kinds(X)
    nullable = hasattr(X, "dtypes") and hasattr(X, "to_numpy") and hasattr(X, "iloc")
    values = X.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else np.asarray(X, dtype=np.float64)
    if values.shape[0] == 0:
        raise ValueError("X has no rows; the metric cannot be learned from an empty frame")
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values).all(axis=0))
        names = column_names(X)
        raise ValueError(f"X holds NaN or infinite values in column(s) {[names[i] if names else int(i) for i in bad]}")
    return values


def _positive(sample_weight: Any, n: int) -> np.ndarray:
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,) or not (np.isfinite(weight).all() and (weight > 0).all()):
        raise ValueError(
            f"sample_weight must be {n} positive numbers, one for each row; leave out rows that count for nothing"
        )
    return weight


def _attributes(
    X: Any, values: np.ndarray, predict: Sequence[Column] | Mapping[str, Any]
) -> list[tuple[str, np.ndarray, list[int]]]:
    """(name, target, positions to leave out) of each attribute to predict."""
    if isinstance(predict, Mapping):
        return [(str(name), _target(name, given, len(values)), []) for name, given in predict.items()]
    found = []
    for column in [predict] if isinstance(predict, str | int) else predict:
        positions = column_positions(X, [column])
        block = values[:, positions]
        if block.shape[1] > 1:  # a one-hot block: the attribute is its category, an all-zero row a category of its own
            target = np.where(block.any(axis=1), block.argmax(axis=1), -1)
        else:
            target = block[:, 0]
        found.append((str(column), target, positions))
    return found


def _target(name: str, given: Any, n: int) -> np.ndarray:
    from evenhand.frames import attribute_values

    target = attribute_values(given)
    if target.shape != (n,):
        raise ValueError(f"sensitive attribute {name!r} must have one value per row, ({n},); got {target.shape}")
    if target.dtype.kind in "mM":
        what = "dates" if target.dtype.kind == "M" else "durations"
        raise ValueError(
            f"sensitive attribute {name!r} holds {what}; give a number, such as an age in years, or groups"
        )
    missing = np.array([v is None or (v != v) is not False for v in target.tolist()])  # pd.NA is not even unlike itself
    if missing.any():
        rows = np.flatnonzero(missing)
        raise ValueError(
            f"sensitive attribute {name!r} is missing in {missing.sum()} of {n} rows (first: {rows[:5].tolist()}); "
            "drop these rows or give the attribute a category of its own"
        )
    return target


def _fit(
    values: np.ndarray,
    name: str,
    target: np.ndarray,
    left_out: list[int],
    classifier: Any,
    regressor: Any,
    weight: np.ndarray | None,
) -> AttributeModel:
    from sklearn.base import clone

    used = [i for i in range(values.shape[1]) if i not in set(left_out)]
    kinds = distinct(target)
    if len(kinds) < 2:
        raise ValueError(f"sensitive attribute {name!r} has the single value that everybody shares: nothing to predict")
    if not used:
        raise ValueError(f"no column is left to predict {name!r} from")
    whole = not np.issubdtype(target.dtype, np.number) or bool(np.all(kinds == kinds.round()))
    numeric = np.issubdtype(target.dtype, np.number) and len(kinds) > 2 and (len(kinds) > 20 or not whole)
    inner = clone(regressor if numeric else classifier)
    if target.dtype == object:
        target = target.astype(str)
    elif not whole and not numeric:
        target = _codes(target)  # two values that scikit-learn would not take for classes
    fit_to_the_end(inner, values[:, used], target, weight)
    coefficients = np.atleast_2d(inner.coef_)
    directions = np.zeros((values.shape[1], len(coefficients)))
    directions[used] = coefficients.T
    return AttributeModel(name, inner, tuple(used), directions)


def _codes(target: np.ndarray) -> np.ndarray:
    return np.unique(target.astype(str) if target.dtype == object else target, return_inverse=True)[1]


@dataclass(frozen=True)
class StreamedRegression:
    """A logistic (or softmax) regression fitted chunk by chunk; the names are scikit-learn's."""

    coef_: np.ndarray  # (1 or C, number of columns used)
    intercept_: np.ndarray
    classes_: np.ndarray
    passes_: int


def from_classifier_stream(
    chunks: Iterable[Any],
    columns: Sequence[Column] = (),
    predict: Sequence[Column] | None = None,
    *,
    l2: float | Sequence[float] | None = None,
    max_passes: int = 50,
) -> FairMetric:
    """``from_classifier`` for chunks of X (frames or arrays) that can be read again: a list, ``streaming.Repeated``.

    Each pass adds up the gradient and the Hessian of the mean loss plus l2/2 |w|^2 over the chunks, then takes one
    Newton step, so that memory does not grow with the rows and the result is that of the whole data.
    """
    if isinstance(chunks, Iterator):
        raise TypeError("the chunks are read several times; give a list, or streaming.Repeated(a function that starts)")
    read = _Chunks(chunks)
    wanted = columns if predict is None else predict
    names = [wanted] if isinstance(wanted, str | int) else list(wanted)
    column_positions(read.first, columns)
    strengths = list(STRENGTHS) if l2 is None else _strengths(l2)
    models = [_fit_chunks(read, name, strength, max_passes) for name in names for strength in strengths]
    if l2 is not None:
        return _metric(read.first, columns, models)
    rows, others = _some(read), _others(read.first, columns)
    targets = [target for _, target, _ in _attributes(read.first, rows, names)]
    return _unless_idle(
        read.first, columns, models, targets, rows, lambda metric: _streamed_share(read, metric, others)
    )


class _Chunks:
    """Chunks as arrays of numbers, each time anew; those without rows are passed over."""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self.chunks = chunks
        first = next((chunk for chunk in chunks if np.shape(chunk)[0]), None)
        if first is None:
            raise ValueError("there are no chunks with rows, so there is nothing to learn from")
        self.first = first

    def __iter__(self) -> Iterator[np.ndarray]:
        names, d = column_names(self.first), np.shape(self.first)[1]
        for i, chunk in enumerate(self.chunks):
            if np.shape(chunk)[0] == 0:
                continue
            if np.shape(chunk)[1:] != (d,) or column_names(chunk) != names:
                raise ValueError(
                    f"chunk {i} has not the columns of the first, in their order; give every chunk the same {d} columns"
                )
            yield _finite_array(chunk)


def _some(chunks: Iterable[np.ndarray]) -> np.ndarray:
    """Each so-manieth row, ENOUGH of them, as ``tells_more`` takes of an array: they may be sorted."""
    every, seen = -(-sum(map(len, chunks)) // ENOUGH), 0
    kept = []
    for values in chunks:
        kept.append(values[-seen % every :: every])
        seen += len(values)
    return np.concatenate(kept)


def _streamed_share(chunks: Iterable[np.ndarray], metric: FairMetric, others: np.ndarray | float = 1.0) -> float:
    """``free_share`` of all chunks times others, in one pass: variances from sums, around the first row so that nothing
    cancels."""
    directions = metric.directions.detach().to("cpu", torch.float64).numpy()
    n, origin, seen, squares, along = 0, None, 0.0, 0.0, 0.0
    for values in chunks:
        origin = values[0] if origin is None else origin
        away = (values - origin) * others
        n, seen = n + len(away), seen + away.sum(0)
        squares, along = squares + np.square(away).sum(), along + np.square(away @ directions).sum()
    total = squares - np.square(seen).sum() / n
    return float((along - np.square(seen @ directions).sum() / n) / total) if total > 0 else 0.0


def _fit_chunks(chunks: _Chunks, name: Column, l2: float, max_passes: int) -> AttributeModel:
    left_out = column_positions(chunks.first, [name])
    d = np.shape(chunks.first)[1]
    used = [i for i in range(d) if i not in set(left_out)]
    if not used:
        raise ValueError(f"no column is left to predict {name!r} from")

    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for values in chunks:
            block = values[:, left_out]
            one_hot = np.where(block.any(axis=1), block.argmax(axis=1), -1) if len(left_out) > 1 else block[:, 0]
            yield np.concatenate([values[:, used], np.ones((len(values), 1))], axis=1), one_hot, np.ones(len(values))

    seen = np.unique(np.concatenate([np.unique(target) for _, target, _ in pieces()]))
    if len(seen) < 2:
        raise ValueError(f"sensitive attribute {name!r} has the single value that everybody shares: nothing to predict")
    if len(seen) > 50:
        raise ValueError(f"sensitive attribute {name!r} has {len(seen)} values; streaming predicts categories only")
    weights, passes = newton(pieces, seen, len(used), l2, max_passes)
    if len(seen) == 2:  # scikit-learn's single row: the second class against the first
        weights = weights[1:] - weights[:1]
    directions = np.zeros((d, len(weights)))
    directions[used] = weights[:, :-1].T
    model = StreamedRegression(weights[:, :-1], weights[:, -1], seen, passes)
    return AttributeModel(str(name), model, tuple(used), directions)
