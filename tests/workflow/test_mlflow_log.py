"""A run in MLflow, with a local store."""

import json

import pytest

from evenhand.workflow import Folder
from evenhand.workflow.mlflow_log import log_run


@pytest.mark.filterwarnings("ignore")
def test_parameters_scores_and_artifacts(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install mlflow")
    folder = Folder(tmp_path / "run")
    numbers = {
        "balanced_accuracy": 0.8,
        "changed": {"sex": {"share": 0.1}},
        "groups": {"sex": {"rms": 0.2}},
        "audit": {"r_low": 0.3, "relative": 0.01},
    }
    folder.write_json(
        "metrics.json", {"chosen": {"rho": 5.0}, "reference": {}, "settings": {"eps": 0.1}, "models": {"fair": numbers}}
    )
    folder.write_json("certificate.json", {"lower": 0.1, "upper": 0.2, "each_low": []})
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    run = mlflow.get_run(log_run(folder))
    assert run.data.params["rho"] == "5.0"
    assert run.data.metrics["fair/balanced_accuracy"] == 0.8
    assert run.data.metrics["fair/changed/sex"] == 0.1
    assert run.data.metrics["certificate/upper"] == 0.2
    kept = list((tmp_path / "mlruns").rglob("metrics.json"))
    assert len(kept) == 1
    assert json.loads(kept[0].read_text())["chosen"]["rho"] == 5.0
