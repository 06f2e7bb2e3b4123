import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score, roc_curve

from evenhand.error_rates import (
    FlagsMoreWarning,
    auc,
    equal_error_rate,
    error_rates,
    flags_more,
    rate_interval,
    threshold_at,
)
from evenhand.evaluation import UndefinedScoreWarning


def scored(seed, n=200):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    return y, np.round(rng.normal(size=n) + y, 1)  # with ties


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 60))
def test_auc_is_that_of_scikit_learn(seed, n):
    y, score = scored(seed, n)
    assert auc(y, score) == pytest.approx(roc_auc_score(y, score))


@pytest.mark.parametrize("seed", range(5))
def test_the_equal_error_rate_lies_on_the_roc_curve(seed):
    y, score = scored(seed)
    fpr, tpr, _ = roc_curve(y, score, drop_intermediate=False)
    rate = equal_error_rate(y, score)
    assert np.interp(rate, fpr, tpr) == pytest.approx(1 - rate)


def test_equal_error_rate_of_perfect_and_useless_scores():
    assert equal_error_rate([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4]) == 0
    assert equal_error_rate([0, 1], [0.5, 0.5]) == pytest.approx(0.5)
    assert equal_error_rate([0, 0, 1, 1], [0.3, 0.4, 0.1, 0.2]) == 1


@pytest.mark.parametrize("fpr", [0.0, 0.05, 0.3, 1.0])
def test_the_threshold_flags_no_more_than_asked_and_no_lower_one_would_do(fpr):
    y, score = scored(3)
    threshold = threshold_at(y, score, fpr)
    assert np.mean(score[y == 0] >= threshold) <= fpr
    lower = score[score < threshold]
    assert len(lower) == 0 or np.mean(score[y == 0] >= lower.max()) > fpr


def test_rates_of_groups_by_hand():
    y = np.array([0, 0, 0, 0, 1, 1, 1])
    flagged = np.array([1, 1, 0, 0, 1, 0, 0])
    groups = {"a": np.array([1, 1, 0, 0, 1, 0, 0]), "b": np.array([0, 0, 1, 1, 0, 1, 0]), "none": np.zeros(7)}
    rates = error_rates(y, flagged, groups)
    assert (rates.fpr, rates.fnr) == (0.5, pytest.approx(2 / 3))
    assert rates.fpr_of["a"] == 1
    assert rates.fnr_of["b"] == 1
    assert np.isnan(rates.fpr_of["none"])
    assert rates.fped == pytest.approx(0.5 + 0.5)
    assert rates.fned == pytest.approx(2 / 3 + 1 / 3)
    assert rates.counts["a"] == (2, 1)
    assert rates.undefined == ("group 'none' has no harmless rows", "group 'none' has no harmful rows")
    assert "FPED 1.00" in str(rates)


def test_flagging_everybody_is_named():
    y, groups = [0, 0, 1, 1], {"a": [1, 0, 1, 0]}
    plain, everybody = error_rates(y, [0, 0, 1, 0], groups), error_rates(y, [1, 1, 1, 1], groups)
    with pytest.warns(FlagsMoreWarning, match=r"100.0 % of harmless texts, the plain one 0.0 %"):
        assert flags_more(plain, everybody)
    assert flags_more(everybody, plain) == ""


def test_one_class_is_undefined():
    for score in (auc, equal_error_rate, lambda y, s: threshold_at(y, s, 0.1)):
        with pytest.warns(UndefinedScoreWarning, match="both classes"):
            assert np.isnan(score([1, 1], [0.2, 0.4]))
    assert np.isnan(error_rates([1, 1], [1, 0], {"a": [1, 1]}).fped)


@pytest.mark.parametrize(
    ("y", "score", "message"),
    [([0, 1], [1.0], "one number for each row"), ([0, 2], [0.1, 0.2], "0 and 1"), ([0, 1], [np.nan, 1], "nan in 1")],
)
def test_bad_input(y, score, message):
    with pytest.raises(ValueError, match=message):
        auc(y, score)
    with pytest.raises(ValueError, match="mask of 2 rows"):
        error_rates([0, 1], [0, 1], {"a": [1]})
    with pytest.raises(ValueError, match="share between"):
        threshold_at([0, 1], [0.1, 0.2], 3)


def test_no_group_with_positives_leaves_the_difference_undefined():
    rates = error_rates([0, 0, 1], [0, 1, 1], {"a": [1, 1, 0]})
    assert rates.fnr == 0.0
    assert np.isnan(rates.fned)
    assert rates.fped == 0.0
    assert rates.undefined == ("group 'a' has no harmful rows",)


