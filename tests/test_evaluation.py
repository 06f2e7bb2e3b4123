"""Scores against scikit-learn, fairlearn and cases computed by hand; undefined is named and never a pass."""

from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, recall_score

from evenhand.evaluation import (
    UndefinedScoreWarning,
    accuracy_spread,
    balanced_accuracy,
    ctf_squared,
    ctf_std,
    prediction_consistency,
    tpr_gaps,
)
from evenhand.variations import Variations


def random_case(seed, n=400, classes=3, groups=("a", "b")):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    predicted = np.where(rng.uniform(size=n) < 0.6, y, rng.integers(classes, size=n))
    return y, predicted, rng.choice(groups, size=n)


labelled = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from("abc")), min_size=1, max_size=40)


# balanced accuracy


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("names", [np.arange(4), np.array(["w", "x", "y", "z"]), np.array([1.0, 2, 3, 4])])
def test_balanced_accuracy_is_scikit_learns(seed, names):
    y, predicted, _ = random_case(seed, classes=4)
    expected = balanced_accuracy_score(names[y], names[predicted])
    assert balanced_accuracy(names[y], names[predicted]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("y", "predicted", "message"),
    [
        ([], [], "empty"),
        ([0, 1], [0], "2 rows but predicted has 1"),
        ([[0, 1]], [[0, 1]], "one label for each row"),
        ([0.0, np.nan], [0, 0], "y is missing in row 1"),
        ([0, 1], ["0", "1"], "never equal"),
    ],
)
def test_labels_are_checked(y, predicted, message):
    with pytest.raises(ValueError, match=message):
        balanced_accuracy(y, predicted)


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
def test_a_missing_prediction_is_not_an_accuracy(nothing):
    with pytest.warns(UndefinedScoreWarning, match="predicted is missing in row 2"):
        assert np.isnan(balanced_accuracy([0, 1, 1], np.array([0, 1, nothing], dtype=object)))


# consistency and CTF


def test_consistency_by_hand():
    labels = np.array([[1, 1, 1], [0, 0, 1], [2, 2, 2], [1, 0, 1]])
    assert prediction_consistency(labels) == 0.5
    assert prediction_consistency(Variations(labels, [3, 5, 6, 8])) == 0.5
    assert prediction_consistency(labels.astype(str)) == 0.5


@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=20), st.randoms())
def test_consistency_ignores_order_and_repeats(labels, random):
    labels = np.array(labels)
    score = prediction_consistency(labels)
    assert score == np.mean([len(set(row)) == 1 for row in labels.tolist()])
    shuffled = labels[random.sample(range(len(labels)), len(labels))][:, random.sample(range(3), 3)]
    assert prediction_consistency(shuffled) == score
    assert prediction_consistency(np.concatenate([labels, labels[:, :1]], axis=1)) == score
    assert prediction_consistency(labels[:, :2]) >= score  # fewer versions can only agree more often


