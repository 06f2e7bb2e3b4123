"""save / load: models that leave the lab, without pickle. Loading a file runs no code from it.

A model file is an uncompressed zip archive of at most three members, read by name and never unpacked to disk:
``model.json`` (everything that is not a tensor), ``tensors.safetensors`` and, for a Pipeline, ``preprocessing.skops``.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.pipeline import Pipeline
from torch import nn

from evenhand import estimators
from evenhand.atomic import whole_file
from evenhand.bounds.quadratic_dual import Multipliers
from evenhand.estimators.boosting import BoostingEstimator
from evenhand.fair_metrics.classifier import AttributeModel
from evenhand.fair_metrics.metric import FairMetric
from evenhand.files.boxes import read_box, write_box
from evenhand.files.checks import check_finite, check_lam, check_metric, read_classes, read_targets
from evenhand.files.extras import of_the_extra_io
from evenhand.files.layers import UnknownLayer, built, describe
from evenhand.files.parameters import read_parameters, write_parameters
from evenhand.files.preprocessing import read_preprocessing, write_preprocessing
from evenhand.files.trees import read_trees, write_trees

__all__ = ["FORMAT", "ModelFileError", "load", "load_metadata", "save"]

FORMAT = 1
MAGIC = "evenhand model"
MODEL, TENSORS, PREPROCESSING = "model.json", "tensors.safetensors", "preprocessing.skops"
MAX_JSON = 1 << 26  # 64 MB
MAX_HEADER = 1 << 24  # of the tensors
ESTIMATORS = {name: getattr(estimators, name) for name in estimators.__all__ if not name.endswith("Metric")}


_UNSOUND = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    RuntimeError,  # RecursionError among them
    MemoryError,
    OverflowError,
)


class ModelFileError(ValueError):
    """The file is not a model of ours, or is damaged; nothing of it was run."""


def save(model: Any, path: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
    """Write an estimator of ours, or a Pipeline that ends in one, to a file; atomically.

    A network must be made of known layers (see ``layers.py``); one of your own is saved without its
    architecture, which ``load(path, module=...)`` then needs. ``metadata`` is any JSON to keep beside the model.
    """
    steps, estimator = (model.steps, model.steps[-1][1]) if isinstance(model, Pipeline) else ([], model)
    if type(estimator).__name__ not in ESTIMATORS or not isinstance(estimator, ESTIMATORS[type(estimator).__name__]):
        raise TypeError(
            f"save takes an estimator of evenhand, or a Pipeline that ends in one; got {type(estimator).__name__}"
        )
    if not hasattr(estimator, "module_") and not hasattr(estimator, "ensemble_"):
        raise ValueError(f"this {type(estimator).__name__} is not fitted yet; call fit before save")
    document, tensors = _write_estimator(estimator)
    members: dict[str, bytes] = {}
    if steps:
        document["steps"] = [str(name) for name, _ in steps]
        members[PREPROCESSING] = write_preprocessing(Pipeline(steps[:-1]) if len(steps) > 1 else None)
    members[TENSORS] = _dump_tensors(tensors)
    document = {
        "magic": MAGIC,
        "format": FORMAT,
        **document,
        "metadata": metadata or {},
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    members[MODEL] = json.dumps(document, indent=1, ensure_ascii=False).encode()
    _write_archive(Path(path), members)


def load(path: str | os.PathLike[str], module: nn.Module | None = None) -> Any:
    """The model that ``save`` wrote: the same predictions, lam and history.

    module: the network of your own that the model was saved with, any weights; only needed for such models.
    """
    members = _read_archive(Path(path))
    document = _document(path, members)
    tensors = _load_tensors(path, members[TENSORS])
    try:
        estimator = _read_estimator(document, tensors, module)
        if "steps" not in document:
            return estimator
        names = [str(name) for name in document["steps"]]
        before = read_preprocessing(members[PREPROCESSING])
        return Pipeline([*(before.steps if before is not None else []), (names[-1], estimator)])
    except UnknownLayer as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error
    except _UNSOUND as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{os.fspath(path)} is not a sound model file: {_reason(error)}") from error


def load_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON that was saved beside the model."""
    members = _read_archive(Path(path))
    return dict(_document(path, members).get("metadata") or {})


