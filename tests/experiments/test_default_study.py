"""The study around the defaults: its table holds its settings, and says what the docs say of them."""

import importlib
from pathlib import Path

import pandas as pd


def test_the_table_holds_every_setting(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "experiments"))
    study = importlib.import_module("default_study")
    table = pd.read_csv(study.RESULTS / "default_study.csv")
    assert table["setting"].tolist() == list(study.SETTINGS)
    assert table.drop(columns="setting").notna().all().all()
    assert ((table["BA"] < 0.79) | (table["S-Con"] < 0.945)).all()