def test_ctf_by_hand():
    assert ctf_std([[0.0, 1.0], [0.25, 0.25]]) == pytest.approx(0.25)
    assert ctf_std(np.array([[0.1, 0.4, 0.7]])) == pytest.approx(np.sqrt(0.06))
    probabilities = np.array([[[0.5, 0.5, 0.0], [0.2, 0.4, 0.4]], [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])
    assert ctf_squared(probabilities) == pytest.approx((0.09 + 0.01 + 0.16) / 2)
    # for two versions of a binary probability, squared distance = 2 (p - p')^2 = 8 std^2
    p = np.random.default_rng(0).uniform(size=(1, 2))
    assert ctf_squared(np.stack([p, 1 - p], axis=-1)) == pytest.approx(8 * ctf_std(p) ** 2)


def test_versions_which_cannot_be_compared():
    for score in (prediction_consistency, ctf_std):
        with pytest.raises(ValueError, match="at least 2 versions"):
            score(np.zeros((3, 1)))
        with pytest.raises(ValueError, match=r"shape \(3, 2, 2\)"):
            score(np.zeros((3, 2, 2)))
        with pytest.warns(UndefinedScoreWarning, match="nobody"):
            assert np.isnan(score(np.zeros((0, 2))))
    with pytest.raises(ValueError, match="two versions, got 3"):
        ctf_squared(np.zeros((3, 3, 2)))
    with pytest.raises(ValueError, match="logits"):
        ctf_std([[3.0, -2.0]])
    for wrong in ([[1.5, 0.5]], [[0.5, -0.5]]):
        with pytest.raises(ValueError, match="between 0 and 1"):
            ctf_std(wrong)


def test_nan_is_named_by_the_row_of_the_individual():
    values = np.array([[1.0, 1.0], [np.nan, 1.0], [np.nan, np.nan]])
    for score in (prediction_consistency, ctf_std):
        with pytest.warns(UndefinedScoreWarning, match="rows 20, 30"):
            assert np.isnan(score(Variations(values, [10, 20, 30])))
    with pytest.warns(UndefinedScoreWarning, match="row 0"):
        assert np.isnan(ctf_squared(np.full((1, 2, 3), np.nan)))
    with pytest.warns(UndefinedScoreWarning, match="row 0"):
        assert np.isnan(prediction_consistency(np.array([[None, None]], dtype=object)))


# gaps


def test_gaps_of_two_classes_are_those_of_tpr_and_tnr():
    """Adult: Gap RMS = sqrt((dTPR^2 + dTNR^2) / 2), Gap max = max(|dTPR|, |dTNR|)."""
    y, predicted, sex = random_case(3, classes=2)
    frame = MetricFrame(
        metrics={"tpr": recall_score, "tnr": lambda a, b: recall_score(a, b, pos_label=0)},
        y_true=y,
        y_pred=predicted,
        sensitive_features=sex,
    )
    d_tpr, d_tnr = frame.difference()["tpr"], frame.difference()["tnr"]
    gaps = tpr_gaps(y, predicted, sex)
    assert gaps.per_class == {0: pytest.approx(d_tnr), 1: pytest.approx(d_tpr)}
    assert gaps.rms == pytest.approx(np.sqrt((d_tpr**2 + d_tnr**2) / 2))
    assert gaps.abs == pytest.approx((d_tpr + d_tnr) / 2)
    assert gaps.max == pytest.approx(max(d_tpr, d_tnr))
    assert gaps.undefined == ()
    assert gaps.rates[1] == pytest.approx(frame.by_group["tpr"].to_dict())


@pytest.mark.parametrize("seed", range(3))
def test_gaps_of_several_groups_are_fairlearns_difference(seed):
    y, predicted, group = random_case(seed, n=900, classes=4, groups=("a", "b", "c"))
    gaps = tpr_gaps(y, predicted, group)
    for k in range(4):
        frame = MetricFrame(
            metrics=recall_score,
            y_true=(y == k).astype(int),
            y_pred=(predicted == k).astype(int),
            sensitive_features=group,
        )
        assert gaps.per_class[k] == pytest.approx(frame.difference())


@given(labelled, st.randoms())
def test_gaps_do_not_depend_on_order_or_names(rows, random):
    y, predicted, group = (list(column) for column in zip(*rows))
    gaps = tpr_gaps(y, predicted, group)
    mixed = [list(column) for column in zip(*random.sample(rows, len(rows)))]
    np.testing.assert_equal(vars(tpr_gaps(*mixed)), vars(gaps))
    renamed = tpr_gaps(y, predicted, ["cba"["abc".index(g)] for g in group])
    np.testing.assert_allclose([renamed.rms, renamed.abs, renamed.max], [gaps.rms, gaps.abs, gaps.max])
    if not np.isnan(gaps.rms):
        assert 0 <= gaps.abs <= gaps.rms + 1e-12 <= gaps.max + 2e-12 <= 1 + 3e-12
    perfect = tpr_gaps(y, y, group)
    assert all(gap == 0 or np.isnan(gap) for gap in perfect.per_class.values())


def test_a_class_without_members_in_a_group_is_undefined_by_name():
    gaps = tpr_gaps([0, 0, 1, 1, 2], [0, 1, 1, 1, 2], ["m", "f", "m", "f", "f"])
    assert gaps.per_class[0] == 1.0
    assert np.isnan(gaps.per_class[2])
    assert gaps.undefined == ("class 2 in group 'm' (no rows)",)
    assert gaps.abs == 0.5
    assert str(gaps).endswith("over 2 of 3 classes; undefined: class 2 in group 'm' (no rows)")


def test_min_count_names_what_it_leaves_out():
    y = ["nurse"] * 30 + ["poet"] * 14
    group = ["f"] * 20 + ["m"] * 10 + ["f"] * 12 + ["m"] * 2
    gaps = tpr_gaps(y, y, group, min_count=10)
    assert gaps.undefined == ("class 'poet' in group 'm' (2 rows, fewer than 10)",)
    assert gaps.per_class["nurse"] == 0
    with pytest.raises(ValueError, match="min_count"):
        tpr_gaps(y, y, group, min_count=0)


def test_one_group_has_no_gap():
    gaps = tpr_gaps([0, 1], [0, 1], ["f", "f"])
    assert np.isnan([gaps.rms, gaps.abs, gaps.max]).all()
    assert "only 'f'" in gaps.undefined[0]
    assert "undefined" in str(gaps)


def test_empty_groups_are_undefined_not_absent():
    group = pd.Series(["f", "m", "f", "m"], dtype=pd.CategoricalDtype(["f", "m", "x"]))
    gaps = tpr_gaps([0, 0, 1, 1], [0, 1, 1, 1], group)
    assert gaps.undefined == ("class 0 in group 'x' (no rows)", "class 1 in group 'x' (no rows)")
    assert gaps.per_class == {0: 1.0, 1: 0.0}
    nobody = {"f": np.ones(4, bool), "m": np.zeros(4, bool)}
    gaps = tpr_gaps([0, 0, 1, 1], [0, 0, 1, 1], nobody)
    assert np.isnan(gaps.max)
    assert len(gaps.undefined) == 2


def test_missing_predictions_and_groups():
    gaps = tpr_gaps([0, 0, 1, 1], [0.0, np.nan, 1, 1], ["f", "m", "f", "m"])
    assert gaps.undefined == ("class 0 in group 'm' (predicted is missing in row 1)",)
    assert np.isnan(gaps.per_class[0])
    with pytest.raises(ValueError, match="group is missing in rows 1, 2"):
        tpr_gaps([0, 1, 1], [0, 1, 1], np.array(["f", None, None], dtype=object))
    with pytest.raises(ValueError, match="one label for each of the 3 rows"):
        tpr_gaps([0, 1, 1], [0, 1, 1], ["f", "m"])


def test_a_class_which_is_only_predicted_is_named():
    gaps = tpr_gaps([0, 0], [0, 5], ["f", "m"])
    assert gaps.undefined == ("class 5 in group 'f' (no rows)", "class 5 in group 'm' (no rows)")


# accuracy parity


def test_spread_is_the_deviation_of_fairlearns_groups():
    y, predicted, group = random_case(1, classes=2, groups=("a", "b", "c", "d"))
    spread = accuracy_spread(y, predicted, group)
    frame = MetricFrame(
        metrics={"acc": accuracy_score, "ba": balanced_accuracy_score},
        y_true=y,
        y_pred=predicted,
        sensitive_features=group,
    )
    assert spread.accuracy == pytest.approx(frame.by_group["acc"].to_dict())
    assert spread.balanced_accuracy == pytest.approx(frame.by_group["ba"].to_dict())
    assert spread.accuracy_std == pytest.approx(frame.by_group["acc"].std(ddof=0))
    assert spread.balanced_accuracy_std == pytest.approx(frame.by_group["ba"].std(ddof=0))


def test_overlapping_groups():
    y, predicted = np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0])
    spread = accuracy_spread(y, predicted, {"all": np.ones(4, bool), "first": np.array([True, True, False, False])})
    assert spread.accuracy == {"all": 0.5, "first": 1.0}
    assert spread.accuracy_std == spread.balanced_accuracy_std == 0.25


