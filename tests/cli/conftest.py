import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from evenhand.cli import app
from evenhand.datasets import templates
from evenhand.headline import Bracketed
from evenhand.workflow import judging

QUICK = ["--steps", "12", "--rho", "5", "--no-certificate", "--audit-rows", "12", "--hidden", "6", "--trees", "3"]


class QuickAudit:
    """What an audit would find, without the search: these tests are about everything around it."""

    r_low, lower, eps, n, confidence = 0.1, 0.05, 0.01, 2, 0.95
    relative, decisions, percentile = (Bracketed(low, 1.0, low, 1.0) for low in (0.05, 0.0, 0.01))
    strangers = 2.0
    d_y = np.array([0.1, 0.2])

    def __init__(self, frame):
        self.rows = frame.index[:2]

    def pairs(self, k):
        columns = {"d_X": 0.0, "d_Y": [0.2, 0.1], "prediction": 0, "prediction_worst": 1}
        return pd.DataFrame({**columns, "sex": "female", "sex (worst)": "male"}, index=self.rows)


def people(n=320, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["female", "male"], n)
    age = rng.integers(18, 70, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "pay": rng.normal(30, 8, n).round(2),
            "job": rng.choice(["baker", "clerk", "doctor"], n),
            "sex": sex,
            "joined": pd.date_range("2001-01-01", periods=n).strftime("%Y-%m-%d"),
        }
    )
    frame["approved"] = np.where(frame["pay"] + 6 * (sex == "male") + rng.normal(0, 3, n) > 32, "yes", "no")
    return frame


@pytest.fixture(scope="session")
def invoke():
    """Runs a command; gives its exit code, standard output and standard error."""
    runner = CliRunner()

    def call(*args):
        return runner.invoke(app, [str(arg) for arg in args])

    return call


@pytest.fixture(scope="session")
def trained(invoke, tmp_path_factory):
    """A finished run on a semicolon-separated table with decimal commas and a byte order mark."""
    folder = tmp_path_factory.mktemp("trained")
    data = folder / "people.csv"
    data.write_bytes(people().to_csv(index=False, sep=";", decimal=",").encode("utf-8-sig"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(judging, "search", lambda model, frame, task, settings: QuickAudit(frame))
        result = invoke("train", data, "--target", "approved", "--sensitive", "sex", "--out", folder / "run", *QUICK)
    assert result.exit_code == 0, result.stderr
    return folder, result


@pytest.fixture(scope="session")
def discreet(tmp_path_factory, invoke):
    """A run that shows nobody, with a threshold of its own, without a certificate, from a table behind a password."""
    folder = tmp_path_factory.mktemp("discreet")
    made = templates(150, seed=0)
    table = pd.DataFrame({"comment": [f"{text}, zebra" for text in made.texts], "likes": np.arange(150.0) % 7})
    table["toxic"] = made.y
    data, run = folder / "comments.csv", folder / "run"
    table.to_csv(data, index=False)
    args = ["--text", "comment", "--target", "toxic", "--swap", "identity", "--beside", "likes", "--out", run]
    small = ["--steps", "10", "--hidden", "5", "--rho", "1"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("EVENHAND_CACHE", str(folder / "cache"))
        patched.setattr(sys, "argv", ["evenhand", "train", "--url", "postgresql://me:hunter2@host/db?password=hunter3"])
        done = invoke(
            "train", data, *args, *small, "--show-people", "none", "--threshold", "0.9", "--no-certificate"
        )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    return data, run, done
