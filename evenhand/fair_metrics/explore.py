"""EXPLORE: the metric from pairs of which somebody has said whether they are comparable."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.fair_metrics.metric import FairMetric

__all__ = ["explore"]

Array = NDArray[np.float64]


def explore(
    x1: ArrayLike,
    x2: ArrayLike,
    comparable: ArrayLike,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    max_pairs: int = 20_000,
    random_state: int | None = 0,
) -> FairMetric:
    """The most likely Sigma under P(comparable | x, x') = 2 / (1 + exp(d_X(x, x'))) (Mukherjee et al. 2020).

    x1, x2: (n, d), the pairs; comparable: (n,) of 0/1 or booleans, both answers among them.
    The likelihood is concave in Sigma: projected gradient with Barzilai-Borwein steps and backtracking, each step
    projected onto the positive semi-definite matrices, until the mean log-likelihood gains less than `tol` (in sum
    over ten steps) or `max_iter` steps are done. Of more than `max_pairs` pairs that many are drawn with
    `random_state`; nothing else is random.

    >>> import numpy as np
    >>> step = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])  # differences along the first are fine
    >>> explore(0 * step, step, [1, 1, 0, 1]).sigma.numpy().round(2) + 0.0      # log(1 + 2 * 1/1) for the second
    array([[0. , 0. ],
           [0. , 1.1]])
    """
    differences, same = _pairs(x1, x2, comparable)
    if len(differences) > max_pairs:
        drawn = np.random.default_rng(random_state).choice(len(differences), max_pairs, replace=False)
        differences, same = differences[drawn], same[drawn]
    # One scale for all features, so that the start is at a distance of about one and float64 never overflows.
    scale = float(np.sqrt(np.square(differences).sum(axis=1).mean()))
    if scale == 0:
        raise ValueError("x1 and x2 are equal in every pair, so there is nothing to learn from")
    sigma = _fit(differences / scale, same, tol, max_iter) / scale**2
    dtype = np.result_type(_dtype(x1), _dtype(x2))
    return FairMetric(sigma=sigma.astype(dtype if dtype in (np.float32, np.float64) else np.float64))


def log_likelihood(d: Array, comparable: NDArray[np.bool_]) -> Array:
    """log P(answer | d) for each pair, exact for tiny and for huge d: -inf only for an incomparable pair at d = 0."""
    falls = np.exp(-d)
    with np.errstate(divide="ignore"):  # log 0 = -inf is meant
        yes = -d - np.log1p(np.expm1(-d) / 2)  # log 2 - log(1 + e^d)
        rest = np.where(d < 1, np.log(-np.expm1(-d)), np.log1p(-np.where(d < 1, 0.0, falls)))  # log(1 - e^-d)
        no = rest - np.log1p(falls)  # log tanh(d / 2)
    return np.where(comparable, yes, no)


def slope(d: Array, comparable: NDArray[np.bool_]) -> Array:
    """The derivative of `log_likelihood` with respect to d: -sigmoid(d), or 1 / sinh(d)."""
    falls = np.exp(-d)
    return np.where(comparable, -1 / (1 + falls), 2 * falls / np.maximum(-np.expm1(-2 * d), 1e-300))


def _fit(z: Array, same: NDArray[np.bool_], tol: float, max_iter: int) -> Array:
    def value(sigma: Array) -> tuple[float, Array]:
        d = np.maximum(np.einsum("ni,ni->n", z @ sigma, z), 0.0)
        return float(-log_likelihood(d, same).mean()), d

    sigma = np.eye(z.shape[1])
    loss, d = value(sigma)
    step, losses = 1.0, [loss]
    gradient = -(z.T * slope(d, same)) @ z / len(z)
    for _ in range(max_iter):
        # Armijo along the projection arc; an incomparable pair at distance 0 makes the loss infinite: a shorter step.
        while True:
            tried = _psd(sigma - step * gradient)
            move = tried - sigma
            new_loss, d = value(tried)
            if new_loss <= loss + 1e-4 * float((gradient * move).sum()) or step < 1e-12:
                break
            step /= 2
        if not new_loss <= loss:
            break  # no step improves: at the optimum to rounding
        new_gradient = -(z.T * slope(d, same)) @ z / len(z)
        change = new_gradient - gradient
        curvature = float((move * change).sum())
        step = min(max(float((move * move).sum()) / curvature, 1e-6), 1e6) if curvature > 0 else step * 2
        sigma, loss, gradient = tried, new_loss, new_gradient
        losses.append(loss)
        if len(losses) > 10 and losses[-11] - loss < tol:
            break
    else:
        warnings.warn(
            f"explore stopped after {max_iter} steps with a mean log-likelihood of {-loss:.4g} that still improves; "
            "raise max_iter or tol",
            stacklevel=3,
        )
    return sigma


def _psd(matrix: Array) -> Array:
    """The nearest positive semi-definite matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * values.clip(min=0)) @ vectors.T)


def _pairs(x1: ArrayLike, x2: ArrayLike, comparable: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    a, b, said = np.asarray(x1, dtype=np.float64), np.asarray(x2, dtype=np.float64), np.asarray(comparable)
    if a.ndim != 2 or a.shape != b.shape or said.shape != a.shape[:1]:
        raise ValueError(
            f"expected x1 and x2 of the same shape (n, d) and comparable (n,); "
            f"got {a.shape}, {b.shape} and {said.shape}"
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("x1 or x2 holds NaN or infinite values; clean them first")
    if said.dtype != bool and not np.isin(said, (0, 1)).all():
        raise ValueError(f"comparable must be 0 or 1 (or booleans), got {np.unique(said)[:5]}")
    same = said.astype(bool)
    if same.all() or not same.any():
        raise ValueError(
            f"comparable must hold both answers, got only {int(same[0]) if len(same) else 'no'} answers; "
            "with one of them alone the best metric is zero or infinite"
        )
    differences = a - b
    equal = ~same & (differences == 0).all(axis=1)
    if equal.any():
        raise ValueError(
            f"pair {int(np.flatnonzero(equal)[0])} is called incomparable but x1 and x2 are equal there; "
            "remove such pairs"
        )
    return differences, same


def _dtype(x: Any) -> np.dtype[Any]:
    return np.asarray(x).dtype
