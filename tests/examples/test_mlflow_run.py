"""The example itself, logged to a store in a folder."""

import json

import pytest


@pytest.mark.filterwarnings("ignore")
def test_a_run_is_logged_with_its_report(load, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install mlflow-skinny")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    run_id = load("mlflow_run").main(tmp_path / "run", rows=600, steps=15, audit_rows=8, certificate=False)
    logged = mlflow.get_run(run_id).data
    kept = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert logged.params["rho"] == "5.0"
    assert logged.metrics["fair/balanced_accuracy"] == kept["models"]["fair"]["balanced_accuracy"]
    assert logged.metrics["plain/r_low"] == kept["models"]["plain"]["audit"]["r_low"]
    assert {path.name for path in (tmp_path / "mlruns").rglob("artifacts/*")} >= {"report.html", "model.evenhand"}
