"""What a fit is made from: arrays in memory, or a stream of batches larger than it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
import torch
from sklearn.base import is_classifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from torch import Tensor

from evenhand import ranks
from evenhand.domain import Box, FreeBox
from evenhand.estimators.inputs import (
    check_bounds_word,
    checked_bounds,
    checked_sensitive,
    checked_weight,
    data_bounds,
    names_of,
    select_rows,
    tensor_of,
    weights_by_class,
)
from evenhand.estimators.targets import Moments, Targets
from evenhand.fair_metrics.metric import FairMetric
from evenhand.frames import check_labels, checked_table, numbers, plain_labels
from evenhand.search.worst_cases import pair
from evenhand.training.batches import uniform
from evenhand.training.streams import Repeated, Stream, one_shot

HELD_OUT_DRAWS = 2000  # people drawn from the held-out rows, by weight, to be evaluated on


class Rows(NamedTuple):
    """What ``train()`` is given: its data, the rows they are of, held-out data, and more settings."""

    data: tuple[Any, ...]  # x, y or a stream
    order: Tensor
    validation: tuple[Tensor, Tensor] | None
    settings: dict[str, Any]


class Source(Protocol):
    """Everything a fit asks of its data."""

    sensitive_features: Any
    sample_weight: np.ndarray | None  # (n,) as the user gave it

    @property
    def X(self) -> Any:
        """What a learner of a metric is given: the user's frame or array, or a stream of such."""

    @property
    def d(self) -> int: ...

    def box(self, given: Any, fair_metric: FairMetric) -> Box | None: ...

    def rows(self, validation_fraction: float, patience: int | None, generator: torch.Generator) -> Rows: ...


