"""Scores of fairness and accuracy on arrays of predictions.

Undefined is never fair: a group without members, a class without rows or a missing prediction makes the score that
depends on it nan, and the cause is named, in `undefined` of the result or, where the score is a plain number, in a
warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.variations import Variations

__all__ = [
    "AccuracySpread",
    "TPRGaps",
    "UndefinedScoreWarning",
    "accuracy_spread",
    "balanced_accuracy",
    "ctf_squared",
    "ctf_std",
    "prediction_consistency",
    "tpr_gaps",
]

Array = NDArray[Any]
Mask = NDArray[np.bool_]


class UndefinedScoreWarning(UserWarning):
    """A score is nan because it is not defined on this data; the message says why."""


def balanced_accuracy(y: ArrayLike, predicted: ArrayLike) -> float:
    """Mean over the classes of y of the share predicted right.

    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 1, 1])
    0.8333333333333333
    """
    truth, answer, missing = _labels(y, predicted)
    if missing.any():
        return _undefined(f"balanced accuracy: predicted is missing in {_places(np.flatnonzero(missing))}")
    return float(np.mean([np.mean(answer[truth == k] == k) for k in _classes(truth)]))


def prediction_consistency(values: Variations | ArrayLike) -> float:
    """Share of individuals whose predicted label is the same on all their versions: labels (g, m) -> number.

    >>> prediction_consistency([[1, 1, 1], [0, 0, 1]])
    0.5
    """
    labels, rows = _versions(values, 2, "predicted labels (individuals, versions)", least=2)
    if len(labels) == 0:
        return _undefined("prediction consistency: nobody has versions")
    missing = _missing(labels).any(axis=1)
    if missing.any():
        return _undefined(f"prediction consistency: a prediction is missing in {_places(rows[missing])}")
    return float(np.mean(np.all(labels == labels[:, :1], axis=1)))


def ctf_std(values: Variations | ArrayLike) -> float:
    """Counterfactual token fairness of the Toxicity table: probabilities of one class (g, m) -> number.

    Mean over the individuals of the standard deviation (ddof 0) over their versions. Smaller is fairer.

    >>> ctf_std([[0.25, 0.75], [0.5, 0.5]])
    0.125
    """
    probabilities, rows = _versions(values, 2, "probabilities of one class (individuals, versions)", least=2)
    return _mean_of_probabilities("ctf_std", probabilities, rows, lambda p: p.std(axis=1))


def ctf_squared(values: Variations | ArrayLike) -> float:
    """Counterfactual token fairness of the Bios table: class probabilities (g, 2, K) -> number.

    Mean over the individuals of the squared Euclidean distance between their two versions. Smaller is fairer.

    >>> round(ctf_squared([[[0.9, 0.1], [0.7, 0.3]]]), 6)
    0.08
    """
    probabilities, rows = _versions(values, 3, "class probabilities (individuals, 2, classes)", least=2)
    if probabilities.shape[1] != 2:
        raise ValueError(
            f"ctf_squared compares two versions, got {probabilities.shape[1]}; choose them by .versions(0, 1)"
        )
    return _mean_of_probabilities(
        "ctf_squared", probabilities, rows, lambda p: np.square(p[:, 0] - p[:, 1]).sum(axis=-1)
    )


@dataclass(frozen=True)
class TPRGaps:
    """How much the share of each class that is predicted right differs between groups.

    per_class: class -> largest difference between two groups; nan where fewer than two groups are defined.
    rates: class -> group -> share predicted right (true positive rate), nan where undefined.
    rms, abs, max: root mean square, mean and maximum of the gaps that are defined; nan if none is.
    undefined: what is missing, by name. While it is not empty the gaps are those of the rest only.
    """

    per_class: dict[Any, float]
    rates: dict[Any, dict[Any, float]]
    rms: float
    abs: float
    max: float
    undefined: tuple[str, ...]

    def __str__(self) -> str:
        known = int(np.isfinite(list(self.per_class.values())).sum())
        text = f"TPR gaps: RMS {self.rms:.3f}, mean {self.abs:.3f}, max {self.max:.3f} over {known} of "
        return text + f"{len(self.per_class)} classes" + _and_undefined(self.undefined)


def tpr_gaps(
    y: ArrayLike, predicted: ArrayLike, group: ArrayLike | Mapping[Any, ArrayLike], *, min_count: int = 1
) -> TPRGaps:
    """Gap_k = |TPR_0k - TPR_1k| of each class k, or largest minus smallest with more than two groups.

    With two classes these are the differences of the true positive and the true negative rate.

    group: the group of each row, or name -> boolean mask (groups may then overlap).
    min_count: a rate needs at least so many rows of the class in the group; the paper's code uses 10 on Bios.

    >>> gaps = tpr_gaps([1, 1, 1, 1, 0, 0], [1, 0, 1, 1, 0, 0], ["a", "a", "b", "b", "a", "b"])
    >>> gaps.per_class
    {0: 0.0, 1: 0.5}
    >>> print(gaps)
    TPR gaps: RMS 0.354, mean 0.250, max 0.500 over 2 of 2 classes
    """
    truth, answer, missing = _labels(y, predicted)
    if min_count < 1:
        raise ValueError(f"min_count must be at least 1, got {min_count}")
    groups = _groups(group, len(truth))
    undefined = [] if len(groups) > 1 else [f"the gap between groups (there is only {_list(groups)})"]
    per_class: dict[Any, float] = {}
    rates: dict[Any, dict[Any, float]] = {}
    for k in _classes(truth, answer[~missing]):
        rates[k] = {}
        for name, members in groups.items():
            there = members & (truth == k)
            why = _too_few(int(there.sum()), min_count) or _missing_in(there & missing)
            if why:
                undefined.append(f"class {k!r} in group {name!r} ({why})")
            rates[k][name] = float("nan") if why else float(np.mean(answer[there] == k))
        known = [rate for rate in rates[k].values() if not np.isnan(rate)]
        per_class[k] = max(known) - min(known) if len(known) > 1 else float("nan")
    gaps = np.array([gap for gap in per_class.values() if not np.isnan(gap)])
    rms, mean, largest = (
        (float(np.sqrt(np.mean(gaps**2))), float(gaps.mean()), float(gaps.max())) if len(gaps) else (float("nan"),) * 3
    )
    return TPRGaps(per_class, rates, rms, mean, largest, tuple(undefined))


@dataclass(frozen=True)
class AccuracySpread:
    """How much accuracy differs between groups.

    accuracy, balanced_accuracy: group -> value, nan where undefined. Balanced accuracy needs rows of every class.
    accuracy_std, balanced_accuracy_std: standard deviation (ddof 0) over the groups that are defined; nan with fewer
    than two.
    undefined: what is missing, by name. While it is not empty the deviations are those of the rest only.
    """

    accuracy: dict[Any, float]
    balanced_accuracy: dict[Any, float]
    accuracy_std: float
    balanced_accuracy_std: float
    undefined: tuple[str, ...]

    def __str__(self) -> str:
        text = f"accuracy varies by {self.accuracy_std:.3f} (standard deviation), balanced accuracy by "
        return (
            text
            + f"{self.balanced_accuracy_std:.3f}, over {len(self.accuracy)} groups"
            + _and_undefined(self.undefined)
        )


def accuracy_spread(y: ArrayLike, predicted: ArrayLike, groups: ArrayLike | Mapping[Any, ArrayLike]) -> AccuracySpread:
    """Accuracy parity: accuracy and balanced accuracy of each group, and their standard deviations (ACC STD, BA STD).

    groups: name -> boolean mask (groups may overlap: the comments that mention each identity), or the group of each
    row.

    >>> print(accuracy_spread([0, 1, 0, 1], [0, 1, 1, 1], ["a", "a", "b", "b"]))
    accuracy varies by 0.250 (standard deviation), balanced accuracy by 0.250, over 2 groups
    """
    truth, answer, missing = _labels(y, predicted)
    masks = _groups(groups, len(truth))
    undefined = [] if len(masks) > 1 else [f"the deviation between groups (there is only {_list(masks)})"]
    accuracy: dict[Any, float] = {}
    balanced: dict[Any, float] = {}
    for name, members in masks.items():
        why = _too_few(int(members.sum()), 1) or _missing_in(members & missing)
        absent = [k for k in _classes(truth) if not np.any(members & (truth == k))]
        if why:
            undefined.append(f"group {name!r} ({why})")
        elif absent:
            undefined.append(f"balanced accuracy of group {name!r} (no rows of class {_list(absent)})")
        accuracy[name] = float("nan") if why else float(np.mean(truth[members] == answer[members]))
        balanced[name] = float("nan") if why or absent else balanced_accuracy(truth[members], answer[members])
    return AccuracySpread(accuracy, balanced, _std(accuracy), _std(balanced), tuple(undefined))


def _labels(y: ArrayLike, predicted: ArrayLike) -> tuple[Array, Array, Mask]:
    """Both as arrays (n,), and where the prediction is missing."""
    truth, answer = np.asarray(y), np.asarray(predicted)
    for name, array in (("y", truth), ("predicted", answer)):
        if array.ndim != 1:
            raise ValueError(f"{name} must be one label for each row, got shape {array.shape}")
    if len(truth) != len(answer):
        raise ValueError(f"y has {len(truth)} rows but predicted has {len(answer)}")
    if len(truth) == 0:
        raise ValueError("y is empty: there is nothing to score")
    if (truth.dtype.kind in "US") != (answer.dtype.kind in "US") and "O" not in truth.dtype.kind + answer.dtype.kind:
        raise ValueError(
            f"y holds {truth.dtype} and predicted {answer.dtype}, which are never equal; use the same labels in both"
        )
    missing = _missing(truth)
    if missing.any():
        raise ValueError(f"y is missing in {_places(np.flatnonzero(missing))}; leave these rows out explicitly")
    return truth, answer, _missing(answer)


def _groups(group: ArrayLike | Mapping[Any, ArrayLike], n: int) -> dict[Any, Mask]:
    """name -> members (n,), in the order given, or sorted."""
    if isinstance(group, Mapping):
        masks = {name: np.asarray(mask) for name, mask in group.items()}
        for name, mask in masks.items():
            if mask.shape != (n,) or mask.dtype != bool:
                raise ValueError(f"group {name!r} must be a boolean mask of {n} rows, got {mask.dtype} {mask.shape}")
        if not masks:
            raise ValueError("no group was given")
        return masks
    array = np.asarray(group)
    if array.shape != (n,):
        raise ValueError(f"group must be one label for each of the {n} rows, got shape {array.shape}")
    missing = _missing(array)
    if missing.any():
        raise ValueError(
            f"group is missing in {_places(np.flatnonzero(missing))}; leave these rows out, or make 'unknown' a group"
        )
    # A categorical column knows groups that have no member here; they are undefined, not absent.
    categories = getattr(getattr(group, "dtype", None), "categories", None)
    names = _classes(array) if categories is None else list(categories)
    return {name: array == name for name in names}


def _classes(*labels: Array) -> list[Any]:
    """The distinct labels as plain Python values, sorted if they can be."""
    distinct = {label for array in labels for label in (array if array.dtype == object else np.unique(array)).tolist()}
    try:
        return sorted(distinct)
    except TypeError:
        return sorted(distinct, key=str)


def _versions(values: Variations | ArrayLike, ndim: int, expected: str, least: int) -> tuple[Array, Array]:
    """The array of versions and the row number of each individual."""
    versions = values if isinstance(values, Variations) else None
    array = versions.values if versions else np.asarray(values)
    if array.ndim != ndim:
        raise ValueError(f"expected {expected}, got shape {array.shape}")
    if array.shape[1] < least:
        raise ValueError(f"expected {expected}, at least {least} versions to compare, got {array.shape[1]}")
    return array, versions.rows if versions else np.arange(len(array))


def _mean_of_probabilities(name: str, p: Array, rows: Array, of_each: Callable[[Array], Array]) -> float:
    if len(p) == 0:
        return _undefined(f"{name}: nobody has versions")
    p = p.astype(np.float64)
    missing = np.isnan(p).reshape(len(p), -1).any(axis=1)
    if missing.any():
        return _undefined(f"{name}: a probability is nan in {_places(rows[missing])}")
    if p.min() < -1e-6 or p.max() > 1 + 1e-6:
        raise ValueError(
            f"{name} expects probabilities between 0 and 1, got {p.min():g} to {p.max():g}; are these logits?"
        )
    return float(np.mean(of_each(p)))


def _missing(array: Array) -> Mask:
    """Where the array holds None, NaN, NaT or NA."""
    if array.dtype.kind in "fcmM":
        return np.isnan(array)
    if array.dtype.kind != "O":
        return np.zeros(array.shape, dtype=bool)
    flat = [value is None or type(value).__name__ == "NAType" or value != value for value in array.ravel().tolist()]
    return np.array(flat, dtype=bool).reshape(array.shape)


def _std(values: dict[Any, float]) -> float:
    known = [value for value in values.values() if not np.isnan(value)]
    return float(np.std(known)) if len(known) > 1 else float("nan")  # one group alone does not vary: undefined, not 0


def _too_few(count: int, least: int) -> str:
    return "" if count >= least else "no rows" if count == 0 else f"{count} rows, fewer than {least}"


def _missing_in(missing: Mask) -> str:
    return f"predicted is missing in {_places(np.flatnonzero(missing))}" if missing.any() else ""


def _places(rows: Array) -> str:
    shown = ", ".join(str(row) for row in rows[:5])
    return (
        f"row {shown}" if len(rows) == 1 else f"rows {shown}" + (f" and {len(rows) - 5} more" if len(rows) > 5 else "")
    )


def _list(names: Any) -> str:
    return ", ".join(repr(name) for name in names)


def _and_undefined(undefined: tuple[str, ...]) -> str:
    more = f" and {len(undefined) - 5} more" if len(undefined) > 5 else ""
    return f"; undefined: {'; '.join(undefined[:5])}{more}" if undefined else ""


def _undefined(message: str) -> float:
    warnings.warn(f"{message}; the score is undefined (nan)", UndefinedScoreWarning, stacklevel=3)
    return float("nan")
