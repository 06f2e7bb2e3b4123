"""The remaining rows of Table 3: means of their runs, and the methods of fairlearn on a part of the data."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def more(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    return importlib.import_module("table3_more")


def test_the_table_has_the_published_row_above_the_mean_of_the_runs(more):
    scores = dict.fromkeys(more.SCORES, 0.5)
    runs = pd.DataFrame(
        [
            {"method": "CoCL", "split": split, **scores, "BA": ba, "cpu_seconds": 1.0}
            for split, ba in ((0, 0.7), (1, 0.8))
        ]
    )
    *published, measured = more.table(runs).to_dict("records")
    assert [row["source"] for row in published] == ["published"] * ("CoCL" in more.PUBLISHED)
    assert (measured["source"], measured["splits"], measured["BA"]) == ("measured", 2, 0.75)
    assert measured["BA se"] == pytest.approx(0.05)


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
