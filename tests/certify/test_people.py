"""Who counts as the same person."""

import numpy as np
import pandas as pd
import pytest

from evenhand.certify.people import distinct, refuse_overlap, separate, without_copies
from evenhand.variations import Variations


def test_labels_decide_where_both_have_them():
    people = pd.DataFrame({"a": [1.0, 1.0]}, index=[7, 8])
    refuse_overlap(people, pd.DataFrame({"a": [1.0]}, index=[9]), "x_tune")
    with pytest.raises(ValueError, match="1 of 2 held-out rows are also in x_tune"):
        refuse_overlap(people, pd.DataFrame({"a": [5.0]}, index=[8]), "x_tune")


def test_values_decide_otherwise():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    refuse_overlap(x, None, "x_train")
    refuse_overlap(x, x + 1, "x_train")
    with pytest.raises(ValueError, match="distinct_people"):
        refuse_overlap(x, x[1:], "x_train")
    default = pd.DataFrame({"job": ["a", "b"]})  # 0, 1, ... names nobody
    with pytest.raises(ValueError, match="equal values"):
        refuse_overlap(default, default.iloc[[1]].reset_index(drop=True), "x_train")


def test_columns_in_another_order_hide_nobody():
    people = pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 4.0]})
    with pytest.raises(ValueError, match="2 of 2 held-out rows are also in x_train"):
        refuse_overlap(people[["b", "a"]], people, "x_train")
    refuse_overlap(people.rename(columns={"a": "b", "b": "a"}), people, "x_train")


def test_a_fifth_tunes_and_the_others_are_held_out():
    x = np.random.default_rng(0).normal(size=(53, 2))
    tuning, held_out, rows = separate(None, x)
    assert (len(tuning), len(held_out)) == (10, 43)
    np.testing.assert_array_equal(x[rows], held_out)
    assert sorted([*tuning[:, 0], *held_out[:, 0]]) == sorted(x[:, 0])  # everybody once
    with pytest.raises(ValueError, match="x_tune is needed with only 49 held-out rows"):
        separate(None, x[:49])
    with pytest.raises(ValueError, match="come in parts"):
        separate(None, iter([x]))
    tuning, held_out, rows = separate(x[:3], x)
    assert (len(tuning), len(held_out), rows.tolist()) == (3, 53, list(range(53)))
    assert separate(x[:3], iter([x]))[2].tolist() == []


def test_labels_of_one_side_alone_say_nothing():
    named, unnamed = pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 8]), pd.DataFrame({"a": [2.0, 5.0, 7.0]})
    for held_out, other in ((named, unnamed), (unnamed, named), (named, unnamed.to_numpy())):
        with pytest.raises(ValueError, match=r"1 of \d held-out rows are also in x_tune \(equal values\)"):
            refuse_overlap(held_out, other, "x_tune")


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_people_are_told_apart_in_any_unit(unit):
    x = unit * np.array([[1.0, 2.0], [3.0, 4.0]])
    refuse_overlap(x, x * (1 + 1e-6), "x_train")
    with pytest.raises(ValueError, match="2 of 2"):
        refuse_overlap(x, x * (1 + 1e-13), "x_train")  # rounding is no difference


def test_a_text_that_comes_again_is_a_copy_and_an_equal_row_of_numbers_is_somebody_else():
    texts = Variations(
        [["my gay  friend", "my deaf friend"], ["x y", "x z"], ["my gay friend ", "my old friend"]], range(3)
    )
    assert distinct(texts).tolist() == [0, 1]
    assert without_copies(texts).rows.tolist() == [0, 1]
    numbers = Variations(np.zeros((5, 2, 3)), np.arange(5))
    assert distinct(numbers).tolist() == [0, 1, 2, 3, 4]
    assert distinct(Variations(np.empty((0, 2), dtype=object), [])).tolist() == []


def test_rows_of_a_table_are_copies_where_a_text_makes_them_somebody():
    said = ["a gay man came to us", "a deaf man came to us"]
    rows = [[[text, age] for text in said] for age in (30, 30, 40)]
    letters = Variations(np.array(rows, dtype=object), np.arange(3), pd.DataFrame({"letter": ["x"], "age": [1]})[:0])
    assert distinct(letters).tolist() == [0, 2]
    jobs = np.array([[["clerk", "f"], ["clerk", "m"]]] * 3, dtype=object)  # categories: three people with a value each
    assert len(distinct(Variations(jobs, np.arange(3), pd.DataFrame({"job": ["x"], "sex": ["f"]})[:0]))) == 3
