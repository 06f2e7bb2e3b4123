import numpy as np
import pytest

from evenhand.text.validation import between, choose, one_against_rest, passes, split, weights

CODES = np.repeat([0, 1], 100)
PLAIN = {"skill": 0.9, "auc": 0.9, "ctf": 0.1}


def row(rho, skill, ctf, auc=None):
    return {"rho": rho, "skill": skill, "auc": skill if auc is None else auc, "ctf": ctf}


@pytest.mark.parametrize(
    ("tried", "taken", "said"),
    [
        ([row(0.1, 0.9, 0.05), row(0.3, 0.899, 0.04), row(1, 0.85, 0.01)], 1, ""),
        ([row(0.1, 0.9, 0.05), row(0.3, 0.9, 0.0549), row(1, 0.9, 0.056)], 1, ""),  # the same up to a tenth
        ([row(0.1, 0.9, 0.05, auc=0.8), row(0.3, 0.899, 0.06)], 1, ""),  # both skills count
        ([row(0.1, 0.88, 0.05), row(0.3, 0.87, 0.01)], 0, "the one that loses least was taken (0.02)"),
        ([row(0.1, 0.7, 0.05), row(0.3, 0.6, 0.01)], None, "the plain model is kept"),
        ([row(0.1, 0.9, 0.2)], None, "the plain model is the most consistent"),
    ],
)
def test_the_rule(tried, taken, said):
    found, words = choose(tried, PLAIN, 0.002, CODES, compared=50)
    assert found == taken
    assert said in words
    assert bool(said) == bool(words)


def test_what_it_cannot_judge_is_said():
    few = np.repeat([0, 1, 2], [30, 30, 5])
    assert "5 validation texts" in choose([row(1, 0.9, 0.05)], PLAIN, 0.002, few, compared=50)[1]
    assert choose([row(1, 0.81, 0.05)], PLAIN, 0.002, few, compared=50)[0] == 0  # chance alone: 2 sqrt(.79 * .21 / 5)
    assert choose([row(1, 0.79, 0.05)], PLAIN, 0.002, few, compared=50)[0] is None  # but never more than .1
    assert choose([row(1, 0.84, 0.05)], PLAIN, 0.002, np.repeat([0, 1], 1000), compared=50)[0] is None  # chance: .013
    perfect = {"skill": 1.0, "auc": 1.0, "ctf": 0.1}
    assert choose([row(1, 0.9, 0.05)], perfect, 0.002, few, compared=50)[0] == 0
    assert choose([row(1, 0.9, 0.2)], PLAIN, 0.002, few, compared=5)[0] == 0  # too few to call the plain one better


def test_weights_grow_with_the_classes_without_a_jump():
    assert weights((0.1,), 2) == (0.1,)
    values = [weights((0.1,), k)[0] for k in (2, 3, 5, 28)]
    assert values == sorted(values)
    assert values[1] < 0.3
    assert values[3] == pytest.approx(10, rel=0.1)


def test_one_against_rest():
    codes = np.array([0, 1, 2, 0, 1, 2])
    assert one_against_rest(codes, np.eye(3)[codes]) == 1.0
    assert one_against_rest(codes, np.ones((6, 3))) == 0.5


def test_split_and_between_keep_their_promises():
    fit, held = split(CODES, 0.25, 0)
    assert sorted([*fit, *held]) == list(range(200))
    assert np.bincount(CODES[held]).tolist() == [25, 25]
    assert between(np.array([0.2, 0.6]), 0.6) == pytest.approx(0.4)


def test_where_few_texts_validate_the_smallest_weight_that_passes_is_taken():
    tried = [row(0.1, 0.9, 0.08), row(0.3, 0.9, 0.01)]
    assert choose(tried, PLAIN, 0.002, np.repeat([0, 1], [19, 30]), compared=50)[0] == 0
    assert choose(tried, PLAIN, 0.002, np.repeat([0, 1], [20, 30]), compared=50)[0] == 1
    assert choose([row(0.1, 0.8, 0.08), tried[1]], PLAIN, 0.002, np.repeat([0, 1], 19), compared=50)[0] == 1


def test_what_passes_keeps_both_skills_and_is_consistent():
    assert passes(row(1, 0.9, 0.05), PLAIN, 0.002, CODES)
    assert passes(row(1, 0.899, 0.1), PLAIN, 0.002, CODES)
    assert not passes(row(1, 0.89, 0.05), PLAIN, 0.002, CODES)
    assert not passes(row(1, 0.9, 0.05, auc=0.89), PLAIN, 0.002, CODES)
    assert not passes(row(1, 0.9, 0.2), PLAIN, 0.002, CODES)
    assert not passes(row(1, 0.9, 0.05), PLAIN, 0.002, np.repeat([0, 1], 19))