def _write_estimator(estimator: Any) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    tensors: dict[str, torch.Tensor] = {}
    document: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "parameters": write_parameters(estimator, tensors),
        "n_features_in_": int(estimator.n_features_in_),
        "n_iter_": int(estimator.n_iter_),
    }
    if isinstance(estimator, BoostingEstimator):
        write_trees(estimator.ensemble_, tensors)
    else:
        tensors |= {f"module.{name}": tensor for name, tensor in estimator.module_.state_dict().items()}
        document["layers"] = describe(estimator.module_)
        document["dtype"] = str(next(estimator.module_.parameters()).dtype).removeprefix("torch.")
    if hasattr(estimator, "feature_names_in_"):
        document["feature_names_in_"] = [str(name) for name in estimator.feature_names_in_]
    if hasattr(estimator, "lam_"):
        document["lam_"] = estimator.lam_
    if hasattr(estimator, "classes_"):
        document["classes_"] = {"dtype": estimator.classes_.dtype.str, "values": estimator.classes_.tolist()}
    if hasattr(estimator, "offset_"):
        document["offset_"] = [float(value) for value in estimator.offset_]
    if getattr(estimator, "targets_", None) is not None and estimator.targets_.scale is not None:  # of a regressor
        document["targets_"] = {name: getattr(estimator.targets_, name).tolist() for name in ("scale", "mean")}
    history: pd.DataFrame = estimator.history_
    document["history_"] = [str(name) for name in history.columns]
    tensors["history"] = torch.from_numpy(history.to_numpy(dtype=np.float64, copy=True))
    metric: FairMetric = estimator.fair_metric_
    tensors["metric.directions"] = metric.directions
    if metric.factor is not None:
        tensors["metric.factor"] = metric.factor
    document["attributes"] = []
    for i, attribute in enumerate(metric.attribute_models):
        document["attributes"].append({"name": attribute.name, "used": list(attribute.used)})
        tensors[f"metric.attribute{i}"] = torch.from_numpy(np.array(attribute.directions, dtype=np.float64))
    if getattr(estimator, "bounds_", None) is not None:
        document["bounds_"] = write_box(estimator.bounds_, tensors, "bounds")
    if hasattr(estimator, "multipliers_"):
        kept = estimator.multipliers_.tensors()
        document["multipliers_"] = len(kept)
        tensors |= {f"multipliers.{i}": tensor for i, tensor in enumerate(kept)}
    return document, tensors


def _read_estimator(document: dict[str, Any], tensors: dict[str, torch.Tensor], module: nn.Module | None) -> Any:
    name = document["estimator"]
    if name not in ESTIMATORS:
        raise ValueError(f"the file holds an estimator {name!r} that this version does not know")
    metric = _read_metric(document, tensors)
    estimator = ESTIMATORS[name](**read_parameters(document["parameters"], tensors, metric))
    estimator.n_features_in_ = int(document["n_features_in_"])
    if isinstance(estimator, BoostingEstimator):
        estimator.ensemble_ = read_trees(tensors, estimator.n_features_in_)
    else:
        estimator.module_ = _read_network(document, tensors, module)
    estimator.fair_metric_ = metric
    estimator.n_iter_ = int(document["n_iter_"])
    if "feature_names_in_" in document:
        estimator.feature_names_in_ = np.array([str(n) for n in document["feature_names_in_"]], dtype=object)
    if "lam_" in document:
        estimator.lam_ = check_lam(document["lam_"])
    if "targets_" in document:  # older files have none: partial_fit then takes the scale anew
        estimator.targets_ = read_targets(document["targets_"])
    if "classes_" in document:
        estimator.classes_ = read_classes(document["classes_"])
    if isinstance(estimator, BoostingEstimator):
        _check_outputs(estimator)
    if "offset_" in document:
        estimator.offset_ = np.array([float(value) for value in document["offset_"]], dtype=np.float64)
        if estimator.offset_.shape != estimator.classes_.shape or not np.isfinite(estimator.offset_).all():
            raise ValueError("the calibration must be one finite number for each class")
    if metric.d != estimator.n_features_in_:
        raise ValueError(f"the metric is for {metric.d} features, the model for {estimator.n_features_in_}")
    estimator.history_ = pd.DataFrame(tensors["history"].numpy(), columns=[str(c) for c in document["history_"]])
    estimator.bounds_ = read_box(document["bounds_"], tensors, "bounds") if "bounds_" in document else None
    if estimator.bounds_ is not None and estimator.bounds_.d != estimator.n_features_in_:
        raise ValueError(f"the bounds are for {estimator.bounds_.d} features, the model for {estimator.n_features_in_}")
    if "multipliers_" in document:
        kept = [tensors[f"multipliers.{i}"] for i in range(int(document["multipliers_"]))]
        check_finite({"the multipliers": torch.cat([t.reshape(-1) for t in kept])})
        estimator.multipliers_ = Multipliers(kept[0], kept[1:-2], kept[-2], kept[-1])
    return estimator


def _read_network(document: dict[str, Any], tensors: dict[str, torch.Tensor], module: nn.Module | None) -> nn.Module:
    weights = {key.removeprefix("module."): value for key, value in tensors.items() if key.startswith("module.")}
    layers = document["layers"]
    net = built(layers, weights) if layers is not None else module
    if net is None:
        raise UnknownLayer(
            "the network was the user's own, so the file holds its weights only; give it: load(path, module=YourNet())"
        )
    net = net.to(getattr(torch, _one_of(document["dtype"], ("float32", "float64"))))
    if layers is None:
        net.load_state_dict(weights)
    check_finite({f"module.{key}": value for key, value in weights.items()})
    return net.eval()


