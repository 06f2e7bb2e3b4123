"""predict, report, export."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from evenhand.cli import app
from evenhand.files import load
from evenhand.tables.schema import Schema

from .conftest import people


def test_predict(trained, invoke, tmp_path):
    folder, _ = trained
    new = people(30, seed=5).drop(columns=["approved", "joined"])
    new.to_csv(tmp_path / "new.csv", index=False)
    result = invoke("predict", folder / "run", tmp_path / "new.csv")
    table = pd.read_csv(io.StringIO(result.stdout))
    assert table.columns.tolist() == ["prediction", "probability of no", "probability of yes"]
    schema = Schema.from_json(json.loads((folder / "run" / "metrics.json").read_text())["schema"])
    expected = load(folder / "run" / "model.evenhand").predict_proba(schema.apply(new))
    assert np.allclose(table.iloc[:, 1:], expected)
    assert invoke("predict", folder / "run", tmp_path / "new.csv", "--out", tmp_path / "o.csv").exit_code == 0
    assert pd.read_csv(tmp_path / "o.csv").equals(table)
    assert len(json.loads(invoke("predict", folder / "run", tmp_path / "new.csv", "--json").stdout)) == 30


def test_predict_names_missing_columns(trained, invoke, tmp_path):
    folder, _ = trained
    people(30).drop(columns=["age"]).to_csv(tmp_path / "new.csv", index=False)
    result = invoke("predict", folder / "run", tmp_path / "new.csv")
    assert result.exit_code == 2
    assert "lacks 1 column(s) the model was trained on: 'age'" in result.stderr


def test_onnx_export_predicts_the_same(trained, invoke, tmp_path):
    pytest.importorskip("onnxruntime")
    folder, _ = trained
    data = folder / "people.csv"
    assert invoke("export", folder / "run", tmp_path / "m.onnx").exit_code == 0
    ours, theirs = (
        pd.read_csv(io.StringIO(invoke("predict", model, data).stdout))
        for model in (folder / "run", tmp_path / "m.onnx")
    )
    assert np.allclose(ours.iloc[:, 1:], theirs.iloc[:, 1:], atol=1e-5)
    audit = invoke("audit", tmp_path / "m.onnx", data, "--sensitive", "sex", "--rows", "20", "--json")
    assert json.loads(audit.stdout)["r_low"] >= 0


def test_report_again(trained, invoke, tmp_path):
    folder, _ = trained
    page = folder / "run" / "report.html"
    before = page.read_text()
    page.unlink()
    assert invoke("report", folder / "run").exit_code == 0
    assert page.read_text() == before
    result = invoke("report", tmp_path)
    assert result.exit_code == 2
    assert "not the folder of a finished run" in result.stderr


def test_reproduce_names_the_experiments(invoke):
    result = invoke("reproduce", "everything")
    assert result.exit_code == 2
    assert "adult, toxicity, bios, synthetic" in result.stderr


def test_every_command_has_an_example_and_json(invoke):
    for command in app.registered_commands:
        name = command.callback.__name__
        text = " ".join(invoke(name, "--help").stdout.replace("│", " ").split())
        assert f"Example: evenhand {name}" in text, name
        assert "--json" in text, name
