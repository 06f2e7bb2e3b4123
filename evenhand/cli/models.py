"""MODEL on the command line: a file of ours, a run folder, an ONNX file, or module:object."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from evenhand.cli.console import UserError
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.files import load, load_metadata
from evenhand.files.onnx import onnx_inputs
from evenhand.judged import Judged
from evenhand.tables.read import find_column
from evenhand.tables.schema import Schema


@dataclass(frozen=True)
class Opened:
    """A model and what is known about it: the schema where it is ours, the metric and domain where there are any."""

    name: str
    model: Any
    schema: Schema | None = None
    fair_metric: FairMetric | None = None
    box: Box | None = None

    def clean(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table as the model takes it."""
        return frame if self.schema is None else self.schema.apply(frame)


def open_model(text: str) -> Opened:
    """The model that MODEL names. A file runs nothing when it is read; module:object is the user's own code."""
    path = Path(text)
    if path.is_dir():
        path = path / "model.evenhand"
    if path.suffix == ".onnx":
        return Opened(text, OnnxModel(path))
    if path.exists() or path.suffix == ".evenhand":
        return _ours(path)
    if path.suffix in (".pkl", ".pickle", ".joblib", ".pt", ".pth"):
        raise UserError(f"{text}: pickled models are not loaded, they could run anything; use module:object instead")
    module, found, name = text.partition(":")
    if not found or not module or not name:
        raise UserError(
            f"there is no model {text}; give a .evenhand or .onnx file, the folder of a run, or module:object"
        )
    return Opened(text, _imported(module, name))


def _ours(path: Path) -> Opened:
    model, kept = load(path), load_metadata(path)
    if "schema" not in kept:
        raise UserError(f"{path} was saved from Python without the table it expects; use module:object for it")
    schema = Schema.from_json(kept["schema"])
    estimator = model[-1]
    return Opened(str(path), model, schema, estimator.fair_metric_, estimator.bounds_)


def _imported(module: str, name: str) -> Any:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(
            f"there is no Python module {error.name!r} (for {module}:{name}); looked here and in {sys.prefix}"
        ) from None
    except Exception as error:
        raise UserError(f"importing {module} failed: {type(error).__name__}: {error}") from error
    if not hasattr(found, name):
        known = [n for n in vars(found) if not n.startswith("_")]
        raise UserError(f"module {module} has no {name!r}; it has {', '.join(known[:10])}")
    model = getattr(found, name)
    if not hasattr(model, "predict_proba") and not callable(model):
        raise UserError(f"{module}:{name} has no predict_proba and is no function of a table")
    return model


class OnnxModel:
    """An ONNX classifier as scikit-learn would see it: a table in, probabilities out."""

    def __init__(self, path: Path) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise ModuleNotFoundError("ONNX models need onnxruntime: pip install 'evenhand[onnx]'") from error
        if not path.exists():
            raise UserError(f"there is no file {path}")
        try:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise UserError(f"{path} is not an ONNX model that can be run: {str(error).splitlines()[0]}") from error

    def predict_proba(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        inputs = self.session.get_inputs()
        if len(inputs) == 1 and inputs[0].name not in frame.columns and len(inputs[0].shape) == 2:
            given: dict[str, Any] = {inputs[0].name: frame.to_numpy(dtype=np.float32)}
        else:
            given = onnx_inputs(self.session, frame)
        outputs = self.session.run(None, given)
        found = [o for o in outputs if isinstance(o, np.ndarray) and o.ndim == 2 and o.dtype.kind == "f"]
        if not found:
            raise UserError("the ONNX model gives no probabilities (n, K)")
        return np.asarray(found[0], dtype=np.float64)


def probabilities(model: Any, frame: pd.DataFrame) -> NDArray[np.float64]:
    """(n, K) of anything: predict_proba, or a function of a table that gives one probability or K."""
    given = model.predict_proba(frame) if hasattr(model, "predict_proba") else model(frame)
    p = np.asarray(given.detach().numpy() if isinstance(given, torch.Tensor) else given, dtype=np.float64)
    p = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
    if p.ndim != 2 or len(p) != len(frame) or not np.isfinite(p).all() or p.min() < -1e-6 or p.max() > 1 + 1e-6:
        raise UserError(
            f"the model must give probabilities, one row for each of the {len(frame)} people; got {p.shape}"
        )
    return p


def metric_of_pipeline(model: Pipeline, frame: pd.DataFrame, sensitive: Sequence[str]) -> tuple[FairMetric, Box]:
    """Metric and domain of any scikit-learn Pipeline: free are the encoded features that the sensitive columns feed.

    They are found by trying: the column is permuted, and what changes depends on it.
    """
    judged = Judged.of(model)
    x = judged.encode(frame)
    free = torch.zeros(x.shape[1], dtype=torch.bool)
    for name in sensitive:
        column = find_column(name, [str(c) for c in frame.columns], "sensitive")
        turned = frame.assign(**{column: np.roll(frame[column].to_numpy(), 1)})
        depends = (judged.encode(turned) != x).any(dim=0)
        for value in frame[column].dropna().unique()[:20]:
            depends |= (judged.encode(frame.iloc[:50].assign(**{column: value})) != x[:50]).any(dim=0)
        if not depends.any():
            raise UserError(f"the model does not look at {column!r}: changing it changes none of its features")
        free |= depends
    directions = torch.eye(x.shape[1])[:, free]
    low, high = x.amin(0), x.amax(0)
    blocks = _one_hot_blocks(judged, frame, x)
    named = {j for block in blocks for j in block}
    indicator = ((x == 0) | (x == 1)).all(dim=0) & (high > low)
    binary = [j for j in indicator.nonzero()[:, 0].tolist() if j not in named]
    return FairMetric(directions), Box(low, high, blocks=blocks, binary=binary)


def _one_hot_blocks(judged: Judged, frame: pd.DataFrame, x: torch.Tensor) -> list[list[int]]:
    """Features that one column feeds and of which exactly one is 1 in every row: nobody has two categories at once."""
    blocks, taken = [], set[int]()
    for column in frame.columns:
        turned = frame.assign(**{str(column): np.roll(frame[column].to_numpy(), 1)})
        fed = (judged.encode(turned) != x).any(dim=0).nonzero()[:, 0].tolist()
        part = x[:, fed]
        one_hot = ((part == 0) | (part == 1)).all() and (part.sum(1) == 1).all()
        if len(fed) > 1 and one_hot and not taken & set(fed):
            blocks.append(fed)
            taken |= set(fed)
    return blocks
