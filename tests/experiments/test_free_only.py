"""The study of what costs nothing: its tables hold its settings, and the defaults are the one it chooses."""

import importlib
from pathlib import Path

import pandas as pd
import pytest

from evenhand import SenSeIClassifier


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "experiments"))
    return importlib.import_module("free_only")


def test_the_table_of_adult_holds_every_setting(study):
    table = pd.read_csv(study.RESULTS / "free_only.csv")
    assert table["setting"].tolist() == list(study.ADULT)
    assert table.notna().all().all()
    pd.testing.assert_frame_equal(table, study.means(pd.read_csv(study.RESULTS / "free_only_runs.csv")), rtol=1e-9)


def test_the_other_tables_have_every_setting(study):
    table = pd.read_csv(study.RESULTS / "free_only_tables.csv")
    assert table.groupby("table")["setting"].apply(list).map(lambda names: names == list(study.ELSEWHERE)).all()
    runs = pd.read_csv(study.RESULTS / "free_only_tables_runs.csv")
    pd.testing.assert_frame_equal(table, study.table_means(runs), rtol=1e-9)


def test_the_defaults_are_the_setting_that_the_rule_chooses(study):
    l2, settings = study.ADULT[study.chosen(pd.read_csv(study.RESULTS / "free_only.csv"))]
    assert l2 is None
    defaults = SenSeIClassifier().get_params()
    assert settings == {name: defaults[name] for name in ("rho", "free", "steps")}


def test_a_quick_run_writes_the_tables(study, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["free_only.py", "--quick", "--out", str(tmp_path)])
    study.main()
    assert len(pd.read_csv(tmp_path / "free_only.csv")) == 1
    assert len(pd.read_csv(tmp_path / "free_only_tables.csv")) == 1
