"""scikit-learn models that are networks underneath, as modules whose outputs are their logits (or predictions)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from torch import nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "logistic": nn.Sigmoid}


def fitted_module(model: Any) -> nn.Module | None:
    """Linear models and perceptrons as an nn.Sequential in float64, None for anything else.

    A classifier of two classes gives the centred logits (-z/2, z/2), so that softmax of them is its ``predict_proba``.
    """
    if isinstance(model, LogisticRegression) and hasattr(model, "coef_"):
        binary = len(model.classes_) == 2
        if not binary and model.solver == "liblinear":
            return None  # one against the rest: its probabilities are no softmax
        return nn.Sequential(_linear(model.coef_, model.intercept_, binary))
    if isinstance(model, MLPClassifier | MLPRegressor) and hasattr(model, "coefs_"):
        if isinstance(model, MLPClassifier) and model.out_activation_ == "logistic" and model.n_outputs_ > 1:
            return None  # several labels at once
        parts: list[nn.Module] = []
        for i, (weight, bias) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
            last = i == len(model.coefs_) - 1
            binary = last and isinstance(model, MLPClassifier) and model.out_activation_ == "logistic"
            parts.append(_linear(weight.T, bias, binary))
            if not last and model.activation != "identity":
                parts.append(ACTIVATIONS[model.activation]())
        return nn.Sequential(*parts)
    return _by_coefficients(model)


def _by_coefficients(model: Any) -> nn.Module | None:
    """Whatever has ``coef_`` and ``intercept_`` and answers as they say: ridge, lasso, linear support vectors ..."""
    classes = getattr(model, "classes_", None)
    answer = getattr(model, "predict" if classes is None else "decision_function", None)
    if answer is None or not (hasattr(model, "coef_") and hasattr(model, "intercept_")):
        return None
    weight = np.atleast_2d(model.coef_.toarray() if hasattr(model.coef_, "toarray") else np.asarray(model.coef_))
    bias = np.asarray(model.intercept_, dtype=np.float64).ravel()
    if weight.ndim != 2 or len(bias) not in (1, len(weight)):
        return None
    outputs, bias = 1 if classes is not None and len(classes) == 2 else len(weight), np.broadcast_to(bias, len(weight))
    probe = np.concatenate([np.eye(weight.shape[1]), np.random.default_rng(0).normal(size=(16, weight.shape[1]))])
    names = getattr(model, "feature_names_in_", None)
    said = np.asarray(answer(probe if names is None else pd.DataFrame(probe, columns=names)), dtype=np.float64)
    meant = probe @ weight.T + bias
    if len(weight) != outputs or said.size != meant.size or not np.allclose(said.reshape(meant.shape), meant, 1e-9, 0):
        return None  # a link function, one against one, ...: not what the coefficients say
    return nn.Sequential(_linear(weight, bias, outputs == 1 and classes is not None))


def _linear(weight: Any, bias: Any, binary: bool) -> nn.Linear:
    weight, bias = np.asarray(weight, dtype=np.float64), np.asarray(bias, dtype=np.float64)
    if binary:
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    layer = nn.Linear(weight.shape[1], weight.shape[0]).to(torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weight.copy()))
        layer.bias.copy_(torch.from_numpy(bias.copy()))
    return layer
