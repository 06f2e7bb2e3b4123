import numpy as np

from evenhand.copies import first_of_each, firsts


def test_only_a_row_that_is_equal_in_every_cell_is_a_copy_and_white_space_does_not_count():
    rows = [["a  b", 1], ["a b ", 1], ["a b", 2], ["ab", 1], ["a\nb", 1.0]]
    assert first_of_each(rows).tolist() == [0, 2, 3, 4]
    assert first_of_each(np.array([["x", None], ["x", np.nan], ["x", None]], dtype=object)).tolist() == [0, 1]
    assert first_of_each([]).dtype == np.intp


def test_each_row_knows_the_first_that_is_equal():
    assert firsts(["b", "a", "b", "b", "c"]).tolist() == [0, 1, 0, 0, 4]
    assert firsts([]).dtype == np.intp
