"""export_onnx: preprocessing and model in one graph, where the columns allow it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from torch import nn

from evenhand.atomic import write_whole
from evenhand.files.graph import Graph, add_trees
from evenhand.tables.kinds import categories_of, numbers_of

__all__ = ["OnnxExportError", "export_onnx", "onnx_inputs"]

CODE_OF_UNKNOWN = -1


class OnnxExportError(ValueError):
    """The model cannot be written as one graph; the message says which part stands in the way."""


def export_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, or a Pipeline of scikit-learn preprocessing and an estimator, as an ONNX file.

    Inputs: one per column, (n, 1), float for numbers (NaN where missing), string for categories; an estimator alone has
    one input ``x`` (n, d). Outputs: ``label`` and ``probabilities`` (n, K) for classifiers, ``prediction`` otherwise,
    (n,) or (n, K). The preprocessing may hold SimpleImputer, scalers, OneHotEncoder and OrdinalEncoder in a
    ColumnTransformer; the network the layers that ``torch.nn.Sequential`` stacks: Linear, ReLU, LeakyReLU, Tanh,
    Sigmoid, BatchNorm1d, Dropout, Identity, Flatten.
    Boosted trees take and give doubles: a hard split asks on which side of a number one is, to the last digit.
    """
    try:
        import onnx
    except ImportError as error:
        raise ModuleNotFoundError("exporting needs onnx: pip install 'evenhand[onnx]'") from error
    steps, estimator = (
        ([s for _, s in model.steps[:-1]], model.steps[-1][1]) if isinstance(model, Pipeline) else ([], model)
    )
    trees = getattr(estimator, "ensemble_", None)
    if not hasattr(estimator, "module_") and trees is None:
        raise OnnxExportError("the model must be a fitted estimator of evenhand, or a Pipeline that ends in one")
    graph = Graph(np.float32 if trees is None else np.float64)
    if not steps:
        graph.input("x", "number", int(estimator.n_features_in_))
        features = "x"
    else:
        if len(steps) != 1 or not isinstance(steps[0], ColumnTransformer):
            named = ", ".join(type(step).__name__ for step in steps)
            raise OnnxExportError(f"before the estimator a single ColumnTransformer can be exported; got {named}")
        features = _columns(graph, steps[0])
    if trees is None:
        outputs = _network(graph, estimator.module_, features)
    else:
        outputs = add_trees(graph, trees, features)
        if trees.outputs == 1 and hasattr(estimator, "classes_"):
            half = graph.node("Mul", [outputs, graph.number(0.5)])
            outputs = graph.node("Concat", [graph.node("Neg", [half]), half], axis=1)
    _answer(graph, estimator, outputs, _numbers_of(estimator) if trees is None else trees.outputs)
    proto = graph.model()
    if hasattr(estimator, "classes_"):
        kept = proto.metadata_props.add()
        kept.key, kept.value = "classes", json.dumps(np.asarray(estimator.classes_).tolist())
    onnx.checker.check_model(proto)
    write_whole(path, proto.SerializeToString())


def onnx_inputs(session: Any, frame: pd.DataFrame) -> dict[str, Any]:
    """A frame as the inputs of an exported model: each column (n, 1), text as text, missing text as "(missing)"."""
    given: dict[str, Any] = {}
    for one in session.get_inputs():
        if one.name not in frame.columns:
            raise OnnxExportError(f"the model wants a column {one.name!r} which the table does not have")
        column = frame[one.name]
        if one.type == "tensor(string)":
            given[one.name] = categories_of(column).to_numpy(dtype=object)[:, None]
        else:
            kind = np.float64 if one.type == "tensor(double)" else np.float32
            given[one.name] = numbers_of(column, one.name).to_numpy(dtype=kind)[:, None]
    return given


def _columns(graph: Graph, transformer: ColumnTransformer) -> str:
    """Every part of the ColumnTransformer, joined in its order."""
    parts: list[str] = []
    declared: dict[str, str] = {}
    known = list(getattr(transformer, "feature_names_in_", []))
    if not known:
        raise OnnxExportError("the ColumnTransformer was fitted without column names; fit it on a frame")
    for _, part, columns in transformer.transformers_:
        names = _names(columns, known)
        if part == "drop" or not names:
            continue
        chain = [step for _, step in part.steps] if isinstance(part, Pipeline) else [part]
        chain = [step for step in chain if step != "passthrough"]
        encoder = chain[-1] if chain and isinstance(chain[-1], OneHotEncoder | OrdinalEncoder) else None
        for j, name in enumerate(names):
            text = encoder is not None and _is_text(encoder.categories_[j])
            kind = "string" if text else "number"
            if declared.get(name, kind) != kind:
                raise OnnxExportError(f"column {name!r} is used both as text and as a number")
            if name not in declared:
                graph.input(name, kind, 1)
                declared[name] = kind
            parts.append(_column(graph, name, chain, j, text))
    return graph.node("Concat", parts, axis=1)


