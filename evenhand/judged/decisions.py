"""Who decides, and from which score on: the estimator behind searches and thresholds, held against predict()."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from torch import Tensor, nn

from evenhand.judged.answers import asked_for, several_labels

TIE = 1e-4  # of the spread of the scores: nearer to the threshold rounding decides
HAIR = 1e-9  # below a threshold that must only be reached


def scores(h: Tensor, own: Tensor | None = None) -> Tensor:
    """The one number that a decision looks at, (n, K) -> (n,): the output itself, the second logit minus the first, or,
    with more classes, how far the person's own class (``own``, by default the largest) is above the best other."""
    k = h.shape[-1]
    if k == 1:
        return h[..., 0]
    if k == 2:
        return h[..., 1] - h[..., 0]
    own = h.argmax(-1) if own is None else own
    others = h.scatter(-1, own[..., None], -torch.inf)
    return h.gather(-1, own[..., None])[..., 0] - others.amax(-1)


class Threshold(NamedTuple):
    """The second class (or the first) where the answer of a method is at least ``value``; without a method, the score.

    The answer of ``predict_proba`` is a probability, that of ``decision_function`` the score itself.
    """

    value: float
    method: str = ""
    second: bool = True

    def score(self, estimator: Any) -> float:
        """The score above which the second class is decided for."""
        at = self.value
        if self.method == "predict_proba":
            with np.errstate(divide="ignore"):
                p = np.clip(at, 0.0, 1 - 2.0**-53)  # a probability of 1 is reached, by some
                at = float(np.log(p) - np.log1p(-p))
        at = at if self.second else -at
        if self.method == "predict_proba":  # networks of ours keep what calibration adds to the logits beside them
            offset = np.ravel(getattr(estimator, "offset_", 0.0))
            at -= float(offset[1] - offset[0]) if len(offset) == 2 else 0.0
        hair = HAIR * max(1.0, abs(at)) if np.isfinite(at) else 0.0
        return at - hair if self.second else at + hair


class Behind(NamedTuple):
    """What stands behind a model: the steps before the last estimator, this estimator, and by what it decides."""

    estimator: Any
    steps: Pipeline | None
    threshold: Threshold | None
    asked: Any  # whose predict takes what the last estimator takes, and decides as the model does; None: there is none

    def said(self, x: Tensor, columns: list[str] | None = None) -> NDArray[Any] | None:
        """What the model decides for rows x (n, d) as the last estimator takes them; None where nobody can be asked."""
        if self.asked is not None:
            knows = hasattr(self.asked, "predict") and not isinstance(self.asked, nn.Module)
            return np.asarray(asked_for("predict", self.asked, x, columns)) if knows else None
        if self.threshold is None or not self.threshold.method:
            return None
        answer = np.asarray(asked_for(self.threshold.method, self.estimator, x, columns))
        of_second = answer[:, int(self.threshold.second)] if answer.ndim == 2 else answer
        if answer.ndim == 1 and not self.threshold.second:
            of_second = -of_second
        yes = of_second >= self.threshold.value
        first, second = self.estimator.classes_
        decided: NDArray[Any] = np.where(yes == self.threshold.second, second, first)
        return decided


def behind(model: Any) -> Behind:
    """A search stands for what it chose, a threshold or a frozen estimator for the estimator it was put around."""
    before: list[Pipeline] = []
    threshold: Threshold | None = None
    asked = model
    while True:
        if isinstance(model, nn.Module):
            break
        if isinstance(model, Pipeline):
            before += [model[:-1]] if len(model) > 1 else []
            model = model[-1]
            asked = model if threshold is None else None
        elif any(kind.__name__ == "BaseThresholdClassifier" for kind in type(model).__mro__):
            threshold, model = threshold or _put_around(model), getattr(model, "estimator_", model.estimator)
        elif hasattr(model, "best_estimator_"):
            asked = model = model.best_estimator_
        elif type(model).__name__ == "FrozenEstimator":
            model = model.estimator
        elif hasattr(model, "pipeline_") and hasattr(model, "calibration_"):  # a TextClassifier
            threshold, asked, model = threshold or _calibrated(model), None, model.pipeline_
        else:
            break
    steps = before[0] if len(before) == 1 else None
    if len(before) > 1:
        steps = Pipeline([(f"{i}-{name}", step) for i, part in enumerate(before) for name, step in part.steps])
    return Behind(model, steps, threshold, asked)


