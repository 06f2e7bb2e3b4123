"""How strongly to regularise what predicts a sensitive attribute: strongly, and hardly where that tells more."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

STRENGTHS = (0.15, 1e-5)  # of l2, where none is given; the second finds husband and wife, the first all the rest
WORTH = 0.01  # of the uncertainty about an attribute: to take away less is not worth a free direction
ENOUGH = 100_000  # rows that are looked at


def adds(
    strong: np.ndarray,
    hardly: np.ndarray,
    target: np.ndarray,
    columns: int,
    numeric: bool,
    weight: np.ndarray | None = None,
) -> bool:
    """Whether the hardly regularised regression knows something of the attribute that the strong one does not.

    strong, hardly: (n, k) scores of each person; weight: (n,) as how many each of them counts. Where both found the
    same, their difference is noise, and to make it free would excuse a difference that says nothing about the
    attribute. So both together must leave less uncertainty than the strong one alone, by more than as many parameters
    as there are columns gain by chance (Akaike's criterion), and by WORTH of the whole.
    """
    if len(np.unique(target)) < 2:
        return False
    weight = np.ones(len(target)) if weight is None else weight * max(1.0, len(target) / weight.sum())  # may sum to one
    n = weight.sum()
    alone, both = (
        _unexplained(scores, target, numeric, weight) for scores in (strong, np.concatenate([strong, hardly], 1))
    )
    if numeric:
        chance = 2 * columns / n * both
    else:
        shares = _shares(target, weight)
        chance = columns * (len(shares) - 1) / n / -(shares * np.log(shares)).sum()
    return bool(alone - both - chance >= WORTH)


def _unexplained(scores: np.ndarray, target: np.ndarray, numeric: bool, weight: np.ndarray) -> float:
    """The share of the uncertainty about the attribute that is left by the best regression on the scores."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.metrics import log_loss

    scores = scores - np.average(scores, axis=0, weights=weight)
    spread = np.average(scores**2, axis=0, weights=weight) ** 0.5
    scores = scores / np.where(spread > 0, spread, 1.0)
    if numeric:
        return 1.0 - float(LinearRegression().fit(scores, target, weight).score(scores, target, weight))
    model: Any = LogisticRegression(C=1e4, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # groups that the scores separate: near zero is left
        model.fit(scores, target, weight)
    shares = _shares(target, weight)
    unknown = log_loss(target, model.predict_proba(scores), sample_weight=weight)
    return float(unknown / -(shares * np.log(shares)).sum())


def _shares(target: np.ndarray, weight: np.ndarray) -> np.ndarray:
    counts = np.bincount(np.unique(target, return_inverse=True)[1].reshape(-1), weights=weight)
    shares: np.ndarray = counts / weight.sum()
    return shares
