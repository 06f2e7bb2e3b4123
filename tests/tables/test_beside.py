"""Columns from another table come to the same people, or to nobody."""

import numpy as np
import pandas as pd
import pytest

from evenhand.tables.beside import with_columns_of
from evenhand.tables.errors import TableError

PEOPLE = pd.DataFrame({"id": [3, 1, 2], "pay": [30.0, 10.0, 20.0]})
SEX = pd.DataFrame({"id": [1, 2, 3, 4], "sex": ["a", "b", "c", "d"]})


def test_by_name_of_the_people():
    found = with_columns_of(PEOPLE, SEX.sample(frac=1, random_state=1), "id")
    assert found["sex"].tolist() == ["c", "a", "b"]
    assert found.columns.tolist() == ["id", "pay", "sex"]


def test_row_by_row():
    found = with_columns_of(PEOPLE, pd.DataFrame({"sex": ["x", "y", "z"]}, index=[7, 8, 9]))
    assert found["sex"].tolist() == ["x", "y", "z"]


def test_other_people_are_refused():
    with pytest.raises(TableError, match="4 rows and this one 3") as caught:
        with_columns_of(PEOPLE, SEX)
    assert caught.value.cure == "by"
    with pytest.raises(TableError, match="'id' is in both tables and differs in 3 of 3 rows"):
        with_columns_of(PEOPLE, SEX.head(3))
    with pytest.raises(TableError, match="1 of 3 people are not in the other table"):
        with_columns_of(PEOPLE, SEX[SEX["id"] != 2], "id")
    with pytest.raises(TableError, match="names 1 people twice"):
        with_columns_of(PEOPLE, SEX.assign(id=np.array([1, 1, 2, 3])), "id")
    with pytest.raises(TableError, match="no column 'who'"):
        with_columns_of(PEOPLE, SEX, "who")