def _column(graph: Graph, name: str, chain: Sequence[Any], j: int, text: bool) -> str:
    value = name
    fill: str | None = None
    for step in chain:
        if isinstance(step, SimpleImputer):
            if step.add_indicator:
                raise OnnxExportError("SimpleImputer(add_indicator=True) cannot be exported")
            if text:
                fill = str(step.statistics_[j])
            else:
                missing = graph.node("IsNaN", [value])
                value = graph.node("Where", [missing, graph.number(step.statistics_[j]), value])
        elif isinstance(step, OneHotEncoder):
            value = _one_hot(graph, value, step, j, text, fill)
        elif isinstance(step, OrdinalEncoder):
            value = _ordinal(graph, value, step, j, text, fill)
        else:
            value = _scale(graph, value, step, j)
    return value


def _scale(graph: Graph, value: str, step: Any, j: int) -> str:
    """(x - shift) * factor, in double so that large numbers keep their digits, clipped where the scaler clips."""
    low = high = None
    if isinstance(step, StandardScaler):
        shift = 0.0 if step.mean_ is None or not step.with_mean else step.mean_[j]
        factor = 1.0 if step.scale_ is None else 1 / step.scale_[j]
    elif isinstance(step, RobustScaler):
        shift = step.center_[j] if step.with_centering else 0.0
        factor = 1 / step.scale_[j] if step.with_scaling else 1.0
    elif isinstance(step, MaxAbsScaler):
        shift, factor = 0.0, 1 / step.scale_[j]
    elif isinstance(step, MinMaxScaler):
        shift, factor = -step.min_[j] / step.scale_[j], step.scale_[j]
        low, high = step.feature_range if step.clip else (None, None)
    else:
        raise OnnxExportError(f"{type(step).__name__} cannot be exported; use scalers, SimpleImputer and encoders")
    from onnx import TensorProto

    wide = graph.node("Cast", [value], to=TensorProto.DOUBLE)
    moved = graph.node("Sub", [wide, graph.constant(np.float64(shift))])
    scaled = graph.node("Mul", [moved, graph.constant(np.float64(factor))])
    if low is not None:
        scaled = graph.node("Max", [scaled, graph.constant(np.float64(low))])
        scaled = graph.node("Min", [scaled, graph.constant(np.float64(high))])
    return graph.cast(scaled)


def _code(graph: Graph, value: str, codes: dict[Any, int], unknown: int, text: bool, fill: str | None) -> str:
    """The number of each category: (n, 1) int64. Missing text ("") takes the imputer's category."""
    if text:
        keys = {str(category): code for category, code in codes.items()}
        if fill is not None:
            keys.setdefault("", keys.get(fill, unknown))
            keys.setdefault("(missing)", keys.get(fill, unknown))
        return graph.node(
            "LabelEncoder", [value], domain="ai.onnx.ml",
            keys_strings=list(keys), values_int64s=list(keys.values()), default_int64=unknown,
        )  # fmt: skip
    from onnx import TensorProto

    result = graph.constant(np.full((1, 1), unknown, dtype=np.int64))
    for category, code in codes.items():
        same = graph.node("Equal", [value, graph.number(category)])
        result = graph.node("Where", [same, graph.constant(np.int64(code)), result])
    return graph.node("Cast", [result], to=TensorProto.INT64)


def _one_hot(graph: Graph, value: str, encoder: OneHotEncoder, j: int, text: bool, fill: str | None) -> str:
    categories = encoder.categories_[j].tolist()
    dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[j]
    rare = encoder.infrequent_categories_[j] if hasattr(encoder, "infrequent_categories_") else None
    together = set() if rare is None else set(rare.tolist())
    if together and dropped is not None:
        raise OnnxExportError("OneHotEncoder with both drop and infrequent categories cannot be exported")
    apart = [c for i, c in enumerate(categories) if c not in together and i != dropped]
    codes = {c: i for i, c in enumerate(apart)}
    width = len(apart) + bool(together)
    codes |= {c: len(apart) for c in together}
    missing_known = [c for c in categories if not isinstance(c, str) and pd.isna(c)]
    if missing_known:
        raise OnnxExportError(
            "a category is NaN; fill missing values before the encoder, for example with SimpleImputer"
        )
    unknown = len(apart) if together and encoder.handle_unknown == "infrequent_if_exist" else CODE_OF_UNKNOWN
    code = _code(graph, value, codes, unknown, text, fill)
    match = graph.node("Equal", [code, graph.constant(np.arange(width, dtype=np.int64)[None])])
    return graph.cast(match)


