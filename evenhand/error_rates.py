"""Who is wrongly flagged and who is wrongly missed: errors of a score at a threshold, overall and for each group.

A model can treat every identity alike by flagging them all. Consistency does not see that; these numbers do.
Undefined is never fair: a group without rows of a class has no rate (nan), and is named.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand.copies import first_of_each
from evenhand.dual.confidence import clopper_pearson_lower, clopper_pearson_upper
from evenhand.evaluation import UndefinedScoreWarning

__all__ = [
    "ErrorRates",
    "FlagsMoreWarning",
    "auc",
    "equal_error_rate",
    "error_rates",
    "flags_more",
    "rate_interval",
    "threshold_at",
]

Floats = NDArray[np.float64]


class FlagsMoreWarning(UserWarning):
    """Consistency was bought by flagging more people who did nothing; the message says how many more."""


def auc(y: ArrayLike, score: ArrayLike) -> float:
    """The share of pairs, one of each class, in which the positive has the higher score; ties count half.

    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    truth, value = _checked(y, score)
    if not _both(truth, "AUC"):
        return float("nan")
    _, place, count = np.unique(value, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]  # the mean rank of equal scores
    positives = int(truth.sum())
    above = float(rank[truth].sum()) - positives * (positives + 1) / 2
    return above / (positives * (len(truth) - positives))


def equal_error_rate(y: ArrayLike, score: ArrayLike) -> float:
    """The error at the threshold where as large a share of the negatives is flagged as of the positives is missed.

    >>> equal_error_rate([0, 0, 1, 1], [0.1, 0.6, 0.5, 0.9])
    0.5
    """
    truth, value = _checked(y, score)
    if not _both(truth, "the equal error rate"):
        return float("nan")
    fpr, fnr, _ = _curves(truth, value)
    crossed = int(np.argmax(fpr >= fnr))  # fpr rises and fnr falls as the threshold does
    if crossed == 0 or fpr[crossed] == fnr[crossed]:
        return float(fpr[crossed])
    low, high = crossed - 1, crossed
    gap = (fnr[low] - fpr[low]) + (fpr[high] - fnr[high])
    t = (fnr[low] - fpr[low]) / gap
    return float(fpr[low] + t * (fpr[high] - fpr[low]))


def threshold_at(y: ArrayLike, score: ArrayLike, fpr: float) -> float:
    """The lowest threshold at which at most a share `fpr` of the negatives is flagged (score >= threshold).

    >>> threshold_at([0, 0, 0, 0, 1], [0.1, 0.2, 0.3, 0.9, 0.8], fpr=0.25)
    0.8
    """
    truth, value = _checked(y, score)
    if not 0 <= fpr <= 1:
        raise ValueError(f"fpr is a share between 0 and 1, got {fpr}")
    if not _both(truth, "the threshold"):
        return float("nan")
    rates, _, thresholds = _curves(truth, value)
    return float(thresholds[np.flatnonzero(rates <= fpr)[-1]])


@dataclass(frozen=True)
class ErrorRates:
    """Shares of the negatives that are flagged (fpr) and of the positives that are missed (fnr).

    fpr_of, fnr_of: group -> rate, nan where undefined. counts: group -> (negatives, positives).
    fped, fned: sum over the groups of |rate of the group - rate of all| (false positive and false negative equality
    difference, Dixon et al. 2018), of the groups that are defined; nan if none is.
    undefined: what is missing, by name.
    fpr_interval_of, fnr_interval_of: group -> (low, high), exact for independent rows (Clopper and Pearson), of each
    group by itself; (nan, nan) where undefined. copies: rows that repeat another's text and were not counted.
    """

    fpr: float
    fnr: float
    fpr_of: dict[Any, float]
    fnr_of: dict[Any, float]
    counts: dict[Any, tuple[int, int]]
    fped: float
    fned: float
    undefined: tuple[str, ...]
    fpr_interval_of: dict[Any, tuple[float, float]] = field(default_factory=dict)
    fnr_interval_of: dict[Any, tuple[float, float]] = field(default_factory=dict)
    copies: int = 0

    def __str__(self) -> str:
        text = f"false positives {self.fpr:.3f}, false negatives {self.fnr:.3f}; over {len(self.fpr_of)} groups FPED "
        more = f"; undefined: {'; '.join(self.undefined[:5])}" if self.undefined else ""
        repeat = "row that repeats another was" if self.copies == 1 else "rows that repeat another were"
        more += f"; {self.copies:,} {repeat} not counted" if self.copies else ""
        return text + f"{self.fped:.2f}, FNED {self.fned:.2f}{more}"


