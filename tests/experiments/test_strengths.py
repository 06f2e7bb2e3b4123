"""The study of the regression's strength: its table holds its settings, and Table 3 has the one it chooses."""

import importlib
from pathlib import Path

import pandas as pd
import pytest


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "experiments"))
    return importlib.import_module("strengths")


def test_the_table_holds_every_setting(study):
    table = pd.read_csv(study.RESULTS / "strengths.csv")
    assert table["setting"].tolist() == list(study.SETTINGS)
    assert table.notna().all().all()
    pd.testing.assert_frame_equal(table, study.means(pd.read_csv(study.RESULTS / "strengths_runs.csv")), rtol=1e-9)


def test_table_3_has_the_setting_that_the_rule_chooses(study):
    table = pd.read_csv(study.RESULTS / "strengths.csv")
    tables = importlib.import_module("table3_adult")
    l2, settings = study.SETTINGS[study.chosen(table)]
    assert (l2, tables.FIRST | settings) == (tables.STRENGTHS, tables.LIGHT)


def test_a_quick_run_writes_the_table(study, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["strengths.py", "--quick", "--out", str(tmp_path)])
    study.main()
    assert len(pd.read_csv(tmp_path / "strengths.csv")) == 1
