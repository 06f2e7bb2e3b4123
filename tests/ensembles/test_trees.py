import numpy as np
import pytest

from evenhand.ensembles.read import Tree, join_trees

STUMP = Tree(*map(np.array, ([0, -1, -1], [0.5, 0, 0], [1, 0, 0], [2, 0, 0], [0.0, -1.0, 3.0], [True, True, True])))


def test_hard_split_goes_left_up_to_the_threshold():
    stump = join_trees([STUMP], [0], [10.0], 2)
    assert stump([[0.5, 0], [0.50001, 0], [np.nan, 0]])[:, 0].tolist() == [9.0, 13.0, 9.0]


def test_soft_split_is_a_ramp():
    soft = join_trees([STUMP], [0], [0.0], 2).softened([0.25, 0.0])
    assert soft([[0.25, 0], [0.375, 0], [0.5, 0], [0.75, 0]])[:, 0] == pytest.approx([-1, 0, 1, 3])
    assert soft.thresholds()[0].tolist() == [0.25, 0.5, 0.75]


def test_two_values_keep_their_predictions():
    hard = join_trees([STUMP, STUMP], [0, 1], [0.0, 1.0], 2)
    soft = hard.softened([0.1, 0.1], {0: (0.0, 1.0)})
    ends = [[0.0, 5.0], [1.0, 5.0]]
    assert (soft(ends) == hard(ends)).all()
    assert soft([[0.25, 0.0]])[0, 0] == pytest.approx(0.0)


def test_wrong_width_is_named():
    with pytest.raises(ValueError, match="read for 2 features"):
        join_trees([STUMP], [0], [0.0], 2)([[1.0]])


def test_texts_are_not_shown():
    with pytest.raises(ValueError, match=r"column\(s\) '1' of x are not numbers") as raised:
        join_trees([STUMP], [0], [0.0], 2)([[1.0, "Jane Doe"]])
    assert "Jane" not in str(raised.value)
