import numpy as np
import pandas as pd
import pytest

from evenhand.estimators.sensitive import group_numbers

X = pd.DataFrame({"age": [1.0, 2, 3, 4], "sex": [0, 1, 1, 0], "race_A": [1, 0, 0, 0], "race_B": [0, 1, 0, 1]})


def test_columns_by_name_and_one_hot_blocks():
    codes, groups = group_numbers(["sex", "race"], X, 4)
    assert codes[:, 0].tolist() == [0, 1, 1, 0]
    assert codes[:, 1].tolist() == [1, 2, 0, 2]  # row 2 has no category: a group of its own
    assert groups[1].tolist() == [-1, 0, 1]


@pytest.mark.parametrize(
    "given",
    [
        ["m", "f", "f", "m"],
        np.array(["m", "f", "f", "m"], dtype=object),
        pd.DataFrame({"s": ["m", "f", "f", "m"]}),
        {"s": ["m", "f", "f", "m"]},
        lambda X: np.where(X["sex"] == 1, "f", "m"),
    ],
)
def test_values_themselves(given):
    codes, groups = group_numbers(given, X, 4)
    assert codes[:, 0].tolist() == [1, 0, 0, 1]
    assert groups[0].tolist() == ["f", "m"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.array([1, 1, 1, 1]), "single value"),
        (np.array([1, 2]), "one value for each of the 4 rows"),
        (np.array(["a", None, "b", "b"], dtype=object), "missing in 1 of 4 rows"),
        (pd.Series([True, pd.NA, False, False], dtype="boolean"), "missing in 1 of 4 rows"),
        (["sexx"], "'sex'"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(ValueError, match=message):
        group_numbers(given, X, 4)


def test_a_string_is_no_list():
    with pytest.raises(TypeError, match="write \\['sex'\\]"):
        group_numbers("sex", X, 4)


def test_too_many_groups():
    with pytest.raises(ValueError, match="bin it"):
        group_numbers(np.arange(100), np.zeros((100, 1)), 100)


def test_tables_of_other_kinds():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pl = pytest.importorskip("polars", reason="polars is not installed")
    values = ["m", "f", "f", "m"]
    for given in (pa.table({"s": values}), pa.array(values), pa.chunked_array([values]), pl.LazyFrame({"s": values})):
        codes, groups = group_numbers(given, X, 4)
        assert codes[:, 0].tolist() == [1, 0, 0, 1]
        assert groups[0].tolist() == ["f", "m"]
