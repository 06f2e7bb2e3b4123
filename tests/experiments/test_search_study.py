"""The search study runs, counts as it says, and its committed result supports the default."""

import importlib
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"


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


def test_committed_study_has_five_seeds_and_the_default_is_no_less_fair(study):
    runs = pd.read_csv(RESULTS / "search_study_runs.csv")
    committed = pd.read_csv(RESULTS / "search_study.csv")
    milliseconds = pd.read_csv(RESULTS / "search_study_cost.csv").set_index("search")["ms"].to_dict()
    pd.testing.assert_frame_equal(study.table(runs, milliseconds).astype(committed.dtypes), committed, atol=1e-9)
    result = committed.set_index("search")
    assert (result["seeds"] >= 5).all()
    for name in ("R 0.01", "R 0.1"):
        error = max(result.loc[study.DEFAULT, f"{name} se"], result.loc[study.PAPER, f"{name} se"])
        assert result.loc[study.DEFAULT, name] <= result.loc[study.PAPER, name] + error
    assert result.loc[study.DEFAULT, "plain steps"] < result.loc[study.PAPER, "plain steps"] / 2
