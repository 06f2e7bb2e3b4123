"""A finished run in MLflow: parameters, scores, and the folder as artifacts."""

from __future__ import annotations

from typing import Any

from evenhand.workflow.folder import Folder
from evenhand.workflow.output import summary

ARTIFACTS = ("report.html", "model_card.md", "metrics.json", "certificate.json", "frontier.csv", "model.evenhand")


def log_run(folder: Folder, run_name: str | None = None) -> str:
    """Log the folder of a finished run to the active MLflow experiment; returns the id of the MLflow run."""
    try:
        import mlflow
    except ImportError as error:
        raise ModuleNotFoundError("logging needs mlflow: pip install mlflow") from error
    found, metrics = summary(folder), folder.read_json("metrics.json")
    with mlflow.start_run(run_name=run_name or folder.path.name) as active:
        mlflow.log_params({"rho": found["chosen"]["rho"], **_flat(metrics["settings"])})
        for model, numbers in found["models"].items():
            mlflow.log_metrics({f"{model}/{name}": value for name, value in _numbers(numbers).items()})
        certificate = found.get("certificate") or {}
        mlflow.log_metrics({f"certificate/{k}": certificate[k] for k in ("lower", "upper") if k in certificate})
        for name in ARTIFACTS:
            if (folder.path / name).exists():
                mlflow.log_artifact(str(folder.path / name))
        return str(active.info.run_id)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    return {f"settings/{name}": value for name, value in settings.items()}


def _numbers(values: dict[str, Any], prefix: str = "") -> dict[str, float]:
    """Nested numbers as MLflow knows them: flat names of plain letters."""
    flat: dict[str, float] = {}
    for name, value in values.items():
        plain = "".join(c if c.isalnum() or c in "_-. /" else "_" for c in str(name))
        if isinstance(value, dict):
            flat |= _numbers(value, f"{prefix}{plain}/")
        elif value is not None:
            flat[f"{prefix}{plain}"] = float(value)
    return flat
