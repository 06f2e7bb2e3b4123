"""scikit-learn models that are networks underneath, as modules whose outputs are their logits (or predictions)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from torch import nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "logistic": nn.Sigmoid}


def fitted_module(model: Any) -> nn.Module | None:
    """Linear and logistic regression and perceptrons as an nn.Sequential in float64, None for anything else.

    A classifier of two classes gives the centred logits (-z/2, z/2), so that softmax of them is its ``predict_proba``.
    """
    if isinstance(model, LogisticRegression) and hasattr(model, "coef_"):
        binary = len(model.classes_) == 2
        if not binary and model.solver == "liblinear":
            return None  # one against the rest: its probabilities are no softmax
        return nn.Sequential(_linear(model.coef_, model.intercept_, binary))
    if isinstance(model, LinearRegression | Ridge | Lasso | ElasticNet) and hasattr(model, "coef_"):
        weight = np.atleast_2d(model.coef_)
        return nn.Sequential(_linear(weight, np.broadcast_to(model.intercept_, len(weight)), False))
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
    return None


def _linear(weight: Any, bias: Any, binary: bool) -> nn.Linear:
    weight, bias = np.asarray(weight, dtype=np.float64), np.asarray(bias, dtype=np.float64)
    if binary:
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    layer = nn.Linear(weight.shape[1], weight.shape[0]).to(torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weight.copy()))
        layer.bias.copy_(torch.from_numpy(bias.copy()))
    return layer
