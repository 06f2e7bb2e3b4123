"""The study of how many rows worst cases are looked for of."""

import importlib
from pathlib import Path

import pandas as pd
import pytest


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "experiments"))
    return importlib.import_module("looked_at")


def test_the_committed_means_are_those_of_the_runs(study):
    table = pd.read_csv(study.RESULTS / "looked_at.csv")
    pd.testing.assert_frame_equal(table, study.means(pd.read_csv(study.RESULTS / "looked_at_runs.csv")), rtol=1e-9)
    assert set(table["every"]) == set(study.EVERY)


def test_a_small_run(study, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["looked_at.py", "--quick", "--out", str(tmp_path)])
    study.main()
    assert pd.read_csv(tmp_path / "looked_at.csv")["every"].tolist() == list(study.EVERY)