@pytest.mark.parametrize(
    ("y", "flagged", "groups"),
    [
        (["ok", "toxic"], [0, 1], {"a": [1, 1]}),  # every text would be true
        ([0, 1], [0.2, 0.7], {"a": [1, 1]}),  # scores, of which none is zero
        ([0, 1], [0, 1], {"a": ["no", "yes"]}),
        ([0, 2], [0, 1], {"a": [1, 1]}),
    ],
)
def test_labels_scores_and_texts_are_not_taken_for_yes_and_no(y, flagged, groups):
    with pytest.raises(ValueError, match="must hold 0 and 1"):
        error_rates(y, flagged, groups)


def test_a_label_is_no_score_and_the_error_does_not_print_it():
    with pytest.raises(ValueError, match="one number for each row") as error:
        auc([0, 1], ["secret", "words"])
    assert "secret" not in str(error.value)


def test_marks_may_be_of_any_kind_of_number():
    as_bool = error_rates([False, True, False], [True, True, False], {"a": [True, True, True]})
    for kind in (float, object, np.int8):
        same = error_rates(np.array([0, 1, 0], kind), np.array([1, 1, 0], kind), {"a": np.array([1, 1, 1], kind)})
        assert same == as_bool


def test_a_text_that_was_pasted_buys_no_confidence():
    y, flagged = [0, 0, 0, 1, 1], [1, 0, 0, 1, 0]
    texts = ["a gay man", "my gay friend", "it rains", "gay trash", "what a gay"]
    groups = {"gay": [1, 1, 0, 1, 1], "none": [0, 0, 0, 0, 0]}
    alone = error_rates(y, flagged, groups, texts)
    assert str(alone) == str(error_rates(y, flagged, groups))
    assert alone.fpr_interval_of["gay"] == rate_interval(1, 2) == pytest.approx((0.0126, 0.9874), abs=1e-4)
    assert np.isnan(alone.fnr_interval_of["none"]).all()
    pasted = [0, 0, 0, 0, 0, 1, 2, 3, 4]
    some = {name: np.array(mask)[pasted] for name, mask in groups.items()}
    spaced = [texts[i] + " " * place for place, i in enumerate(pasted)]
    again = error_rates(np.array(y)[pasted], np.array(flagged)[pasted], some, spaced)
    assert again.copies == 4
    assert (again.fpr_interval_of["gay"], again.counts["gay"]) == (alone.fpr_interval_of["gay"], (2, 2))
    assert (again.fpr, again.fpr_of["gay"], again.fped) == (alone.fpr, 0.5, alone.fped)
    assert "4 rows that repeat another were not counted" in str(again)
    once = error_rates(y + [0], flagged + [1], {}, [*texts, texts[0]])
    assert "1 row that repeats another was not counted" in str(once)
    with pytest.raises(ValueError, match="one for each of the 5 rows, got a single one"):
        error_rates(y, flagged, groups, "a gay man")
    without = error_rates(np.array(y)[pasted], np.array(flagged)[pasted], some)
    assert (without.copies, without.counts["gay"]) == (0, (6, 2))
    assert without.fpr_interval_of["gay"][0] > alone.fpr_interval_of["gay"][0]


def test_the_same_text_of_another_class_group_or_answer_is_another_row():
    one = error_rates([0, 1, 0, 0], [1, 1, 1, 0], {"a": [1, 1, 0, 1]}, ["x"] * 4)
    assert one.copies == 0
    cells = [["x", 1], ["x", 2], ["x ", 1]]  # rows of a table are copies where every cell is equal
    assert error_rates([0, 0, 0], [1, 1, 1], {}, cells).copies == 1
    with pytest.raises(ValueError, match="one for each of the 3 rows"):
        error_rates([0, 0, 0], [1, 1, 1], {}, ["x"])


def test_the_confidence_of_the_intervals():
    wide = error_rates([0] * 9, [1] * 3 + [0] * 6, {"a": [1] * 9}, confidence=0.99).fpr_interval_of["a"]
    narrow = error_rates([0] * 9, [1] * 3 + [0] * 6, {"a": [1] * 9}, confidence=0.9).fpr_interval_of["a"]
    assert wide[0] < narrow[0] < 1 / 3 < narrow[1] < wide[1]
    with pytest.raises(ValueError, match="confidence is a share"):
        error_rates([0], [0], {}, confidence=95)


def test_a_missing_mark_is_refused_whatever_stands_for_it():
    for missing in (None, np.nan, pd.NA):
        with pytest.raises(ValueError, match="y must hold 0 and 1, or False and True, got other values"):
            error_rates(np.array([True, missing, False], dtype=object), [1, 0, 1], {})