def decides_as_predicted(
    behind: Behind,
    classes: NDArray[Any] | None,
    x: Tensor,
    h: Tensor,
    threshold: float,
    columns: list[str] | None = None,
) -> bool:
    """Whether predict() decides, for rows x (n, d) with outputs h (n, K), as the outputs and the threshold do; where it
    does not it is said, since then nothing can be said of decisions. columns: as for ``answers.black_box``."""
    if classes is None:
        return True
    try:
        said = behind.said(x, columns)
        if said is not None and len(said) != len(x):
            raise TypeError("one answer for each person")
    except Exception as error:  # a predict of somebody's own, for other rows perhaps; the outputs are known without it
        warnings.warn(
            f"predict() cannot be asked what it decides ({type(error).__name__}), so nothing is said of decisions; "
            "give threshold=, the score from which on the answer is yes",
            stacklevel=3,
        )
        return False
    if said is None:
        return True
    if said.ndim == 2 and said.shape[1] > 1:
        raise several_labels(said.shape[1])
    said, k = said.ravel(), h.shape[1]
    if k != len(classes) or k < 2 or not np.isin(said, classes).any():
        return True
    score = scores(h)
    own = (score > threshold).long() if k == 2 else h.argmax(1)
    apart = (score - threshold).abs() if k == 2 else score
    clear = apart > TIE * float((score - score.mean()).abs().max() + 1e-3 * h.abs().max())
    wrong = int((clear.numpy() & (said != np.asarray(classes)[own.numpy()])).sum())
    if wrong:
        warnings.warn(
            f"predict() decides otherwise than the model's outputs for {wrong} of {len(x)} people, so nothing is said "
            "of decisions; if it says yes from some score on (the second logit minus the first, log(p / (1 - p)) of a "
            "probability p), give threshold=",
            stacklevel=3,
        )
    return not wrong


def refuse_several_labels(model: Any) -> None:
    """Estimators of several labels for each person, as far as they say so before they are asked."""
    classes = getattr(model, "classes_", None)
    if isinstance(classes, list) and classes and isinstance(classes[0], np.ndarray | list):
        raise several_labels(len(classes))
    kind = getattr(getattr(model, "_label_binarizer", None), "y_type_", "")
    if getattr(model, "multilabel_", False) is True or str(kind).startswith("multilabel"):
        raise several_labels(len(classes) if classes is not None else None)


def refuse_scores_of_pairs(model: Any) -> None:
    """Support vectors that give a score for each pair of classes: these are no logits of the classes."""
    count = len(getattr(model, "classes_", ()))
    if getattr(model, "decision_function_shape", None) == "ovo" and count > 2:
        raise ValueError(
            f"the model gives a score for each of the {count * (count - 1) // 2} pairs of its {count} classes, and not "
            'one for each class; say model.set_params(decision_function_shape="ovr"), it need not be trained again'
        )


def _put_around(model: Any) -> Threshold:
    """The threshold of scikit-learn's FixedThresholdClassifier or TunedThresholdClassifierCV."""
    method = model.response_method
    if method == "auto":
        inside = getattr(model, "estimator_", model.estimator)
        method = "predict_proba" if hasattr(inside, "predict_proba") else "decision_function"
    value = getattr(model, "best_threshold_", getattr(model, "threshold", "auto"))
    if value == "auto":
        value = 0.5 if method == "predict_proba" else 0.0
    positive = getattr(model, "pos_label", None)
    if hasattr(model, "_curve_scorer"):
        positive = model._curve_scorer._get_pos_label()
    return Threshold(float(value), method, positive is None or bool(positive == model.classes_[1]))


def _calibrated(model: Any) -> Threshold | None:
    """Where the calibrated probability of a TextClassifier of two classes reaches its threshold."""
    if len(model.classes_) != 2:
        return None
    with np.errstate(divide="ignore"):
        odds = float(np.log(model.threshold_) - np.log1p(-model.threshold_))
    return Threshold((odds - model.calibration_.shift) / model.calibration_.slope)
