"""Finding columns by name, and saying what would help."""

import pytest

from evenhand.tables.errors import TableError, find_column, find_columns


def test_find_column():
    assert find_column("sex", ["age", "sex"], "target") == "sex"
    with pytest.raises(TableError, match="no column 'Sexx' for the target; did you mean 'sex'"):
        find_column("Sexx", ["age", "sex"], "target")


def test_numbers_as_names_suggest_that_there_is_no_header():
    with pytest.raises(TableError) as caught:
        find_column("sex", ["39", "Private", "77516", "Bachelors"], "target")
    assert caught.value.cure == "header"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sex,race", ["sex", "race"]),
        (" sex , race ", ["sex", "race"]),
        ("income, yearly,sex", ["income, yearly", "sex"]),
        ("sex,income, yearly", ["sex", "income, yearly"]),
        ("a,b", ["a,b"]),
        ("sex,sex", ["sex"]),
        ("", []),
    ],
)
def test_names_may_hold_commas(text, found):
    assert find_columns(text, ["sex", "race", "income, yearly", "a,b", "a"], "sensitive columns") == found


def test_an_unknown_one_is_named():
    with pytest.raises(TableError, match="no column 'gender'"):
        find_columns("sex,gender", ["sex", "age"], "sensitive columns")


def test_a_column_without_a_name_by_its_number():
    headless = ["column 1", "column 2"]
    assert find_column("2", headless, "target") == "column 2"
    assert find_column("2", ["2", "column 2"], "target") == "2"  # a name is a name
    with pytest.raises(TableError, match="no column '3'"):
        find_column("3", headless, "target")
