"""The remaining rows of Table 3: complete, the means of their runs, and near the published ones where asked."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"


@pytest.fixture
def more(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    return importlib.import_module("table3_more")


def test_committed_table_is_the_mean_of_ten_runs_of_every_method(more):
    runs = pd.read_csv(RESULTS / "table3_more_runs.csv")
    assert (runs.groupby("method")["split"].nunique() == 10).all()
    assert set(runs["method"]) == set(more.MORE)
    pd.testing.assert_frame_equal(more.table(runs), pd.read_csv(RESULTS / "table3_more.csv"))


def test_every_published_row_has_a_measured_one(more):
    both = pd.concat([pd.read_csv(RESULTS / f"{name}.csv") for name in ("table3_adult", "table3_more")])
    measured = both[both["source"] == "measured"].set_index("method")
    assert set(more.PUBLISHED) <= set(measured.index)
    assert (measured.loc[list(more.PUBLISHED), "splits"] == 10).all()


def test_adversarial_debiasing_is_within_two_hundredths_of_the_published_row(more):
    """All columns but S-Con, where ours is the more consistent; see docs/reproduction.md."""
    table = pd.read_csv(RESULTS / "table3_more.csv").set_index(["method", "source"])[list(more.SCORES)]
    measured, published = (table.loc[("Adversarial debiasing", source)] for source in ("measured", "published"))
    assert (measured - published).abs().drop("S-Con").max() <= 0.02
    assert measured["S-Con"] > published["S-Con"]


@pytest.mark.filterwarnings("ignore")  # of fairlearn itself
def test_the_methods_of_fairlearn_run_on_a_part_of_the_data(more, monkeypatch):
    pytest.importorskip("fairlearn", reason="needs evenhand[dev]")
    monkeypatch.setitem(more.PLAIN, "steps", 20)
    train, test = more.adult(0)
    for method in ("CorrelationRemover (fairlearn)", "ExponentiatedGradient (fairlearn)"):
        model = more.MORE[method](train.X[:1500], 0).fit(train.X[:1500], train.y[:1500])
        predicted = model.predict(test.X[:200])
        assert set(np.unique(predicted)) <= {0, 1}
        assert len(predicted) == 200
