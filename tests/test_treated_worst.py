"""Only possible people are shown."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand.audit import audit
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.treated_worst import is_whole, towards


def test_whole_numbers_towards_the_original():
    before, after = np.array([3.0, 3.0, 3.0, 3.0, 0.0]), np.array([4.7, 1.2, 3.9999999, 3.0, -5.9e-10])
    np.testing.assert_array_equal(towards(before, after), [4, 2, 4, 3, 0])
    assert is_whole(pd.Series([1, 2]))
    assert is_whole(pd.Series([1.0, 2.0]))
    assert not is_whole(pd.Series([1.0, 2.5]))
    assert not is_whole(pd.Series([1.0, np.nan]))


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    job = rng.choice(["clerk", "nurse", "smith", "miner", "poet"], 300, p=[0.4, 0.3, 0.27, 0.02, 0.01])
    frame = pd.DataFrame({"credits": rng.integers(0, 9, 300), "job": job, "age": rng.uniform(18, 80, 300)})
    y = frame["credits"] + frame["age"] / 20 + rng.normal(size=300) > 6
    encode = make_column_transformer(
        (StandardScaler(), ["credits", "age"]),
        (OneHotEncoder(sparse_output=False, min_frequency=0.05), ["job"]),
    )
    model = make_pipeline(encode, LogisticRegression()).fit(frame, y)
    x = model[:-1].transform(frame)
    box = Box(x.min(0), x.max(0), blocks=[tuple(range(2, x.shape[1]))])
    directions = torch.zeros(x.shape[1], 1)
    directions[1] = 1.0
    return audit(model, frame, FairMetric(directions), 2.5, box), frame


def test_pairs_are_within_the_budget_most_different_first(found):
    pairs = found[0].pairs(100)
    assert len(pairs) > 20
    assert (pairs["d_X"] <= 2.5).all()
    assert (pairs["d_Y"].diff().dropna() <= 1e-12).all()
    assert (found[0].rows == pairs.index).all()


def test_nobody_impossible_is_shown(found):
    pairs, frame = found[0].pairs(100), found[1]
    if "credits" in pairs:
        assert is_whole(pairs["credits (worst)"])
        assert (pairs["credits (worst)"] >= 0).all()
    for column in frame.columns:
        if column in pairs:
            assert list(pairs[column]) == list(frame.loc[pairs.index, column])
    if "job" in pairs:
        assert set(pairs["job (worst)"]) <= set(frame["job"])
    assert "infrequent" not in pairs.to_string()
