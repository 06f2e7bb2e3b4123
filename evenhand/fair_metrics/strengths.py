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


def leading(scores: np.ndarray, target: np.ndarray, columns: int, weight: np.ndarray | None = None) -> np.ndarray:
    """The combinations of the scores that tell the groups apart, (k, r), the most telling first: a regression on C
    groups gives C - 1 directions whether the groups differ in so many or not, and a direction that says nothing about
    them would be free for nothing.

    scores: (n, k) of each person. These are the axes of a discriminant analysis; r is the least number, 1 or more, such
    that of no group, however small, the other axes take away WORTH of the uncertainty who belongs to it, beyond what as
    many parameters as there are columns gain by chance (Akaike's criterion).
    """
    weight = np.ones(len(target)) if weight is None else weight * max(1.0, len(target) / weight.sum())
    codes, share = np.unique(target, return_inverse=True)[1].reshape(-1), _shares(target, weight)
    scores = scores - np.average(scores, axis=0, weights=weight)
    spread = np.average(scores**2, axis=0, weights=weight) ** 0.5
    unit = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1.0), 0.0)  # whatever units the scores have
    scores = scores * unit
    values, axes = np.linalg.eigh((scores * weight[:, None]).T @ scores / weight.sum())
    known = values > 1e-10 * values.max()  # softmax coefficients sum to zero
    if not known.any():
        return np.eye(scores.shape[1], 1)  # all scores are alike
    white = axes[:, known] * values[known] ** -0.5
    sums = np.stack([np.bincount(codes, weights=weight * score) for score in scores.T], axis=1)
    means = sums / weight.sum() / share[:, None] @ white
    turn = np.linalg.eigh((means * share[:, None]).T @ means)[1][:, ::-1]
    most = min(len(turn), len(share) - 1)
    explained = np.square(means @ turn) * (share / (1 - share))[:, None]  # R^2 of each group's indicator, axis by axis
    rest = explained[:, :most].sum(1, keepdims=True) - explained[:, :most].cumsum(1)  # without the first r axes
    r = np.arange(1, most + 1)
    gain = -0.5 * np.log1p(-rest.clip(0.0, 1 - 1e-12)) - (columns - r) / weight.sum() * (r < most)
    uncertain = -share * np.log(share) - (1 - share) * np.log1p(-share)
    enough = (gain < WORTH * uncertain[:, None]).all(0)
    found: np.ndarray = unit[:, None] * white @ turn[:, : r[enough][0]]
    return found


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
