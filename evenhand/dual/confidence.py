"""Confidence bounds for the mean of independent variables in [0, high], and for a proportion.

Each ``*_upper(values, high, alpha)`` is at least the true mean with probability 1 - alpha, at every sample size and
for every distribution on [0, high]. They are plain functions: choose one before looking at the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

AT_ONCE = 8192  # numbers worked on together
UpperBound = Callable[[ArrayLike, float, float], float]


def hoeffding_upper(values: ArrayLike, high: float, alpha: float) -> float:
    """Hoeffding 1963: mean + high * sqrt(log(1/alpha) / 2n)."""
    sample = _checked(values, high, alpha)
    return min(high, float(sample.mean()) + high * math.sqrt(math.log(1 / alpha) / (2 * sample.size)))


def empirical_bernstein_upper(values: ArrayLike, high: float, alpha: float) -> float:
    """Maurer and Pontil 2009, Theorem 4: the width follows the sample's own variance."""
    sample = _checked(values, high, alpha)
    n, log_term = sample.size, math.log(2 / alpha)
    if n < 2:
        return high
    spread = math.sqrt(2 * float(sample.var(ddof=1)) * log_term / n)
    return min(high, float(sample.mean()) + spread + 7 * high * log_term / (3 * (n - 1)))


def betting_upper(values: ArrayLike, high: float, alpha: float) -> float:
    """Waudby-Smith and Ramdas 2024: a gambler who bets that the mean is below m earns 1/alpha only if it is.

    The stake on row i depends on the rows before it, so the rows must come in an order chosen without looking at
    them. The bound is the largest mean that the gambler's capital never refuted (Ville's inequality).
    """
    sample = _checked(values, high, alpha)
    n, log_goal = sample.size, math.log(1 / alpha)
    scaled = np.clip(sample / high, 0.0, 1.0) if high > 0 else np.zeros(n)
    count = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(scaled)) / (count + 1)
    variance = (0.25 + np.cumsum((scaled - mean) ** 2)) / (count + 1)
    before = np.concatenate([[0.25], variance[:-1]])  # predictable: row i uses rows 1 .. i-1 only
    stake = np.sqrt(2 * log_goal / (n * before))

    def refuted(m: NDArray[np.float64]) -> NDArray[np.bool_]:
        most = 0.75 / np.maximum(1.0 - m, 1e-12)[:, None]  # never more than three quarters of the capital
        won = np.log1p(-np.minimum(stake, most) * (scaled - m[:, None]))
        return np.asarray(won.cumsum(1).max(1) >= log_goal)

    below, above = float(scaled.mean()), 1.0  # never below the sample's own mean
    if high == 0 or not refuted(np.array([above]))[0]:
        return high
    at_once = min(max(AT_ONCE // n, 1), 31)
    while above - below > 1e-9 * above + 1e-15:  # the capital grows with m; above has been refuted all along
        means = np.linspace(below, above, at_once + 2)
        first = 1 + int(np.append(refuted(means[1:-1]), True).argmax())
        below, above = float(means[first - 1]), float(means[first])
    return high * above


def lower_bound(upper: UpperBound, values: ArrayLike, high: float, alpha: float) -> float:
    """A lower confidence bound for the mean, from an upper one by reflection: values -> high - values."""
    return max(0.0, high - upper(high - np.asarray(values, dtype=np.float64), high, alpha))


def clopper_pearson_upper(count: int, n: int, alpha: float) -> float:
    """Exact upper bound on a probability of which ``count`` successes in ``n`` trials were seen."""
    _check_count(count, n, alpha)
    return 1.0 if count == n else float(betaincinv(count + 1, n - count, 1 - alpha))


def clopper_pearson_lower(count: int, n: int, alpha: float) -> float:
    """Exact lower bound on a probability of which ``count`` successes in ``n`` trials were seen."""
    _check_count(count, n, alpha)
    return 0.0 if count == 0 else float(betaincinv(count, n - count + 1, alpha))


def check_statement(eps: float, confidence: float) -> None:
    """Whether a statement at this eps and confidence makes sense."""
    if not (math.isfinite(eps) and eps >= 0):
        raise ValueError(f"eps must be a finite number, at least 0 (a squared fair distance); got {eps}")
    if not 0 < confidence < 1:
        hint = f"; for {confidence:g} % give confidence={confidence / 100:g}" if 1 < confidence < 100 else ""
        raise ValueError(f"confidence must lie strictly between 0 and 1; got {confidence}{hint}")


def _check_count(count: int, n: int, alpha: float) -> None:
    if not (0 <= count <= n and n > 0 and 0 < alpha < 1):
        raise ValueError(f"expected 0 <= count <= n, n > 0 and 0 < alpha < 1; got count={count}, n={n}, alpha={alpha}")


def _checked(values: ArrayLike, high: float, alpha: float) -> NDArray[np.float64]:
    sample = np.asarray(values, dtype=np.float64).ravel()
    if sample.size == 0:
        raise ValueError("a confidence bound needs at least one value; got an empty sample")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1; got {alpha}")
    slack = 1e-9 * max(high, 1e-300)
    if not (np.isfinite(sample).all() and sample.min() >= -slack and sample.max() <= high + slack):
        raise ValueError(
            f"every value must lie in [0, {high:g}]; got {sample.min():g} .. {sample.max():g}; "
            "the range must be one that was known before the sample was drawn"
        )
    return sample