def error_rates(
    y: ArrayLike,
    flagged: ArrayLike,
    groups: Mapping[Any, ArrayLike],
    texts: Sequence[Any] | None = None,
    confidence: float = 0.95,
) -> ErrorRates:
    """False positive and false negative rates, of all rows and of each group (name -> mask; groups may overlap).

    texts: what each row says, a text or the cells of a row. A text that was pasted five times is one text and would
    buy confidence that nobody has: of rows that are equal in text, class, answer and groups the first one counts.
    confidence: of the intervals.

    >>> rates = error_rates([0, 0, 0, 0, 1, 1], [1, 0, 0, 0, 1, 0], {"a": [1, 1, 0, 0, 1, 0], "b": [0, 0, 1, 1, 0, 1]})
    >>> rates.fpr, rates.fpr_of, rates.fped
    (0.25, {'a': 0.5, 'b': 0.0}, 0.5)
    """
    truth, answer = _marks("y", y), _marks("flagged", flagged)
    if truth.ndim != 1 or truth.shape != answer.shape or len(truth) == 0:
        raise ValueError(f"y and flagged must be one label for each row, got shapes {truth.shape} and {answer.shape}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is a share between 0 and 1, got {confidence}")
    masks = {name: _marks(f"group {name!r}", mask) for name, mask in groups.items()}
    for name, mask in masks.items():
        if mask.shape != truth.shape:
            raise ValueError(f"group {name!r} must be a mask of {len(truth)} rows, got shape {mask.shape}")
    once, n = _once(texts, [truth, answer, *masks.values()]), len(truth)
    truth, answer, masks = truth[once], answer[once], {name: mask[once] for name, mask in masks.items()}
    undefined: list[str] = []
    rates: list[dict[Any, float]] = []
    intervals: list[dict[Any, tuple[float, float]]] = []
    overall: list[float] = []
    for positive, what in ((False, "harmless"), (True, "harmful")):
        wrong = answer != positive
        there = truth == positive
        overall.append(float(wrong[there].mean()) if there.any() else float("nan"))
        of: dict[Any, float] = {}
        within: dict[Any, tuple[float, float]] = {}
        for name, mask in masks.items():
            members = mask & there
            of[name] = float(wrong[members].mean()) if members.any() else float("nan")
            within[name] = rate_interval(int(wrong[members].sum()), int(members.sum()), confidence)
            if not members.any():
                undefined.append(f"group {name!r} has no {what} rows")
        rates.append(of)
        intervals.append(within)
    counts = {name: (int((mask & ~truth).sum()), int((mask & truth).sum())) for name, mask in masks.items()}
    fped, fned = (_equality(of, rate) for of, rate in zip(rates, overall))
    return ErrorRates(
        overall[0], overall[1], rates[0], rates[1], counts, fped, fned, tuple(undefined),
        intervals[0], intervals[1], n - len(truth),
    )  # fmt: skip


def rate_interval(count: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a rate of which ``count`` were seen in n independent rows; (nan, nan) where n is 0."""
    tail = (1 - confidence) / 2
    if n == 0:
        return float("nan"), float("nan")
    return clopper_pearson_lower(count, n, tail), clopper_pearson_upper(count, n, tail)


def _once(texts: Sequence[Any] | None, marks: Sequence[NDArray[np.bool_]]) -> NDArray[np.intp]:
    """The rows that count: all, or where texts are given each of them once for the same marks."""
    n = len(marks[0])
    if texts is None:
        return np.arange(n, dtype=np.intp)
    said = np.asarray(texts, dtype=object)
    if said.ndim == 0 or len(said) != n:
        raise ValueError(
            f"texts must be one for each of the {n} rows, got {len(said) if said.ndim else 'a single one'}"
        )
    return first_of_each(zip(*said.reshape(n, -1).T, *marks))


def flags_more(plain: ErrorRates, fair: ErrorRates, tolerance: float = 0.02) -> str:
    """A sentence, and a warning, where the fair model flags more harmless rows than the plain one; "" where not."""
    if not fair.fpr > plain.fpr + tolerance:
        return ""
    sentence = (
        f"The fair model flags {100 * fair.fpr:.1f} % of harmless texts, the plain one {100 * plain.fpr:.1f} %: part "
        "of its consistency is that more is flagged. Compare them at an equal false positive rate (threshold_at), "
        "or train on `mentions`, or on more of them."
    )
    warnings.warn(sentence, FlagsMoreWarning, stacklevel=2)
    return sentence


def _equality(of: dict[Any, float], rate: float) -> float:
    known = [abs(value - rate) for value in of.values() if not np.isnan(value)]
    return float(np.sum(known)) if known and not np.isnan(rate) else float("nan")


def _curves(truth: NDArray[np.bool_], value: Floats) -> tuple[Floats, Floats, Floats]:
    """fpr, fnr and threshold, from the threshold that flags nobody to the one that flags everybody."""
    thresholds = np.unique(value)[::-1]
    flagged = [np.searchsorted(np.sort(value[truth == k]), thresholds, side="left") for k in (False, True)]
    negatives, positives = int((~truth).sum()), int(truth.sum())
    fpr = np.concatenate([[0.0], 1 - flagged[0] / negatives])
    fnr = np.concatenate([[1.0], flagged[1] / positives])
    return fpr, fnr, np.concatenate([[np.inf], thresholds])


def _checked(y: ArrayLike, score: ArrayLike) -> tuple[NDArray[np.bool_], Floats]:
    truth = _marks("y", y)
    try:
        value = np.asarray(score, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("score must be one number for each row, got other values; a label is no score") from None
    if truth.ndim != 1 or truth.shape != value.shape or len(truth) == 0:
        raise ValueError(f"y and score must be one number for each row, got shapes {truth.shape} and {value.shape}")
    if np.isnan(value).any():
        raise ValueError(f"score is nan in {int(np.isnan(value).sum())} rows; leave them out explicitly")
    return truth, value


def _marks(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    """Yes or no for each row; the text "no" and the score 0.3 would count as yes."""
    array = np.asarray(values)
    odd = array.dtype.kind not in "iufO" or bool(pd.isna(array).any())
    if array.dtype != bool and (odd or not np.isin(array, (0, 1)).all()):
        raise ValueError(
            f"{name} must hold 0 and 1, or False and True, got other values; compare first: labels == the positive "
            "class, score >= the threshold"
        )
    return array.astype(bool)


def _both(truth: NDArray[np.bool_], what: str) -> bool:
    if truth.all() or not truth.any():
        warnings.warn(f"{what} needs rows of both classes; the score is undefined (nan)", UndefinedScoreWarning, 3)
        return False
    return True