@dataclass
class Arrays:
    """Rows in memory. ``y`` is what the loop trains on, set by ``class_targets`` or ``number_targets``."""

    X: Any
    x: Tensor
    target: np.ndarray
    sample_weight: np.ndarray | None
    weight: Tensor | None  # with those of the classes, on the CPU: not every device has float64
    sensitive_features: Any
    names: list[str] | None
    kept: np.ndarray  # which of the rows given these are: those of positive weight
    y: Tensor = field(default_factory=lambda: torch.empty(0))
    balanced: bool = False
    before: Box | None = None  # the domain of the rows of earlier calls, where this is one of several

    @property
    def d(self) -> int:
        return self.x.shape[1]

    def box(self, given: Any, fair_metric: FairMetric) -> Box | None:
        return checked_bounds(given, self.x, self.names, lambda: data_bounds(self.x, fair_metric, self.before))

    def rows(self, validation_fraction: float, patience: int | None, generator: torch.Generator) -> Rows:
        order = canonical_order(self.x, self.y)
        kept, held = order, order[:0]
        if validation_fraction:
            out = (_draw_of_each(self.x[order], self.y[order], generator) < validation_fraction).to(order.device)
            kept, held = order[~out], order[out]
            if len(kept) == 0 or len(held) == 0:
                raise ValueError(
                    f"validation_fraction={validation_fraction} of {len(order)} rows leaves one of the parts empty"
                )
        elif patience is not None:
            raise ValueError("patience needs validation data; set validation_fraction, for example to 0.1")
        validation = None
        if len(held):
            weight = torch.ones(len(held), dtype=torch.float64) if self.weight is None else self.weight[held.cpu()]
            mass = weight.cumsum(0)
            draws = torch.rand(HELD_OUT_DRAWS, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
            some = held[torch.searchsorted(mass, draws * mass[-1], right=True).clamp(max=len(held) - 1)]
            validation = self.x[some], self.y[some]
        sample_weight = None if self.weight is None else self.weight[kept.cpu()]
        settings = {"balanced": self.balanced, "sample_weight": sample_weight}
        return Rows((self.x[kept], self.y[kept]), kept, validation, settings)


def from_arrays(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    sensitive_features: Any,
    *,
    numeric: bool,
    reset: bool = True,
) -> Arrays:
    """Checked rows; those of weight zero are left out, with all that belongs to them."""
    X, y = checked_table(X), plain_labels(y)
    check_labels(y, numeric)
    several = numeric and y is not None and np.asarray(y).ndim == 2 and np.asarray(y).shape[1] > 1
    values, target = validate_data(
        estimator, X, y, dtype=np.float32, order="C", y_numeric=numeric, multi_output=several, reset=reset
    )
    weight = checked_weight(sample_weight, len(values))
    if not hasattr(X, "columns") and not isinstance(X, np.ndarray):
        X = values
    kept = np.ones(len(values), dtype=bool)
    if weight is not None:
        kept = weight > 0
        X, values, target, weight = select_rows(X, kept), values[kept], target[kept], weight[kept]
    device = estimator.device
    return Arrays(
        X,
        tensor_of(values, device),
        target,
        weight,
        None if weight is None else torch.as_tensor(weight),
        checked_sensitive(sensitive_features, kept),
        names_of(estimator),
        kept,
    )


def class_targets(estimator: Any, source: Arrays, known: np.ndarray | None = None) -> Targets:
    """Class numbers to train on; sets ``classes_``. Classes count as ``class_weight`` says."""
    labels = source.target
    check_classification_targets(labels)
    _set_classes(estimator, np.unique(labels) if known is None else known)
    strangers = np.setdiff1d(labels, estimator.classes_)
    if len(strangers):
        raise ValueError(f"y holds {len(strangers)} label(s) that are not among the classes; give all in classes=")
    if len(estimator.classes_) < 2:
        raise ValueError("a classifier needs two classes or more; y holds one class only")
    codes = np.searchsorted(estimator.classes_, labels)
    source.y = torch.as_tensor(codes, dtype=torch.long).to(source.x.device)
    source.balanced = isinstance(estimator.class_weight, str)  # "balanced", see checks.py
    if isinstance(estimator.class_weight, Mapping):
        each = weights_by_class(estimator)
        weight = torch.ones(len(codes), dtype=torch.float64) if source.weight is None else source.weight
        source.weight = weight * each.to(weight)[torch.as_tensor(codes)]
    return Targets(len(estimator.classes_))


def _set_classes(estimator: Any, classes: np.ndarray) -> None:
    """With warm_start only the classes of the fit before: a network knows them by their number, not by their name."""
    if estimator.warm_start and hasattr(estimator, "module_"):
        before = np.asarray(estimator.classes_)
        if not np.array_equal(before, classes):
            raise ValueError(
                f"warm_start goes on with the classes of the fit before, {before.tolist()}, and y holds others; fit an "
                "estimator of its own to them"
            )
    estimator.classes_ = classes


def number_targets(source: Arrays, known: Targets | None = None) -> Targets:
    """Numbers to train on, each standardised, so that rho means the same whatever their unit; by a known scale if
    training goes on with it."""
    target = source.target.astype(np.float64)
    if known is not None and known.scale is not None and known.mean is not None:
        outputs = 1 if target.ndim == 1 else target.shape[1]
        if outputs != known.outputs:
            raise ValueError(f"y holds {outputs} number(s) for each row, but {known.outputs} in the calls before")
        source.y = torch.as_tensor((target - known.mean) / known.scale, dtype=torch.float32).to(source.x.device)
        return known
    weight = None if source.weight is None else source.weight.numpy()
    mean = np.atleast_1d(np.average(target, axis=0, weights=weight))
    scale = np.sqrt(np.atleast_1d(np.average((target - mean) ** 2, axis=0, weights=weight)))
    scale[scale == 0] = 1.0
    source.y = torch.as_tensor((target - mean) / scale, dtype=torch.float32).to(source.x.device)
    return Targets(len(mean), scale, mean)


def canonical_order(x: Tensor, y: Tensor) -> Tensor:
    """An order of the rows that depends on their values only: with it a fit does not depend on the order of the data,
    and a row of weight two counts like the row given twice."""
    targets = y.cpu().numpy().reshape(len(y), -1)
    return torch.as_tensor(np.lexsort((_keys(x), *targets.T[::-1]))).to(x.device)


def _keys(x: Tensor) -> np.ndarray:
    """A number of each row's values, alike for equal rows."""
    mix = torch.rand(x.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    parts = [(part.cpu().double() * mix).numpy().sum(axis=1) for part in torch.split(x, 65536)]
    return np.concatenate(parts)


def _draw_of_each(x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
    """A number in [0, 1) of each row, drawn anew for each generator, the same for equal rows: rows that are held out
    are held out with their copies, so that a weight of two stays a row given twice."""
    keys = np.column_stack([_keys(x), y.cpu().numpy().astype(np.float64)])
    distinct, number = np.unique(keys, axis=0, return_inverse=True)
    return uniform(len(distinct), generator)[torch.as_tensor(number.reshape(-1))]


@dataclass
class Seen:
    """What one pass over the batches found."""

    rows: int = 0
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    indicator: np.ndarray | None = None
    counts: dict[Any, int] = field(default_factory=dict)  # of the classes
    numbers: Moments = field(default_factory=Moments)  # of numeric targets


@dataclass
class Streamed:
    """Batches (X, y) that can be read again, and what a first pass over them found."""

    batches: Stream
    seen: Seen
    convert: Callable[[Any], tuple[Tensor, Tensor | None]]  # targets as tensors, and weights
    names: list[str] | None = None  # of the columns, where the batches are frames
    sensitive_features: Any = None
    sample_weight: np.ndarray | None = None  # batches come without

    @classmethod
    def of(cls, estimator: Any, batches: Stream) -> tuple[Streamed, Targets]:
        if one_shot(batches):
            raise TypeError(
                "fit_stream reads the batches more than once: first to learn classes and ranges, then to train; give a "
                "list, a DataLoader, or streaming.Repeated(a function that starts the stream)"
            )
        if is_classifier(estimator):
            seen = _together(_look(estimator, batches, classify=True))
            _set_classes(estimator, np.unique(np.array(list(seen.counts))))
            if len(estimator.classes_) < 2:
                raise ValueError(f"a classifier needs two classes or more; the batches hold {len(estimator.classes_)}")
            weights, classes = _class_weights(estimator, seen), estimator.classes_

            def codes(y: Any) -> tuple[Tensor, Tensor | None]:
                found = torch.as_tensor(np.searchsorted(classes, np.asarray(y)))
                return found, None if weights is None else weights[found]

            return cls(batches, seen, codes, names_of(estimator)), Targets(len(classes))
        seen = _together(_look(estimator, batches, classify=False))
        mean, scale = seen.numbers.mean, seen.numbers.scale

        def standard(y: Any) -> tuple[Tensor, None]:
            return torch.as_tensor((numbers(y, "y") - mean) / scale, dtype=torch.float32), None

        return cls(batches, seen, standard, names_of(estimator)), Targets(1, np.array([scale]), np.array([mean]))

    @property
    def X(self) -> Repeated:
        names = self.names
        chunks = Repeated(lambda: (_values(X) for X, _ in self.batches))
        return chunks if names is None else Repeated(lambda: (pd.DataFrame(x, columns=names) for x in chunks))

    @property
    def d(self) -> int:
        assert self.seen.low is not None
        return len(self.seen.low)

    def box(self, given: Any, fair_metric: FairMetric) -> Box | None:
        """What ``data_bounds`` and ``given_bounds`` say of all batches together; free directions take one more pass."""
        seen = self.seen
        assert seen.low is not None
        assert seen.high is not None
        assert seen.indicator is not None
        if given is None:
            return None
        if not isinstance(given, str):
            box = Box.of(given if isinstance(given, Box) else pair(given), self.d)
            low, high = box.low.numpy() - 1e-6, box.high.numpy() + 1e-6
            outside = np.flatnonzero((seen.low < low) | (seen.high > high)).tolist()
            if outside:
                raise ValueError(
                    f"bounds exclude training rows, in column(s) {outside[:10]}; widen them, or use bounds='data'"
                )
            return box
        check_bounds_word(given)
        low, high = np.where(seen.indicator, 0.0, seen.low), np.where(seen.indicator, 1.0, seen.high)
        box = Box(low, high, binary=np.flatnonzero(seen.indicator).tolist())
        free = box.freed(fair_metric.directions.cpu(), torch.zeros(1, self.d))
        if not isinstance(free, FreeBox):
            return box
        z_low, z_high = free.free_low + torch.inf, free.free_high - torch.inf
        for chunk in self.X:
            z = torch.from_numpy(np.array(chunk, dtype=np.float64)) @ free.free
            z_low, z_high = z_low.minimum(z.amin(0)), z_high.maximum(z.amax(0))
        ends = np.array(ranks.gather([*z_low.tolist(), *z_high.tolist()])).reshape(-1, 2, len(z_low))
        return FreeBox(box, free.free, ends[:, 0].min(0), ends[:, 1].max(0))

    def rows(self, validation_fraction: float, patience: int | None, generator: torch.Generator) -> Rows:
        if validation_fraction or patience is not None:
            raise ValueError("fit_stream takes no validation_fraction and no patience; use train() with validation=")

        def tensors() -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
            for X, y in self.batches:
                yield torch.as_tensor(_values(X)), *self.convert(y)

        seen = self.seen
        counts = {str(label): n for label, n in seen.counts.items()}
        told = {"seen": vars(seen) | {"counts": counts, "numbers": asdict(seen.numbers)}}
        return Rows((Repeated(tensors),), torch.empty(0, dtype=torch.long), None, {"known_as": told})


def _look(estimator: Any, batches: Stream, classify: bool) -> Seen:
    """One pass: the classes or the scale of the target, each column's range; every batch is checked."""
    seen = Seen()
    for item in batches:
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise TypeError(f"a stream must give (X, y) for each batch; got {type(item).__name__}")
        X, y = item
        values = validate_data(estimator, checked_table(X), dtype=np.float32, reset=seen.rows == 0)
        y = plain_labels(y)
        check_labels(y, numeric=not classify)
        target = np.asarray(y)
        if target.shape != (len(values),):
            raise ValueError(f"each batch needs one target per row; got X {values.shape} and y {target.shape}")
        low, high = values.min(axis=0), values.max(axis=0)
        indicator = ((values == 0) | (values == 1)).all(axis=0)
        if seen.low is None or seen.high is None or seen.indicator is None:
            seen.low, seen.high, seen.indicator = low, high, indicator
        seen.low, seen.high = np.minimum(seen.low, low), np.maximum(seen.high, high)
        seen.indicator = seen.indicator & indicator
        seen.rows += len(values)
        if classify:
            for label, count in zip(*np.unique(target, return_counts=True)):
                seen.counts[label] = seen.counts.get(label, 0) + int(count)
        else:
            wide = target.astype(np.float64)
            if not np.isfinite(wide).all():
                raise ValueError("the targets hold NaN or infinite values; clean them first")
            seen.numbers = seen.numbers.with_values(wide)
    if seen.rows == 0:
        raise ValueError("the stream gave no batch; is its file or loader empty?")
    return seen


def _together(mine: Seen) -> Seen:
    """What all ranks have seen, each in its own stream."""
    if ranks.world() == 1:
        return mine
    labels = [[getattr(label, "item", lambda label=label: label)(), count] for label, count in mine.counts.items()]
    told = {name: value if not hasattr(value, "tolist") else value.tolist() for name, value in vars(mine).items()}
    told |= {"counts": labels, "numbers": asdict(mine.numbers)}
    everyone = [json.loads(text) for text in ranks.gather_text(json.dumps(told))]
    if len({len(one["low"]) for one in everyone}) > 1:
        raise ValueError(
            f"the streams of the ranks have {[len(one['low']) for one in everyone]} columns; give one kind"
        )
    joint = Seen(
        rows=sum(one["rows"] for one in everyone),
        low=np.min([one["low"] for one in everyone], axis=0).astype(np.float32),
        high=np.max([one["high"] for one in everyone], axis=0).astype(np.float32),
        indicator=np.all([one["indicator"] for one in everyone], axis=0),
        numbers=reduce(Moments.joined, (Moments(**one["numbers"]) for one in everyone)),
    )
    for one in everyone:
        for label, count in one["counts"]:
            joint.counts[label] = joint.counts.get(label, 0) + count
    return joint


def _class_weights(estimator: Any, seen: Seen) -> Tensor | None:
    """Weights of the classes: "balanced" lets every class count equally, as the balanced batches of ``fit`` do."""
    if estimator.class_weight is None:
        return None
    if isinstance(estimator.class_weight, Mapping):
        return weights_by_class(estimator)
    counts = np.array([seen.counts[label] for label in estimator.classes_], dtype=np.float64)
    return torch.as_tensor(seen.rows / (len(counts) * counts), dtype=torch.float32)


def _values(X: Any) -> np.ndarray:
    return np.ascontiguousarray(numbers(X, "X", np.float32))