def _check_outputs(estimator: Any) -> None:
    """One output for a number or two classes, otherwise one for each class."""
    if hasattr(estimator, "classes_") != hasattr(type(estimator), "predict_proba"):
        raise ValueError("a classifier has classes, a regressor has none")
    classes = len(getattr(estimator, "classes_", [0]))
    wanted = classes if classes > 2 else 1
    if estimator.ensemble_.outputs != wanted:
        raise ValueError(f"the trees have {estimator.ensemble_.outputs} outputs where {wanted} are needed")


def _read_metric(document: dict[str, Any], tensors: dict[str, torch.Tensor]) -> FairMetric:
    directions = tensors["metric.directions"]
    check_metric(directions, tensors.get("metric.factor"))
    attributes = tuple(
        AttributeModel(
            str(given["name"]), None, tuple(map(int, given["used"])), tensors[f"metric.attribute{i}"].numpy()
        )
        for i, given in enumerate(document["attributes"])
    )
    return FairMetric.of(directions, tensors.get("metric.factor"), attributes)


def _write_archive(target: Path, members: dict[str, bytes]) -> None:
    with whole_file(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name in (MODEL, TENSORS, PREPROCESSING):
            if name in members:  # a fixed date: the same model gives the same bytes
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), members[name])


def _read_archive(path: Path) -> dict[str, bytes]:
    if not path.exists():
        raise FileNotFoundError(f"there is no model file {path}")
    if path.is_dir():
        raise ModelFileError(
            f"{path} is a folder; give the model file inside it, for example {path / 'model.evenhand'}"
        )
    whole = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            names = [info.filename for info in infos]
            unknown = sorted(set(names) - {MODEL, TENSORS, PREPROCESSING})
            if unknown or len(set(names)) != len(names):
                raise ModelFileError(f"{path} holds members that a model file does not have: {unknown or names}")
            if MODEL not in names or TENSORS not in names:
                raise ModelFileError(f"{path} is a zip archive but not a model file of evenhand: {MODEL} is not in it")
            for info in infos:
                if info.compress_type != zipfile.ZIP_STORED or info.file_size > whole or info.flag_bits & 1:
                    raise ModelFileError(f"{path}: {info.filename} is compressed, encrypted or larger than the file")
            return {name: archive.read(name) for name in names}
    except ModelFileError:
        raise
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError, IndexError, KeyError) as error:
        hint = "; it looks like a pickle, which is never loaded" if _pickled(path) else ""
        raise ModelFileError(
            f"{path} is not a model file of evenhand, or is damaged ({_reason(error)}){hint}"
        ) from error


def _document(path: str | os.PathLike[str], members: dict[str, bytes]) -> dict[str, Any]:
    where, data = os.fspath(path), members[MODEL]
    if len(data) > MAX_JSON:
        raise ModelFileError(f"{where}: {MODEL} has {len(data):,} bytes; at most {MAX_JSON:,} are read")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{where}: {MODEL} is not JSON ({_reason(error)})") from error
    if not isinstance(document, dict) or document.get("magic") != MAGIC:
        raise ModelFileError(f"{where} is not a model file of evenhand")
    version = document.get("format")
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{where} has no valid format number (got {version!r})")
    if version > FORMAT:
        raise ModelFileError(
            f"{where} has format {version}, this version of evenhand reads up to {FORMAT}; pip install -U evenhand"
        )
    sums = document.get("sha256")
    if not isinstance(sums, dict):
        raise ModelFileError(f"{where}: the checksums are missing")
    for name, content in members.items():
        if name != MODEL and sums.get(name) != hashlib.sha256(content).hexdigest():
            raise ModelFileError(f"{where}: the checksum of {name} does not match; the file is damaged")
    if ("steps" in document) != (PREPROCESSING in members):
        raise ModelFileError(f"{where}: preprocessing is announced but absent, or present but not announced")
    return document


def _dump_tensors(tensors: dict[str, torch.Tensor]) -> bytes:
    with of_the_extra_io():
        from safetensors.torch import save as dump

    return bytes(dump({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}))


def _load_tensors(path: str | os.PathLike[str], data: bytes) -> dict[str, torch.Tensor]:
    with of_the_extra_io():
        from safetensors import SafetensorError
        from safetensors.torch import load as parse

    if len(data) < 8 or int.from_bytes(data[:8], "little") > min(MAX_HEADER, len(data) - 8):
        raise ModelFileError(
            f"{os.fspath(path)}: the header of {TENSORS} is larger than the file, or over {MAX_HEADER:,}"
        )
    try:
        return dict(parse(data))
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{os.fspath(path)}: {TENSORS} is damaged ({_reason(error)})") from error


def _pickled(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(2)
    return len(head) == 2 and head[0] == 0x80 and head[1] <= 5


def _one_of(value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"expected one of {', '.join(allowed)}, got {value!r}")
    return str(value)


def _reason(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0][:200] if text else type(error).__name__
