"""Parameters of the estimators as JSON, including the small objects of ours that they may hold."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch
from torch import nn

from evenhand import output_distances
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.files.boxes import read_box, write_box
from evenhand.regularizer import gradient_rule, ratio_rule
from evenhand.search import AdamAscent, GradientSearch, NormalisedAscent, SignAscent

OBJECTS: dict[str, type[Any]] = {
    "GradientSearch": GradientSearch,
    "gradient_rule": gradient_rule,
    "ratio_rule": ratio_rule,
}
FUNCTIONS: dict[str, Any] = {
    "AdamAscent": AdamAscent,
    "NormalisedAscent": NormalisedAscent,
    "SignAscent": SignAscent,
    **{
        name: getattr(output_distances, name)
        for name in ("mean_squared_logits", "absolute_probability", "total_variation", "squared_error")
    },
}


def write_parameters(estimator: Any, tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
    """``get_params`` as JSON; arrays go to the tensors. What cannot be kept is an error that names it."""
    return {name: _write(name, value, tensors) for name, value in estimator.get_params(deep=False).items()}


def read_parameters(given: Any, tensors: dict[str, torch.Tensor], metric: FairMetric) -> dict[str, Any]:
    """The parameters again; a metric (or what learned it) becomes the fitted metric."""
    if not isinstance(given, dict):
        raise TypeError("parameters must be a table of names and values")
    return {str(name): _read(value, tensors, metric) for name, value in given.items()}


def _write(name: str, value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.integer | np.floating | np.bool_):
        return value.item()
    if name == "fair_metric":
        return {"$": "metric"}  # a learner is a function: the metric it learned is kept in its place
    if name == "variations" or (name == "module" and (isinstance(value, nn.Module) or callable(value))):
        return None  # the data, and the unfitted network: the fitted one is kept
    if name in ("random_state", "optimizer", "callbacks"):
        return None  # training is over
    if name == "class_weight" and isinstance(value, dict):
        return {"$": "weights", "of": [[_write(name, c, tensors), float(w)] for c, w in value.items()]}
    if isinstance(value, tuple | list):
        return {"$": type(value).__name__, "values": [_write(name, item, tensors) for item in value]}
    if isinstance(value, Box):
        return {"$": "Box", "key": f"parameter.{name}", **write_box(value, tensors, f"parameter.{name}")}
    if isinstance(value, torch.Tensor | np.ndarray):
        key = f"parameter.{name}.{len(tensors)}"
        tensors[key] = torch.as_tensor(value)
        return {"$": "tensor", "key": key}
    if type(value).__name__ in OBJECTS and type(value) is OBJECTS[type(value).__name__]:
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        return {"$": type(value).__name__, "fields": {k: _write(k, v, tensors) for k, v in fields.items()}}
    for known, function in FUNCTIONS.items():
        if value is function:
            return {"$": "function", "name": known}
    raise ValueError(
        f"parameter {name}={value!r} cannot be saved without pickle; set it to something of evenhand's own, "
        f"or to None, with set_params({name}=None)"
    )


def _read(value: Any, tensors: dict[str, torch.Tensor], metric: FairMetric) -> Any:
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise TypeError("a bare list is not a parameter")
        return value
    kind = value["$"]
    if kind == "metric":
        return metric
    if kind in ("tuple", "list"):
        items = [_read(item, tensors, metric) for item in value["values"]]
        return tuple(items) if kind == "tuple" else items
    if kind == "weights":
        return {_read(label, tensors, metric): float(weight) for label, weight in value["of"]}
    if kind == "Box":
        return read_box(value, tensors, str(value["key"]))
    if kind == "tensor":
        key = value["key"]
        if not isinstance(key, str) or not key.startswith("parameter.") or key not in tensors:
            raise ValueError(f"a parameter names a tensor {str(key)[:60]!r} that is not there, or a second time")
        return tensors.pop(key)  # each once: a name costs nothing, what is built from it does
    if kind == "function":
        return FUNCTIONS[value["name"]]
    if kind in OBJECTS:
        return OBJECTS[kind](**{str(k): _read(v, tensors, metric) for k, v in value["fields"].items()})
    raise ValueError(f"unknown kind of parameter {kind!r}")
