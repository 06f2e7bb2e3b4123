import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from evenhand.fair_metrics import from_columns
from evenhand.fair_metrics.columns import column_positions

FRAME = pd.DataFrame({"age": [1.0], "sex": [0.0], "race_White": [1.0], "race_Black": [0.0], "races": [2.0]})


@pytest.mark.parametrize("X", [FRAME, pl.from_pandas(FRAME)])
def test_named_columns_and_one_hot_blocks(X):
    metric = from_columns(X, ["sex", "race"])
    free = metric.sigma.diagonal() == 0
    assert free.tolist() == [False, True, True, True, False]
    assert from_columns(X, ["race_White"]).directions[:, 0].tolist() == [0, 0, 1, 0, 0]


def test_positions_of_an_array():
    metric = from_columns(np.zeros((2, 4)), [0, -1])
    assert (metric.sigma.diagonal() == 0).tolist() == [True, False, False, True]
    x = torch.randn(3, 4)
    moved = x.clone()
    moved[:, 0] += 5
    assert (metric(x, moved) == 0).all()


def test_nested_lists_have_positions_too():
    assert from_columns([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [1]).directions[:, 0].tolist() == [0, 1, 0]


def test_unknown_columns_come_with_the_closest_names():
    with pytest.raises(ValueError, match=r"'sexx' does not exist; the closest are 'sex'"):
        from_columns(FRAME, ["sexx"])
    with pytest.raises(ValueError, match="column 7 does not exist: the data have 4 unnamed columns"):
        from_columns(np.zeros((2, 4)), [7])
    with pytest.raises(TypeError, match=r"write \['sex'\]"):
        from_columns(FRAME, "sex")
    with pytest.raises(ValueError, match="two-dimensional"):
        from_columns(np.zeros(4), [0])


def test_negative_positions_count_from_the_end_and_no_further():
    X = np.zeros((2, 3))
    assert column_positions(X, [-1, -3, 2]) == [2, 0]
    for wrong in (-4, 3, 1.5):
        with pytest.raises(ValueError, match="does not exist: the data have 3 unnamed columns"):
            column_positions(X, [wrong])


def test_a_missing_column_of_a_pyarrow_table_prints_names_and_no_people():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pa.table({"age": [31.0, 45.0], "surname": ["Secretname", "Other"]})
    with pytest.raises(ValueError, match="column 'sex' does not exist; the closest are 'surname'") as error:
        from_columns(table, ["sex"])
    assert "Secretname" not in str(error.value)
    assert from_columns(table, ["age"]).directions[:, 0].tolist() == [1, 0]


def test_numbers_and_tuples_that_are_names():
    """2 is the column called 2, wherever it stands; only where no name is a number is it the third one."""
    numbered = pd.DataFrame([[0.0, 1.0, 2.0]], columns=[2, 1, 0])
    assert column_positions(numbered, [2, 1]) == [0, 1]
    with pytest.raises(ValueError, match="column 3 does not exist"):
        column_positions(numbered, [3])
    levels = numbered.set_axis(pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")]), axis=1)
    assert column_positions(levels, [("b", "x")]) == [2]
    mixed = numbered.set_axis(["sex", 7, "race_white"], axis=1)
    assert column_positions(mixed, [7, "race", "sex"]) == [1, 2, 0]
    with pytest.raises(ValueError, match="column 0 does not exist"):
        column_positions(mixed, [0])
    assert column_positions(numbered.set_axis(["a", "b", "c"], axis=1), [2, -3]) == [2, 0]
