import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression

from evenhand.ensembles.read import CannotRead, read_ensemble

rng = np.random.default_rng(0)
X = np.float32(rng.normal(size=(300, 4))).astype(float)
SCORE = X[:, 0] - X[:, 1] * X[:, 2]
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-0.7, 0.7])


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    "model",
    [HistGradientBoostingClassifier(max_iter=8), GradientBoostingClassifier(n_estimators=8)],
    ids=["histogram", "gradient"],
)
def test_boosted_classifiers(model, labels):
    model.fit(X, labels)
    expected = model.decision_function(X)
    assert read_ensemble(model)(X) == pytest.approx(expected.reshape(len(X), -1), abs=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(max_iter=8),
        GradientBoostingRegressor(n_estimators=8),
        RandomForestRegressor(n_estimators=5),
    ],
    ids=["histogram", "gradient", "forest"],
)
def test_regressors(model):
    model.fit(X, SCORE)
    assert read_ensemble(model)(X)[:, 0] == pytest.approx(model.predict(X), abs=1e-6)


def test_forest_gives_probabilities():
    model = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, THREE)
    assert read_ensemble(model)(X) == pytest.approx(model.predict_proba(X), abs=1e-9)


def test_lightgbm_with_missing_values():
    lightgbm = pytest.importorskip("lightgbm")
    holes = X.copy()
    holes[::7, 1] = np.nan
    for labels in (TWO, THREE):
        model = lightgbm.LGBMClassifier(n_estimators=6, num_leaves=6, verbose=-1, n_jobs=1).fit(holes, labels)
        raw = model.booster_.predict(holes, raw_score=True)
        assert read_ensemble(model)(holes) == pytest.approx(raw.reshape(len(X), -1), abs=1e-9)


def test_missing_values_of_the_histogram_booster():
    holes = X.copy()
    holes[::5, 0] = np.nan
    model = HistGradientBoostingClassifier(max_iter=8).fit(holes, TWO)
    assert read_ensemble(model)(holes)[:, 0] == pytest.approx(model.decision_function(holes), abs=1e-6)


def test_other_models_are_no_ensembles():
    assert read_ensemble(LogisticRegression().fit(X, TWO)) is None


def test_sets_of_categories_are_refused_with_the_cure():
    table = np.column_stack([rng.integers(0, 5, 300).astype(float), X])
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=[0]).fit(table, table[:, 0] > 2)
    with pytest.raises(CannotRead, match="one-hot"):
        read_ensemble(model)
