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
from evenhand.treated_worst import Worst, decimals, towards


def test_whole_numbers_towards_the_original():
    before, after = np.array([3.0, 3.0, 3.0, 3.0, 0.0]), np.array([4.7, 1.2, 3.9999999, 3.0, -5.9e-10])
    np.testing.assert_array_equal(towards(before, after), [4, 2, 4, 3, 0])
    np.testing.assert_allclose(towards(np.array([2.64, 2.64]), np.array([2.6551, 2.6049]), 2), [2.65, 2.61])
    np.testing.assert_array_equal(towards(np.array([28.700001]), np.array([28.700001]), 1), [28.700001])  # unmoved


@pytest.mark.parametrize(
    ("values", "digits"),
    [
        ([1, 2], 0),
        ([1.0, np.nan], 0),
        ([1.5, 2], 1),
        (np.float32([28.7, 3.1]), 1),
        ([2.64], 2),
        ([np.pi], None),
        ([], None),
    ],
)
def test_decimals_of_a_column(values, digits):
    assert decimals(np.asarray(values, dtype=np.float64)) == digits


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
        assert decimals(pairs["credits (worst)"].to_numpy(dtype=float)) == 0
        assert (pairs["credits (worst)"] >= 0).all()
    for column in frame.columns:
        if column in pairs:
            assert list(pairs[column]) == list(frame.loc[pairs.index, column])
    if "job" in pairs:
        assert set(pairs["job (worst)"]) <= set(frame["job"])
    assert "infrequent" not in pairs.to_string()


def test_one_person_beside_somebody_similar_though_numbers_are_rounded():
    """The search leaves a whole number by little, paid for by another column; rounded, that pair is too different, and
    the numbers move less: what costs nothing (sex) still differs."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"years": rng.integers(0, 9, 200), "pay": rng.normal(30, 8, 200).round(1),
                          "sex": rng.choice(["f", "m"], 200)})  # fmt: skip
    y = frame["years"] + frame["pay"] / 8 + 3 * (frame["sex"] == "m") + rng.normal(size=200) > 9
    sex = OneHotEncoder(drop="if_binary", sparse_output=False)
    encode = make_column_transformer((StandardScaler(), ["years", "pay"]), (sex, ["sex"]))
    model = make_pipeline(encode, LogisticRegression()).fit(frame, y)
    x = model[:-1].transform(frame)
    box = Box(x.min(0), x.max(0), binary=[2])
    directions = torch.tensor([[0.8, 0.0], [-0.6, 0.0], [0.0, 1.0]])  # sex is free, and years against pay
    for i in range(4):
        pairs = audit(model, frame.iloc[[i]], FairMetric(directions), 0.01, box).pairs(1)
        assert len(pairs) == 1
        assert pairs["d_X"].iloc[0] <= 0.01
        assert {"sex", "sex (worst)"} <= set(pairs.columns)
        if "years (worst)" in pairs:
            assert float(pairs["years (worst)"].iloc[0]).is_integer()


def test_of_many_the_most_different_are_kept_chunk_by_chunk():
    """h = z with z free in [0, 1]: the farthest that anybody similar can be is max(z, 1 - z)."""
    z = np.random.default_rng(2).permutation(np.linspace(0.02, 0.99, 20))
    x = np.column_stack([z, np.zeros(20)])
    directions = torch.tensor([[1.0], [0.0]])
    model = torch.nn.Linear(2, 1, bias=False).double()
    model.weight.data[:] = torch.tensor([[1.0, 0.0]])
    found = audit(model, x, FairMetric(directions), 0.0, (0.0, 1.0), keep=3, chunk=10, effort=0.2)
    farthest = np.maximum(z, 1 - z)
    expected = np.argsort(-farthest)[:3]
    assert found.rows.tolist() == expected.tolist()
    assert found.pairs()["d_Y"].tolist() == pytest.approx(farthest[expected] ** 2, rel=1e-6)


def test_numbers_go_a_share_of_their_way():
    """From 10 to 20 half the way is 15, from 1.0 to 2.0 it is 1.5; a column of whole numbers stays one."""
    worst = Worst(1, judged=None, attack=None, eps=0.1)
    before = pd.DataFrame({"age": [10.0, 40.0], "rate": [1.25, 3.0]})
    after = pd.DataFrame({"age": [20.0, 35.0], "rate": [2.25, 3.0]})
    point, original, shown = worst._possible(torch.tensor(after.to_numpy().tolist()), before.copy(), after, None, 0.5)
    assert original.equals(before)
    assert shown["age"].tolist() == [15.0, 38.0]  # 37.5, no further from 40
    assert shown["rate"].tolist() == [1.75, 3.0]
    assert point.tolist() == shown.to_numpy().tolist()


def test_nobody_who_is_treated_the_same_is_shown():
    """A model that does not look at the column that may change: nobody similar differs."""
    x = np.random.default_rng(0).normal(size=(30, 2))
    metric = FairMetric(torch.tensor([[1.0], [0.0]], dtype=torch.float64))
    found = audit(torch.nn.Linear(2, 1).double().requires_grad_(False), x, metric, eps=0.01, bounds=(-5.0, 5.0))
    assert (found.pairs(5)["d_Y"] > 0).all()
    blind = torch.nn.Linear(2, 1).double()
    torch.nn.init.zeros_(blind.weight)
    assert len(audit(blind, x, metric, eps=0.01, bounds=(-5.0, 5.0)).pairs(5)) == 0
