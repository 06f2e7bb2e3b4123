"""MODEL on the command line: a file of ours, a run folder, an ONNX file, or module:object."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.cli.console import UserError
from evenhand.files.onnx import onnx_inputs
from evenhand.workflow.foreign import Foreign
from evenhand.workflow.opened import TableModel, load_model


def open_model(
    text: str, columns: tuple[str, ...] | None = None, regression: bool | None = None
) -> TableModel | Foreign:
    """The model that MODEL names. A file runs nothing when it is read; module:object is the user's own code."""
    path = Path(text)
    if path.suffix == ".onnx":
        model = OnnxModel(path)
        return Foreign(text, model, columns or model.inputs, regression)
    if path.exists() or path.suffix == ".evenhand":
        return load_model(path)
    if path.suffix in (".pkl", ".pickle", ".joblib", ".pt", ".pth"):
        raise UserError(f"{text}: pickled models are not loaded, they could run anything; use module:object instead")
    module, found, name = text.partition(":")
    if not found or not module or not name:
        raise UserError(
            f"there is no model {text}; give a .evenhand or .onnx file, the folder of a run, or module:object"
        )
    return Foreign(text, _imported(module, name), columns, regression)


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
    if not any(hasattr(model, way) for way in ("predict_proba", "decision_function", "predict")) and not callable(
        model
    ):
        raise UserError(
            f"{module}:{name} has no predict_proba and no predict, and is no function of a table; where a model gives "
            "something else, write a function that takes a table and gives a probability (or, with --regression, a "
            "number) for each row, and name that"
        )
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

    @property
    def classes_(self) -> list[Any] | None:
        """The classes, where the file says them (ours do)."""
        kept = self.session.get_modelmeta().custom_metadata_map.get("classes")
        try:
            found = None if kept is None else json.loads(kept)
        except ValueError:
            return None
        return found if isinstance(found, list) else None

    @property
    def inputs(self) -> tuple[str, ...] | None:
        """The columns that it takes, where it has an input for each; None where it takes one matrix."""
        found = self.session.get_inputs()
        return None if self._one_matrix() else tuple(one.name for one in found)

    def predict_proba(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        found = [o for o in self._run(frame) if isinstance(o, np.ndarray) and o.ndim == 2 and o.dtype.kind == "f"]
        if not found:
            raise UserError("the ONNX model gives no probabilities (n, K)")
        return np.asarray(found[0], dtype=np.float64)

    def labels(self, frame: pd.DataFrame) -> NDArray[Any] | None:
        """The decisions that the graph gives itself, where it does."""
        found = [o for o in self._run(frame) if isinstance(o, np.ndarray) and o.ndim == 1 and len(o) == len(frame)]
        return found[0] if found else None

    def _one_matrix(self) -> bool:
        inputs = self.session.get_inputs()
        return len(inputs) == 1 and len(inputs[0].shape) == 2 and inputs[0].shape[1] != 1

    def _run(self, frame: pd.DataFrame) -> list[Any]:
        if self._one_matrix():
            (one,) = self.session.get_inputs()
            kind = np.float64 if one.type == "tensor(double)" else np.float32
            return list(self.session.run(None, {one.name: frame.to_numpy(dtype=kind)}))
        return list(self.session.run(None, onnx_inputs(self.session, frame)))
