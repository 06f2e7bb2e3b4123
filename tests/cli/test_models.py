"""MODEL on the command line: files run nothing, module:object is the user's own, and ONNX keeps its labels."""

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.console import UserError
from evenhand.cli.models import OnnxModel, open_model
from evenhand.workflow import TableModel


def test_a_run_folder_and_its_file_are_the_same_model(trained):
    folder, _ = trained
    opened = open_model(str(folder / "run")), open_model(str(folder / "run" / "model.evenhand"))
    assert all(isinstance(model, TableModel) for model in opened)
    assert opened[0].columns == opened[1].columns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model.pkl", "pickled models are not loaded"),
        ("nowhere", "there is no model nowhere"),
        ("nomodule:model", "there is no Python module 'nomodule'"),
        ("json:nothing", "module json has no 'nothing'"),
        ("sys:maxsize", "has no predict_proba and no predict"),
        (":x", "there is no model :x"),
        ("missing.onnx", "there is no file missing.onnx"),
    ],
)
def test_what_is_no_model(text, message):
    with pytest.raises(UserError, match=message):
        open_model(text)


def test_a_module_that_fails_is_named(tmp_path, monkeypatch):
    (tmp_path / "brokenmodels.py").write_text("raise OSError('no weights here')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match="importing brokenmodels failed: OSError: no weights here"):
        open_model("brokenmodels:model")


def test_hostile_onnx_is_a_message(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    for data in (b"", b"\x08\x07" * 500, b"<html>" * 100):
        (tmp_path / "odd.onnx").write_bytes(data)
        with pytest.raises(UserError, match="not an ONNX model that can be run"):
            open_model(str(tmp_path / "odd.onnx"))


def test_onnx_says_its_own_labels(trained, invoke, tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    folder, _ = trained
    assert invoke("export", folder / "run", tmp_path / "m.onnx").exit_code == 0
    model, ours = OnnxModel(tmp_path / "m.onnx"), open_model(str(folder / "run"))
    assert model.classes_ == ["no", "yes"]
    assert set(model.inputs) == set(ours.columns)
    frame = pd.DataFrame({"age": [20.0, 60.0], "pay": [10.0, 50.0], "job": ["baker", "doctor"]})
    np.testing.assert_allclose(model.predict_proba(frame), ours.predict_proba(frame), atol=1e-5)
    np.testing.assert_array_equal(model.labels(frame), ours.predict(frame))
