"""Adult: the published table, and the paper's protocol, against the files of UCI and scikit-learn's encoders."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import datasets

UCI = Path(__file__).parents[2].parent / "shared" / "data" / "adult"
NUMERIC = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
ONE_HOT = ["workclass", "marital-status", "occupation", "relationship"]


def test_frame_is_what_uci_publishes():
    if not UCI.exists():
        pytest.skip("needs adult.data and adult.test in ../shared/data/adult")
    frame = datasets.adult_frame()
    data, test = (
        pd.read_csv(
            UCI / name, header=None, skiprows=skip, names=list(frame.columns), skipinitialspace=True, na_values="?"
        )
        for name, skip in [("adult.data", 0), ("adult.test", 1)]
    )
    test["income"] = test["income"].str.removesuffix(".")
    pd.testing.assert_frame_equal(frame, pd.concat([data, test], ignore_index=True))


def test_frame_facts():
    frame = datasets.adult_frame()
    assert frame.shape == (48842, 15)
    assert frame.isna().sum()[lambda s: s > 0].to_dict() == {
        "workclass": 2799,
        "occupation": 2809,
        "native-country": 857,
    }
    assert set(frame["income"]) == {"<=50K", ">50K"}
    assert frame.iloc[0][["age", "workclass", "fnlwgt"]].tolist() == [39, "State-gov", 77516]
    frame["age"] = 0  # a copy: the next call is not changed
    assert datasets.adult_frame()["age"].min() == 17


def test_split_facts():
    train, test = datasets.adult(seed=0)
    assert train.X.shape == (36177, 41)
    assert test.X.shape == (9045, 41)
    y = np.concatenate([train.y, test.y])
    assert round(100 * y.mean(), 3) == 24.784
    columns = list(train.X.columns)
    assert columns[:5] == NUMERIC
    sizes = {name: sum(c.startswith(f"{name}_") for c in columns) for name in ONE_HOT}
    assert sizes == {"workclass": 7, "marital-status": 7, "occupation": 14, "relationship": 6}
    assert columns[33] == "relationship_Husband"
    assert columns[38:] == ["relationship_Wife", "sex", "race"]
    assert set(train.y.tolist()) == {0, 1}
    np.testing.assert_array_equal(test.sex == "Male", test.X["sex"] == 1)
    np.testing.assert_array_equal(test.race == "White", test.X["race"] == 1)
    np.testing.assert_array_equal(np.unique(test.race), ["Non-White", "White"])


@pytest.mark.parametrize("seed", [0, 7])
def test_features_are_those_of_scikit_learns_encoders(seed):
    frame = datasets.adult_frame()
    frame = frame[frame["native-country"].notna() & frame["occupation"].notna()]
    assert len(frame) == 45222
    order = np.random.RandomState(seed).permutation(45222)
    encode = ColumnTransformer(
        [
            ("numeric", StandardScaler(), NUMERIC),
            ("one_hot", OneHotEncoder(sparse_output=False), ONE_HOT),
            ("sex", OneHotEncoder(sparse_output=False, categories=[["Female", "Male"]], drop="first"), ["sex"]),
        ],
        verbose_feature_names_out=False,
    )
    expected = encode.fit(frame.iloc[order[:36177]])
    for part, rows in zip(datasets.adult(seed), [order[:36177], order[36177:]]):
        raw = frame.iloc[rows]
        X = expected.transform(raw)
        np.testing.assert_allclose(part.X.iloc[:, :40], X, atol=1e-9)
        assert list(part.X.columns[:39]) == list(encode.get_feature_names_out()[:39])
        np.testing.assert_array_equal(part.X["race"], raw["race"] == "White")
        np.testing.assert_array_equal(part.y, raw["income"] == ">50K")
        np.testing.assert_array_equal(part.X.index, raw.index)
        assert (part.X.dtypes == np.float64).all()


def test_shipped_small_and_with_its_licence():
    folder = files("evenhand.datasets")
    assert len(folder.joinpath("adult.csv.xz").read_bytes()) < 1_000_000
    licence = folder.joinpath("adult.LICENSE.txt").read_text()
    assert "CC BY 4.0" in licence
    assert "Kohavi" in licence
