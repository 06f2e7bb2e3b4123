"""Probabilities that mean what they say, and decisions at a stated threshold.

Training on class-balanced batches shifts the scores, and a fairness penalty squeezes them. Both are undone on other
rows by p = softmax(slope * h + offset). The slope goes into the last layer, or into the leaves of trees; the offset is
kept beside it, so that the decision stays the largest output, whatever judges it, and only probabilities are shifted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from torch import nn

from evenhand.ensembles.trees import TreeEnsemble

STRENGTH = 1.0  # of the pull towards slope 1 and towards the shift of the class shares, in people


def calibrate(estimator: Any, X: Any, y: ArrayLike, threshold: float | None = None) -> None:
    """Calibrate a fitted classifier of ours on rows that it was not trained on; sets ``offset_`` (K,).

    Decisions fall to the class whose probability is largest beside its share of the rows: there each class counts
    equally, whatever training made of the scores. With a ``threshold``, for two classes, they fall to the second where
    its probability is at least that. What a decision means in probability is ``decision_threshold(estimator)``.
    """
    trees: TreeEnsemble | None = getattr(estimator, "ensemble_", None)
    last = _last_linear(estimator.module_) if trees is None else None
    labels = np.asarray(y)
    unknown = int((~np.isin(labels, estimator.classes_)).sum())
    if unknown or len(labels) == 0:
        raise ValueError(
            f"y must hold labels that the estimator was trained with, {len(estimator.classes_)} of them; "
            f"{unknown} of {len(labels)} rows have another one"
        )
    codes = np.searchsorted(estimator.classes_, labels)
    slope, offset = fit_softmax(estimator._outputs(X), codes)
    wanted = decided_from(codes, len(offset), threshold)
    shift = offset - wanted
    if trees is not None:
        estimator.ensemble_ = trees.scaled(slope, shift[1] - shift[0] if trees.outputs == 1 else shift)
    elif last is not None:
        with torch.no_grad():
            last.weight.mul_(slope)
            last.bias.mul_(slope).add_(torch.as_tensor(shift, dtype=last.bias.dtype, device=last.bias.device))
    estimator.offset_ = wanted


def decided_from(codes: NDArray[Any], k: int, threshold: float | None) -> NDArray[np.float64]:
    """Logarithms of the probabilities beside which a decision weighs those of each class (K,), up to a constant."""
    if threshold is None:
        return _shares(codes, k)
    if k != 2 or not 0 < threshold < 1:
        raise ValueError(f"a threshold lies between 0 and 1 and needs two classes; got {threshold} for {k} classes")
    logit = np.log(threshold / (1 - threshold))
    return np.array([-logit / 2, logit / 2])


def decision_threshold(estimator: Any) -> float | None:
    """From which probability of the second class on it is decided for; None with more classes."""
    offset = getattr(estimator, "offset_", np.zeros(len(estimator.classes_)))
    return float(1 / (1 + np.exp(-(offset[1] - offset[0])))) if len(offset) == 2 else None


def fit_softmax(h: NDArray[np.float64], codes: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
    """Slope and offset (K,) with the largest likelihood of softmax(slope * h + offset), slightly pulled.

    The pull is towards slope 1 and towards the shift from equal classes to the shares seen here: few rows, or rows that
    the scores tell apart without a mistake, then do not make the scores infinite.
    """
    k = h.shape[1]
    h = h - h.mean(axis=1, keepdims=True)
    prior = _shares(codes, k)
    one_hot = np.eye(k)[codes]

    def objective(v: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        slope = np.exp(v[0])
        z = slope * h + v[1:]
        top = z.max(axis=1, keepdims=True)
        log_p = z - top - np.log(np.exp(z - top).sum(axis=1, keepdims=True))
        wrong = np.exp(log_p) - one_hot
        pull = STRENGTH * (v[0] ** 2 + ((v[1:] - prior) ** 2).sum())
        gradient = np.r_[
            slope * (wrong * h).sum() + 2 * STRENGTH * v[0], wrong.sum(axis=0) + 2 * STRENGTH * (v[1:] - prior)
        ]
        return float(-(one_hot * log_p).sum() + pull), gradient

    limits = [(np.log(0.02), np.log(50.0)), *[(-30.0, 30.0)] * k]
    found = minimize(objective, np.r_[0.0, prior], jac=True, method="L-BFGS-B", bounds=limits)
    offset: NDArray[np.float64] = found.x[1:] - found.x[1:].mean()
    return float(np.exp(found.x[0])), offset


def _shares(codes: NDArray[Any], k: int) -> NDArray[np.float64]:
    """Logarithms of the classes' shares, centred; none is zero."""
    share = np.log((np.bincount(codes, minlength=k) + 1) / (len(codes) + k))
    return np.asarray(share - share.mean())


def _last_linear(module: nn.Module) -> nn.Linear:
    layers = list(module.modules())
    last = layers[-1] if layers else module
    if not isinstance(last, nn.Linear) or last.bias is None:
        raise TypeError(f"calibration needs a network that ends in a Linear layer with bias; got {type(last).__name__}")
    return last
