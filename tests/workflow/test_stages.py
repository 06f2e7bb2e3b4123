"""The stages of a run, for real, on a small table."""

import numpy as np
import pandas as pd
import pytest

from evenhand import evaluation
from evenhand.workflow import Folder, Settings, prepare, run
from evenhand.workflow.baselines import train_one


def test_the_models_of_the_trade_off_are_trained_as_the_model_of_the_report(tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    sex = rng.choice(["f", "m"], n)
    frame = pd.DataFrame({"pay": rng.normal(size=n), "age": rng.normal(size=n), "sex": sex})
    frame["y"] = np.where(frame["pay"] + (sex == "m") + rng.normal(0, 0.5, n) > 0.5, "yes", "no")
    task = prepare(frame, "y", ["sex"])
    folder = Folder(tmp_path / "run")
    folder.open("a test")
    settings = Settings((1.0, 25.0), steps=20, hidden=(8,), certificate=False, audit_rows=4, max_accuracy_loss=0.5)
    found = run(task, settings, folder, lambda text: None)
    validation, another = task.parts["validation"], Folder(tmp_path / "another")
    another.open("a test")
    last = train_one("fair", task, settings, another, lambda text: None, 25.0)  # at which a warm start would show
    for rho, fair in ((found.metrics["chosen"]["rho"], found.models["fair"]), (25.0, last)):
        (point,) = [row for row in found.frontier if row["rho"] == rho]
        accuracy = evaluation.balanced_accuracy(validation.y, fair.codes(validation.frame))
        assert point["accuracy"] == pytest.approx(accuracy, abs=1e-9)
