"""The numbers of docs/search-study.md are those of the committed results."""

import importlib
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]


def test_table_in_the_docs_is_the_committed_one(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    study = importlib.import_module("search_study")
    committed = pd.read_csv(ROOT / "experiments" / "results" / "search_study.csv")
    assert study.markdown(committed) in (ROOT / "docs" / "search-study.md").read_text()
