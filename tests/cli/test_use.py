"""predict, report, export."""

import errno
import io
import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.cli import app, use
from evenhand.files import load
from evenhand.tables.schema import Schema
from evenhand.workflow.foreign import Foreign

from .conftest import people


def test_predict(trained, invoke, tmp_path):
    folder, _ = trained
    new = people(30, seed=5).drop(columns=["approved", "joined"])
    new.to_csv(tmp_path / "new.csv", index=False)
    result = invoke("predict", folder / "run", tmp_path / "new.csv")
    table = pd.read_csv(io.StringIO(result.stdout))
    assert table.columns.tolist() == ["prediction", "probability of no", "probability of yes"]
    schema = Schema.from_json(json.loads((folder / "run" / "metrics.json").read_text())["schema"])
    model = load(folder / "run" / "model.evenhand")
    assert np.allclose(table.iloc[:, 1:], model.predict_proba(schema.apply(new)))
    assert table["prediction"].tolist() == model.predict(schema.apply(new)).tolist()
    assert set(table["prediction"]) == {"no", "yes"}
    assert invoke("predict", folder / "run", tmp_path / "new.csv", "--out", tmp_path / "o.csv").exit_code == 0
    assert pd.read_csv(tmp_path / "o.csv").equals(table)
    assert len(json.loads(invoke("predict", folder / "run", tmp_path / "new.csv", "--json").stdout)) == 30


def test_of_somebody_elses_model_the_most_probable_class_is_the_decision():
    p = np.array([[0.2, 0.5, 0.3], [0.9, 0.05, 0.05], [0.1, 0.1, 0.8]])
    table = use.decisions(Foreign("mine", lambda frame: p), pd.DataFrame({"a": [1, 2, 3]}))
    assert table["prediction"].tolist() == [1, 0, 2]
    assert np.array_equal(table[[f"probability of {k}" for k in range(3)]], p)


def test_no_formula_reaches_a_spreadsheet(trained, invoke, tmp_path, monkeypatch):
    told = pd.DataFrame({"prediction": ['=HYPERLINK("x")', "-1.5", "@b"], "probability of +c": [0.25, 0.5, 0.75]})
    monkeypatch.setattr(use, "decisions", lambda opened, frame: told)
    folder, _ = trained
    out = tmp_path / "o.csv"
    assert invoke("predict", folder / "run", folder / "people.csv", "--out", out).exit_code == 0
    for text in (out.read_text(), invoke("predict", folder / "run", folder / "people.csv").stdout):
        table = pd.read_csv(io.StringIO(text))
        assert table["prediction"].tolist() == ['\'=HYPERLINK("x")', "-1.5", "'@b"]
        assert table["probability of +c"].tolist() == [0.25, 0.5, 0.75]


def test_categories_that_training_did_not_have_are_counted(trained, invoke, tmp_path):
    folder, _ = trained
    new = people(30, seed=5)
    new.loc[:3, "job"] = "pilot"
    new.to_csv(tmp_path / "new.csv", index=False)
    said = invoke("predict", folder / "run", tmp_path / "new.csv").stderr
    assert said == "4 of 30 values of 'job' are none that training had: nothing is known of them\n"
    assert invoke("predict", folder / "run", folder / "people.csv").stderr == ""
    new.assign(job="pilot").to_csv(tmp_path / "new.csv", index=False)
    audited = invoke("audit", folder / "run", tmp_path / "new.csv")
    assert audited.exit_code == 2
    assert "a category that training did not have, in 'job'; nobody is left" in audited.stderr


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


def test_a_full_disk_leaves_no_half_file(trained, invoke, tmp_path, monkeypatch):
    folder, _ = trained
    (tmp_path / "decisions.csv").write_text("old")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("evenhand.atomic.os.fsync", full)
    done = invoke("predict", folder / "run", folder / "people.csv", "--out", tmp_path / "decisions.csv")
    assert done.exit_code == 2
    assert "the disk is full: free some space and give the same command again" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["decisions.csv"]
    assert (tmp_path / "decisions.csv").read_text() == "old"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_read_only_folder_is_a_message(trained, invoke):
    folder, _ = trained
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o555)
        data = Path(place).parent / f"{Path(place).name}.csv"
        data.write_bytes((folder / "people.csv").read_bytes())
        me = os.geteuid()
        try:
            if me == 0:
                os.seteuid(65534)  # root may write anywhere; nobody may not
            train = invoke("train", data, "--target", "approved", "--sensitive", "sex", "--out", Path(place) / "run")
        finally:
            os.seteuid(me)
            data.unlink()
        assert train.exit_code == 2
        assert "may not be read or written" in train.stderr
        assert "Traceback" not in train.stderr
        assert list(Path(place).iterdir()) == []


def test_a_hostile_parquet_is_a_message(trained, invoke, tmp_path):
    folder, _ = trained
    for data in (
        b"PAR1",
        b"PAR1" + b"\xff" * 64 + b"PAR1",
        b"PAR1" + b"\x00" * 8 + b"\xff\xff\xff\x7f" + b"PAR1",
        b"x",
    ):
        (tmp_path / "people.parquet").write_bytes(data)
        done = invoke("predict", folder / "run", tmp_path / "people.parquet")
        assert done.exit_code == 2
        assert "is not a parquet file that can be read" in done.stderr


def test_altered_run_files_are_messages(trained, invoke, tmp_path):
    folder, _ = trained
    shutil.copytree(folder / "run", tmp_path / "run")
    for name, text in (("metrics.json", '{"models": []}'), ("metrics.json", "{"), ("run.json", "[]")):
        (tmp_path / "run" / name).write_text(text)
        for command in ("report", "explore"):
            if (command, name) == ("explore", "run.json"):
                continue
            done = invoke(command, tmp_path / "run")
            assert done.exit_code == 2, (name, text, command)
            assert name in done.stderr
        shutil.copy(folder / "run" / name, tmp_path / "run" / name)
