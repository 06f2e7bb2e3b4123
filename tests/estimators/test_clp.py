import traceback

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand.counterfactuals import alter_columns
from evenhand.estimators.clp import CLPClassifier, CLPRegressor
from evenhand.evaluation import prediction_consistency
from evenhand.variations import Variations


def biased(n=400, seed=0):
    """The label follows feature 1; feature 0 is sensitive and correlated with it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    y = (x[:, 1] > 0).astype(int)
    x[:, 0] = 2 * y - 1 + 0.3 * rng.normal(size=n)
    return x, y


def flipped(x):
    """Everybody in a second version with the sensitive feature turned round."""
    return Variations(np.stack([x, x * np.array([-1, 1, 1], dtype=x.dtype)], axis=1), np.arange(len(x)))


def make(**options):
    return CLPClassifier(hidden=(16,), steps=300, batch_size=64, lr=5e-3, random_state=0, **options)


def consistency(model, x):
    return prediction_consistency(flipped(x).map(model.predict).values)


def test_pairing_makes_predictions_consistent():
    x, y = biased()
    held_out, y_held_out = biased(seed=1)
    plain = make(rho=0.0).fit(x, y, variations=flipped(x))
    fair = make(rho=5.0).fit(x, y, variations=flipped(x))
    assert consistency(plain, held_out) < 0.7
    assert consistency(fair, held_out) > 0.9
    assert fair.score(held_out, y_held_out) > 0.9


def test_variations_as_a_parameter_or_a_function_of_x():
    x, y = biased()
    given = make().fit(x, y, variations=flipped(x)).predict_proba(x)
    np.testing.assert_array_equal(make(variations=flipped(x)).fit(x, y).predict_proba(x), given)
    np.testing.assert_array_equal(make(variations=flipped).fit(x, y).predict_proba(x), given)
    model = clone(make(variations=flipped))
    assert cross_val_score(model, x, y, cv=2).min() > 0.85


def test_rows_left_out_by_validation_or_weight_do_not_shift_the_pairs():
    """Each row's versions differ from all others' by far: pairing with somebody else would force one label on all."""
    x, y = biased()
    weight = (np.arange(len(x)) % 3 > 0).astype(float)
    for model, options in [(make(validation_fraction=0.3), {}), (make(), {"sample_weight": weight})]:
        model.fit(x, y, variations=flipped(x), **options)
        assert model.score(x, y) > 0.9
        assert consistency(model, x) > 0.9


def test_only_some_rows_have_versions():
    x, y = biased()
    some = flipped(x)
    some = Variations(some.values[::7], some.rows[::7])
    assert consistency(make().fit(x, y, variations=some), x) > 0.85


@pytest.mark.parametrize(
    ("variations", "message"),
    [
        (None, "CLP needs versions"),
        (Variations(np.zeros((1, 2, 3)), [400]), "row 400 but X has 400 rows"),
        (Variations(np.zeros((1, 2, 5)), [0]), "5 features but X has 3"),
        (Variations(np.empty((0, 2)), []), "nobody with versions"),
    ],
)
def test_bad_input(variations, message):
    x, y = biased()
    with pytest.raises(ValueError, match=message):
        make().fit(x, y, variations=variations)


def test_regression_on_real_data():
    """Diabetes: predictions stop to depend on sex when everybody is paired with the other sex."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X[:] = StandardScaler().fit_transform(X)
    both = alter_columns(X, {"sex": [X.sex.min(), X.sex.max()]})
    options = {"hidden": (), "steps": 300, "batch_size": 200, "lr": 0.03, "random_state": 0}
    plain, fair = (CLPRegressor(rho=rho, **options).fit(X, y, variations=both) for rho in (0.0, 50.0))
    gaps = [np.abs(np.diff(both.map(model.predict).values, axis=1)).mean() for model in (plain, fair)]
    assert gaps[0] > 15  # units of disease progression
    assert gaps[1] < 2
    assert fair.score(X, y) > plain.score(X, y) - 0.05


def test_a_fold_whose_variations_were_not_split_is_told_what_to_give():
    x, y = biased(60)
    some = flipped(x).select(np.arange(60) % 2 == 1)
    some = Variations(some.values, np.flatnonzero(np.arange(60) % 2 == 1))
    with sklearn.config_context(enable_metadata_routing=True):
        model = CLPClassifier(hidden=(4,), steps=2).set_fit_request(variations=True)
        with pytest.raises(ValueError, match=r"for a cross-validation, .* give an array \(n, m, d\)"):
            cross_validate(model, x, y, cv=2, params={"variations": some}, error_score="raise")
        found = cross_validate(model, x, y, cv=2, params={"variations": flipped(x).values}, error_score="raise")
    assert len(found["test_score"]) == 2


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_fold_whose_variations_are_those_of_other_rows_is_refused(shuffle):
    """All row numbers fit every fold, so that only the versions themselves can tell."""
    x, y = biased(120)
    some = Variations(flipped(x).values[:40], np.arange(40))
    folds = KFold(3, shuffle=shuffle, random_state=0 if shuffle else None)
    with pytest.raises(ValueError, match="have those of another row"):
        cross_validate(make().set_params(steps=2), x, y, cv=folds, params={"variations": some}, error_score="raise")


@pytest.mark.parametrize(("scale", "shift"), [(3.0, 0.0), (0.2, 0.5), ([0.5, 10.0, 12000.0], [0.5, 40.0, 50000.0])])
def test_versions_that_are_not_scaled_with_x_are_refused(scale, shift):
    """As where a Pipeline scales X and nobody the versions."""
    x, y = biased()
    x = x * scale + shift
    pipeline = make_pipeline(StandardScaler(), make().set_params(steps=2))
    with pytest.raises(ValueError, match="variations are not scaled as X is, in 3 of 3 columns: transform both alike"):
        pipeline.fit(x, y, clpclassifier__variations=flipped(x))
    scaler = StandardScaler().fit(x)
    both = flipped(x).map(scaler.transform)
    assert make().set_params(steps=2).fit(scaler.transform(x), y, variations=both).n_features_in_ == 3


def test_another_cause_than_the_wrong_rows_is_named():
    x, y = biased(120)
    with pytest.raises(ValueError, match="or they are not scaled as X is: transform both alike"):
        make().set_params(steps=2).fit(x, y, variations=flipped(np.square(x) * 50))


def test_texts_as_versions_are_not_shown():
    x, y = biased()
    for given in (np.full((400, 2, 3), "Jane Doe"), np.full((400, 2, 3), "Jane Doe", dtype=object)):
        with pytest.raises(ValueError, match=r"expected vectors \(individuals, versions, features\)") as told:
            make().fit(x, y, variations=given)
        assert "Jane" not in "".join(traceback.format_exception(told.value))


def test_versions_without_the_original_are_taken_as_they_are():
    x, y = biased()
    other = x + np.array([0.5, 0, 0], dtype=x.dtype)
    other = Variations(np.stack([other, other + np.float32(0.1)], axis=1), np.arange(len(x)))
    assert make().set_params(steps=2).fit(x, y, variations=other).n_features_in_ == 3


def test_variations_of_every_row_are_split_with_x():
    x, y = biased(120)
    both = [
        cross_validate(make().set_params(steps=20), x, y, cv=3, params={"variations": given}, error_score="raise")
        for given in (flipped(x), flipped(x).values)
    ]
    np.testing.assert_array_equal(both[0]["test_score"], both[1]["test_score"])