def _ordinal(graph: Graph, value: str, encoder: OrdinalEncoder, j: int, text: bool, fill: str | None) -> str:
    codes = {c: i for i, c in enumerate(encoder.categories_[j].tolist())}
    unknown = encoder.unknown_value if encoder.handle_unknown == "use_encoded_value" else CODE_OF_UNKNOWN
    if unknown is None or not np.isfinite(unknown):
        raise OnnxExportError("OrdinalEncoder(unknown_value=nan) cannot be exported; use a number")
    return graph.cast(_code(graph, value, codes, int(unknown), text, fill))


def _network(graph: Graph, module: nn.Module, value: str) -> str:
    layers = list(module) if isinstance(module, nn.Sequential) else [module]
    for layer in layers:
        if isinstance(layer, nn.Sequential):
            value = _network(graph, layer, value)
        elif type(layer) is nn.Linear:
            weight = graph.constant(layer.weight.detach().cpu().numpy().astype(np.float32))
            bias = np.zeros(layer.out_features) if layer.bias is None else layer.bias.detach().cpu().numpy()
            value = graph.node("Gemm", [value, weight, graph.constant(bias.astype(np.float32))], transB=1)
        elif isinstance(layer, nn.BatchNorm1d) and layer.running_mean is not None and layer.running_var is not None:
            scale = (layer.running_var + layer.eps).rsqrt() * (1 if layer.weight is None else layer.weight)
            shift = (0 if layer.bias is None else layer.bias) - layer.running_mean * scale
            value = graph.node("Mul", [value, graph.constant(scale.detach().cpu().numpy().astype(np.float32))])
            value = graph.node("Add", [value, graph.constant(shift.detach().cpu().numpy().astype(np.float32))])
        elif isinstance(layer, nn.ReLU | nn.Tanh | nn.Sigmoid):
            value = graph.node({nn.ReLU: "Relu", nn.Tanh: "Tanh", nn.Sigmoid: "Sigmoid"}[type(layer)], [value])
        elif isinstance(layer, nn.LeakyReLU):
            value = graph.node("LeakyRelu", [value], alpha=float(layer.negative_slope))
        elif not isinstance(layer, nn.Dropout | nn.Identity | nn.Flatten):
            raise OnnxExportError(f"a layer of type {type(layer).__name__} cannot be exported; use torch.onnx.export")
    return value


def _numbers_of(estimator: Any) -> int:
    """How many outputs a network has for each person."""
    weight = next(estimator.module_.parameters())
    with torch.no_grad():
        rows = torch.zeros(1, estimator.n_features_in_, dtype=weight.dtype, device=weight.device)
        return int(estimator.module_.eval()(rows).shape[1])


def _answer(graph: Graph, estimator: Any, outputs: str, k: int) -> None:
    from onnx import TensorProto

    if not hasattr(estimator, "classes_"):
        if k > 1:
            graph.node("Identity", [outputs], "prediction")
            graph.output("prediction", graph.real, ["n", k])
            return
        graph.node("Squeeze", [outputs, graph.constant(np.array([1], dtype=np.int64))], "prediction")
        graph.output("prediction", graph.real, ["n"])
        return
    classes = np.asarray(estimator.classes_)
    best = graph.node("ArgMax", [outputs], axis=1, keepdims=0)
    if classes.dtype.kind in "biu":
        labels, code = classes.astype(np.int64), TensorProto.INT64
    elif classes.dtype.kind == "f":
        labels, code = classes.astype(np.float32), TensorProto.FLOAT
    else:
        labels, code = classes.astype(object), TensorProto.STRING
    graph.node("Gather", [graph.constant(labels), best], "label")
    graph.output("label", code, ["n"])
    if hasattr(estimator, "offset_"):
        outputs = graph.node("Add", [outputs, graph.number(np.asarray(estimator.offset_)[None])])
    graph.node("Softmax", [outputs], "probabilities", axis=1)
    graph.output("probabilities", graph.real, ["n", len(classes)])


def _names(columns: Any, known: list[str]) -> list[str]:
    if isinstance(columns, str):
        return [columns]
    if isinstance(columns, slice) or not all(isinstance(column, str) for column in columns):
        return [str(name) for name in np.asarray(known, dtype=object)[columns]]
    return list(columns)


def _is_text(categories: Any) -> bool:
    return any(isinstance(category, str) for category in categories.tolist())
