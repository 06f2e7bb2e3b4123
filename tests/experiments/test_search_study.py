"""The search study runs and counts as it says."""

import importlib
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    return importlib.import_module("search_study")


def test_one_run(study, monkeypatch):
    monkeypatch.setitem(study.TRAINING, "steps", 3)
    row = study.run(study.DEFAULT, 0, 8)
    assert row["method"] == study.DEFAULT
    assert 0 < row["R 0.01"] <= row["R 0.1"]  # R(h) grows with eps
    assert 0 <= row["BA"] <= 1


def test_table_takes_means_and_counts_in_plain_steps(study):
    runs = pd.DataFrame(
        [
            {"method": method, "split": split, "BA": 0.8, "R 0.01": r + split, "R 0.1": 2 * r}
            for method, r in ((study.PLAIN, 4.0), (study.PAPER, 1.0), (study.DEFAULT, 1.0))
            for split in range(3)
        ]
    )
    result = study.table(runs, {study.PLAIN: 2.0, study.PAPER: 80.0, study.DEFAULT: 9.0}).set_index("search")
    assert result.loc[study.PAPER, "plain steps"] == 40
    assert result.loc[study.DEFAULT, "plain steps"] == 4.5
    assert result.loc[study.DEFAULT, "R 0.01"] == 2.0
    assert result.loc[study.DEFAULT, "R 0.01 se"] == pytest.approx(3**-0.5, abs=0.01)
