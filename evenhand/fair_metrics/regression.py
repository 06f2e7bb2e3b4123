"""The regressions behind a metric, fitted to the end in any units: what stops degrees short frees something else."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

__all__ = ["distinct", "fit_to_the_end", "newton", "regression"]

LARGE = 2e9  # operations of a Newton step, rows times unknowns squared, above which many cheap steps are taken


def regression(penalty: float, target: np.ndarray, shape: tuple[int, ...]) -> Any:
    """A logistic or softmax regression that is fitted to the end: where it hardly regularises, the usual tolerance
    stops degrees short of the direction, and where depends on the units."""
    from sklearn.linear_model import LogisticRegression

    groups = len(distinct(target))
    unknowns = (shape[1] + 1) * (groups if groups > 2 else 1)
    if shape[0] * unknowns**2 <= LARGE:
        return LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-8, max_iter=200)
    return LogisticRegression(C=1 / penalty, tol=1e-6, max_iter=20_000)


def fit_to_the_end(model: Any, x: np.ndarray, target: np.ndarray, weight: np.ndarray | None) -> None:
    """Fit it, whatever units the columns have: scikit-learn's solvers give up, or warn, where they differ much."""
    from scipy.linalg import LinAlgWarning
    from sklearn.linear_model import Ridge

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(x, target, **({} if weight is None else {"sample_weight": weight}))
    given_up = any(issubclass(one.category, LinAlgWarning) for one in said)
    each = np.ones(len(x)) if weight is None else weight
    if given_up and getattr(model, "solver", None) == "newton-cholesky":
        rows = np.concatenate([x, np.ones((len(x), 1))], axis=1)
        l2 = 1 / model.C / each.sum()
        weights, _ = newton(lambda: iter([(rows, target, each)]), model.classes_, x.shape[1], l2, 200)
        weights = weights[1:] - weights[:1] if len(model.classes_) == 2 else weights
        model.coef_, model.intercept_ = weights[:, :-1], weights[:, -1]
        return
    if given_up and type(model) is Ridge:
        model.coef_, model.intercept_ = _ridge(x, target, each, model.alpha)
        return
    for one in said:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _ridge(x: np.ndarray, target: np.ndarray, weight: np.ndarray, alpha: float) -> tuple[np.ndarray, float]:
    """Slopes (d,) and intercept that minimise sum_i weight_i * error_i^2 + alpha |slopes|^2."""
    middle, mean = np.average(x, axis=0, weights=weight), float(np.average(target, weights=weight))
    z = x - middle
    bend = (z * weight[:, None]).T @ z + alpha * np.eye(x.shape[1])
    unit = bend.diagonal() ** -0.5  # whatever units the columns have
    slopes = unit * np.linalg.solve(unit[:, None] * bend * unit, unit * (z.T @ (weight * (target - mean))))
    return slopes, mean - float(middle @ slopes)


def newton(pieces: Any, classes: np.ndarray, d: int, l2: float, max_passes: int) -> tuple[np.ndarray, int]:
    """Weights (C, d + 1) of a softmax regression. For two classes the first is held at zero: logistic regression.
    pieces() gives rows, targets and as how many each row counts."""
    c, free = len(classes), len(classes) if len(classes) > 2 else 1
    penalty = np.tile(np.append(np.full(d, l2), 0.0), free)
    move: Any = np.zeros(free * (d + 1))
    w, kept, loss_kept = move, move, np.inf
    passes = 0
    while passes < max_passes:
        passes += 1
        loss, slope, curvature, n = 0.0, np.zeros((free, d + 1)), np.zeros((free, d + 1, free, d + 1)), 0
        full = np.concatenate([np.zeros((c - free, d + 1)), w.reshape(free, d + 1)])
        for x, target, each in pieces():
            logits = x @ full.T
            logits -= logits.max(axis=1, keepdims=True)
            p = np.exp(logits)
            total = p.sum(axis=1, keepdims=True)
            place = np.searchsorted(classes, target)
            loss += float(each @ (np.log(total[:, 0]) - logits[np.arange(len(x)), place]))
            p = (p / total)[:, c - free :]
            error = each[:, None] * (p - (place[:, None] == np.arange(c - free, c)))
            slope += error.T @ x
            for i in range(free):
                for j in range(i, free):
                    block = x.T @ ((each * p[:, i] * ((i == j) - p[:, j]))[:, None] * x)
                    curvature[i, :, j] += block
                    if i != j:
                        curvature[j, :, i] += block
            n += each.sum()
        loss = loss / n + 0.5 * float(penalty @ w**2)
        if loss > loss_kept + 1e-12 * abs(loss_kept):  # too far: half the way
            move = move / 2
            w = kept + move
            continue
        gradient = slope.ravel() / n + penalty * w
        kept, loss_kept = w, loss
        size = free * (d + 1)
        hessian = curvature.reshape(size, size) / n + np.diag(penalty)
        unit = np.where(np.diag(hessian) > 0, np.diag(hessian), 1.0) ** -0.5  # whatever units the columns have
        if np.abs(unit * gradient).max() < 1e-9:
            break
        move = -unit * np.linalg.lstsq(unit[:, None] * hessian * unit, unit * gradient, rcond=1e-12)[0]
        w = kept + move
        if np.abs(move).max() < 1e-10 * (1 + np.abs(kept).max()):
            break
    else:
        warnings.warn(f"the regression still improves after {max_passes} passes; raise max_passes", stacklevel=4)
    return np.concatenate([np.zeros((c - free, d + 1)), kept.reshape(free, d + 1)]), passes


def distinct(target: np.ndarray) -> np.ndarray:
    return np.unique(target.astype(str) if target.dtype == object else target)
