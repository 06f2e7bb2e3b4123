"""Altered columns: numbers, one-hot blocks and text columns in pandas, polars and arrays."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import datasets
from evenhand.counterfactuals import alter_columns
from evenhand.evaluation import prediction_consistency

FRAME = pd.DataFrame(
    {
        "age": [0.5, -1.0, 0.0],
        "relationship_Husband": [1.0, 0.0, 0.0],
        "relationship_Own-child": [0.0, 1.0, 0.0],
        "relationship_Wife": [0.0, 0.0, 1.0],
        "sex": [1.0, 1.0, 0.0],
        "race": [1.0, 0.0, 0.0],
    }
)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.floats(-5, 5)), min_size=1, max_size=10))
def test_all_combinations_once_and_the_original_first(rows):
    X = np.array(rows)
    same = alter_columns(X, {0: [0, 1], 1: [0, 1, 2]})
    assert same.values.shape == (len(X), 6, 3)
    np.testing.assert_array_equal(same.original, X)
    np.testing.assert_array_equal(same.rows, np.arange(len(X)))
    np.testing.assert_array_equal(same.values[:, :, 2], np.repeat(X[:, 2:], 6, axis=1))
    for versions in same.values:
        assert {(v[0], v[1]) for v in versions} == set(product([0, 1], [0, 1, 2]))
    plain = alter_columns(X, {0: [0, 1], 1: [0, 1, 2]}, keep_original=False)
    np.testing.assert_array_equal(plain.values[0, :, :2], list(product([0, 1], [0, 1, 2])))


def test_a_row_which_is_none_of_the_combinations_gets_one_version_more():
    same = alter_columns(FRAME, {"relationship": ["Husband", "Wife"]})
    assert same.values.shape == (3, 3, 6)
    np.testing.assert_array_equal(same.original, FRAME)
    np.testing.assert_array_equal(same.versions(1, 2).values[:, :, 1:4], [[[1, 0, 0], [0, 0, 1]]] * 3)
    paper = alter_columns(FRAME, {"relationship": ["Husband", "Wife"]}, keep_original=False)
    np.testing.assert_array_equal(paper.values, same.versions(1, 2).values)
    assert same.columns == tuple(FRAME.columns)


@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas, lambda f: f.astype("float32")])
def test_blocks_and_numbers_together_in_any_frame(convert):
    X = convert(FRAME)
    same = alter_columns(X, {"sex": [0, 1], "relationship": ["Wife", "Own-child", "Husband"]})
    assert same.values.shape == (3, 6, 6)
    np.testing.assert_array_equal(same.original, FRAME)
    assert same.values.dtype == X["age"].to_numpy().dtype
    flat = same.flat()
    assert type(flat) is type(X)
    assert list(flat.columns) == list(FRAME.columns)
    assert list(flat.dtypes) == list(X.dtypes)


def test_paper_scores_on_adult_against_a_loop():
    """S-Con and GR-Con by their definition, one copy of the test set at a time."""
    train, test = datasets.adult(seed=0)
    clf = LogisticRegression(C=1.0, max_iter=300).fit(train.X, train.y)

    def predict_with(**values):
        return clf.predict(test.X.assign(**values))

    block = [c for c in test.X if c.startswith("relationship_")]
    husband = predict_with(**{c: float(c.endswith("Husband")) for c in block})
    wife = predict_with(**{c: float(c.endswith("Wife")) for c in block})
    s_con = alter_columns(test.X, {"relationship": ["Husband", "Wife"]}, keep_original=False).map(clf.predict)
    assert prediction_consistency(s_con) == np.mean(husband == wife)

    copies = np.stack([predict_with(sex=s, race=r) for s in (0.0, 1.0) for r in (0.0, 1.0)])
    same = alter_columns(test.X, {"sex": [0, 1], "race": [0, 1]})
    assert same.values.shape == (9045, 4, 41)
    gr_con = prediction_consistency(same.map(clf.predict))
    assert gr_con == np.mean((copies == copies[0]).all(axis=0))
    assert 0.5 < gr_con < 1


def test_unencoded_frames_through_a_pipeline():
    frame = datasets.adult_frame().head(2000)
    X = frame[["age", "relationship", "sex", "hours-per-week"]]
    encode = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(), ["relationship", "sex"]),
    )
    clf = make_pipeline(encode, LogisticRegression()).fit(X, frame["income"])
    same = alter_columns(X, {"sex": ["Female", "Male"]})
    assert same.values.shape == (2000, 2, 4)
    predicted = same.map(clf.predict).values
    np.testing.assert_array_equal(predicted[:, 0], clf.predict(X))
    other = np.where(X["sex"] == "Male", "Female", "Male")
    np.testing.assert_array_equal(predicted[:, 1], clf.predict(X.assign(sex=other)))


def test_polars_text_columns_and_bools():
    X = pl.DataFrame({"job": ["cook", "nurse"], "old": [True, False], "n": [1, 2]})
    same = alter_columns(X, {"job": ["nurse", "cook"], "old": [True, False]})
    assert same.values.shape == (2, 4, 3)
    assert same.flat().schema == X.schema
    assert same.versions(0).flat().equals(X)


def test_dummies_of_bools():
    X = pd.get_dummies(pd.DataFrame({"n": [1.5, 2.5], "job": ["cook", "nurse"]}))
    same = alter_columns(X, {"job": ["cook", "nurse"]})
    assert same.values.tolist() == [[[1.5, 1, 0], [1.5, 0, 1]], [[2.5, 0, 1], [2.5, 1, 0]]]
    pd.testing.assert_frame_equal(same.versions(0).flat(), X)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sexx": [0, 1]}, "no column 'sexx'.*closest: sex"),
        ({"relationshp": ["Wife"]}, "closest: relationship"),
        ({"relationship": ["Wive"]}, "no category 'Wive'; closest: Wife"),
        ({"relationship": "Wife"}, "must be a list of values"),
        ({"sex": 1}, "must be a list of values"),
        ({"sex": []}, "must be a list of values"),
        ({"sex": [0, 1, 0]}, "holds 0 twice"),
        ({}, "changes is empty"),
        ({"relationship": ["Wife"], "relationship_Wife": [0]}, "'relationship_Wife' twice"),
    ],
)
def test_mistakes_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        alter_columns(FRAME, changes)


def test_blocks_which_are_not_one_hot():
    standardised = (FRAME - FRAME.mean()) / FRAME.std()
    with pytest.raises(ValueError, match="are not one-hot"):
        alter_columns(standardised, {"relationship": ["Husband", "Wife"]})
    with pytest.raises(ValueError, match="are not one-hot"):
        alter_columns(FRAME.assign(relationship_Wife=1.0), {"relationship": ["Husband", "Wife"]})


@pytest.mark.parametrize(
    ("X", "changes"),
    [
        (pd.DataFrame({"age": [30, 40]}), {"age": [30.5]}),
        (pd.DataFrame({"age": [30, 40]}), {"age": ["old"]}),
        (pd.DataFrame({"age": pd.Categorical(["old", "young"])}), {"age": ["middle"]}),
        (pl.DataFrame({"age": [30, 40]}), {"age": [30.5]}),
        (pl.DataFrame({"age": [30, 40]}), {"age": ["old"]}),
        (np.array([[30], [40]]), {0: [30.5]}),
    ],
)
def test_values_which_the_column_cannot_hold(X, changes):
    with pytest.raises(ValueError, match="cannot hold"):
        alter_columns(X, changes)


def test_misspelt_text_warns():
    X = pd.DataFrame({"relationship": ["Husband", "Wife"]})
    with pytest.warns(UserWarning, match="is 'Husband' meant"):
        alter_columns(X, {"relationship": ["Housband", "Wife"]})


def test_arrays_and_odd_frames():
    with pytest.raises(ValueError, match="by position 0 to 2, not 'sex'"):
        alter_columns(np.zeros((2, 3)), {"sex": [0, 1]})
    with pytest.raises(ValueError, match="array \\(n, d\\)"):
        alter_columns(np.zeros(3), {0: [0, 1]})
    with pytest.raises(ValueError, match="two columns named 'a'"):
        alter_columns(pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]), {"a": [0, 1]})
    assert alter_columns(FRAME[:0], {"sex": [0, 1]}).values.shape == (0, 2, 6)


def test_a_pyarrow_table_is_a_frame_and_its_errors_print_no_people():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pa.table({"age": [31.0, 45.0], "sex": [0, 1]})
    expected = alter_columns(table.to_pandas(), {"sex": [0, 1]})
    np.testing.assert_array_equal(alter_columns(table, {"sex": [0, 1]}).values, expected.values)
    named = pa.table({"surname": ["Secretname", "Other"]})
    with pytest.raises(ValueError, match="surname") as error:
        alter_columns(named, {"sex": [0, 1]})
    assert "Secretname" not in str(error.value)
