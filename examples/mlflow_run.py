"""A whole run on a table, logged to MLflow: parameters, scores of every model, report, model card and model file.

    pip install 'evenhand[cli,report,io]' mlflow-skinny
    python examples/mlflow_run.py

``evenhand train people.csv --target income --sensitive sex --mlflow`` does the same from the command line.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from evenhand.datasets import adult_frame
from evenhand.workflow import Folder, Settings, fingerprint, prepare, run
from evenhand.workflow.mlflow_log import log_run
from evenhand.workflow.output import write_results

COLUMNS = ["age", "education-num", "hours-per-week", "sex", "income"]


def main(out: Path, rows: int = 3000, steps: int = 200, audit_rows: int = 100, certificate: bool = True) -> str:
    """Train, audit and certify in the folder ``out``, log it; returns the id of the MLflow run."""
    frame = adult_frame().loc[: rows - 1, COLUMNS]
    problem = prepare(frame, "income", ["sex"])
    settings = Settings(rho=(5.0,), hidden=(20,), steps=steps, audit_rows=audit_rows, certificate=certificate)
    folder = Folder(out)
    folder.open(fingerprint(frame, settings.__dict__))
    results = run(problem, settings, folder, say=lambda text: print(text, file=sys.stderr))
    made_by = {"command": "python examples/mlflow_run.py", "data": "Adult", "rows": rows, "seed": settings.seed}
    write_results(folder, problem, results, made_by)
    return log_run(folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print("logged as", main(Path(name) / "run"))