def test_undefined_groups_are_named():
    masks = {
        "empty": np.zeros(6, bool),
        "one class": np.array([True, False, False, False, False, False]),
        "missing": np.array([False, False, False, False, True, True]),
        "good": np.array([True, True, True, False, False, False]),
        "better": np.array([True, False, True, True, False, False]),
    }
    predicted = np.array([0, 0, 1, 0, None, 1], dtype=object)
    spread = accuracy_spread([0, 0, 1, 1, 1, 0], predicted, masks)
    assert spread.undefined == (
        "group 'empty' (no rows)",
        "balanced accuracy of group 'one class' (no rows of class 1)",
        "group 'missing' (predicted is missing in row 4)",
    )
    assert spread.accuracy_std == pytest.approx(np.std([1, 1, 2 / 3]))
    assert spread.balanced_accuracy_std == pytest.approx(np.std([1, 0.75]))
    assert "undefined: group 'empty' (no rows)" in str(spread)


def test_one_group_does_not_vary_by_zero():
    spread = accuracy_spread([0, 1], [0, 1], {"a": np.ones(2, bool)})
    assert np.isnan([spread.accuracy_std, spread.balanced_accuracy_std]).all()
    assert "only 'a'" in str(spread)


@pytest.mark.parametrize("mask", [[1, 0], [True], [[True, False]]])
def test_masks_are_checked(mask):
    with pytest.raises(ValueError, match="boolean mask of 2 rows"):
        accuracy_spread([0, 1], [0, 1], {"a": mask})
    with pytest.raises(ValueError, match="no group"):
        accuracy_spread([0, 1], [0, 1], {})


@given(labelled)
def test_spread_of_perfect_predictions_is_zero_or_undefined(rows):
    y, _, group = zip(*rows)
    spread = accuracy_spread(y, y, group)
    assert spread.accuracy_std == 0 or len(set(group)) == 1
    assert spread.balanced_accuracy_std == 0 or spread.undefined


def test_results_are_not_altered_afterwards():
    y, predicted, groups = [0, 1, 0, 1], [0, 1, 1, 1], ["a", "a", "b", "b"]
    found = [tpr_gaps(y, predicted, groups), accuracy_spread(y, predicted, {"a": [True] * 4})]
    for result, name in zip(found, ("rms", "accuracy_std")):
        with pytest.raises(FrozenInstanceError):
            setattr(result, name, 0.0)
