"""The scores of Table 3 on models whose scores are known, and runs that resume."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def table3(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    return importlib.import_module("table3_adult")


class Rule:
    """A model that decides by one column."""

    def __init__(self, column):
        self.column = column

    def predict(self, X):
        return (np.asarray(X[self.column]) > 0.5).astype(int)


def test_scores_of_known_models(table3):
    test = table3.adult(0).test
    test = table3.Table(*(column[:2000] for column in test))
    by_sex = table3.scores(Rule("sex"), test)
    assert by_sex["GR-Con"] == 0  # every flip of sex changes the answer
    assert by_sex["S-Con"] == 1  # relationship does not
    assert by_sex["Gap_G RMS"] == by_sex["Gap_G max"] == 1  # right for one sex of a class, wrong for the other
    by_marriage = table3.scores(Rule("relationship_Husband"), test)
    assert by_marriage["S-Con"] == 0
    assert by_marriage["GR-Con"] == 1
    husband, y = test.X["relationship_Husband"].to_numpy() > 0.5, test.y
    assert by_marriage["BA"] == pytest.approx((husband[y == 1].mean() + (~husband[y == 0]).mean()) / 2, abs=1e-5)
    white = test.race == "White"
    rates = [(husband[(y == c) & g] == c).mean() for c in (0, 1) for g in (white, ~white)]
    gaps = np.abs([rates[0] - rates[1], rates[2] - rates[3]])
    assert by_marriage["Gap_R max"] == pytest.approx(gaps.max(), abs=1e-5)
    assert by_marriage["Gap_R RMS"] == pytest.approx(np.sqrt((gaps**2).mean()), abs=1e-5)


def test_the_authors_second_weight_column_adds_a_direction(table3):
    train = table3.adult(0).train.X.iloc[:2000]
    three, four = table3.metric(train), table3.metric(train, directions=4)
    assert (three.directions.shape[1], four.directions.shape[1]) == (3, 4)
    np.testing.assert_allclose(four.directions[:, :3], three.directions, atol=1e-6)
    assert not four.directions[train.columns.get_loc("sex"), 3].abs() > 1e-6  # the regression does not see sex
    np.testing.assert_array_equal(four.directions, table3.metric(train, directions=4).directions)


def test_finished_runs_are_not_made_again(table3, tmp_path):
    made = []

    def run(method, split):
        made.append((method, split))
        return {"method": method, "split": split, **dict.fromkeys(table3.SCORES, 0.5), "cpu_seconds": 1.0}

    path = tmp_path / "runs.csv"
    table3.run_missing(path, [("Baseline", 0), ("SenSeI", 0)], 1, run)
    frame = table3.run_missing(path, [("Baseline", 0), ("SenSeI", 0), ("SenSeI", 1)], 1, run)
    assert made == [("Baseline", 0), ("SenSeI", 0), ("SenSeI", 1)]
    assert len(frame) == len(pd.read_csv(path)) == 3
    result = table3.table(frame)
    assert result[result["source"] == "measured"].set_index("method")["splits"].to_dict() == {
        "Baseline": 1,
        "SenSeI": 2,
    }


@pytest.mark.parametrize("method", ["Baseline", "Project", "SenSR", "SenSeI", "SenSeI, 4 directions"])
def test_every_method_runs(table3, monkeypatch, method):
    for name in ("PLAIN", "FAIR"):
        monkeypatch.setitem(getattr(table3, name), "steps", 3)
    train = table3.adult(0).train
    train = table3.Table(*(column[:600] for column in train))
    estimator = table3.METHODS[method](train.X, 0).set_params(steps=3)
    values = table3.scores(estimator.fit(train.X, train.y), train)
    assert list(values) == list(table3.SCORES)
    assert all(0 <= value <= 1 for value in values.values())
