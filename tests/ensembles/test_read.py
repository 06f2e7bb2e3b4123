import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand.ensembles.read import CannotRead, _confirmed, read_ensemble

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


@pytest.mark.parametrize(
    "model",
    [DecisionTreeClassifier(random_state=0), RandomForestRegressor(4), GradientBoostingClassifier(n_estimators=5)],
    ids=["tree", "forest", "gradient"],
)
def test_next_to_a_threshold_the_model_rounds_and_so_do_we(model):
    model.fit(X, TWO)
    ask = getattr(model, "decision_function", None) or (model.predict_proba if "Tree" in str(model) else model.predict)
    read = read_ensemble(model)
    known = [every for every in read.thresholds() if len(every)]
    for steps in (
        -1,
        0,
        1,
    ):  # the last number to the left, its neighbours, and what float32 rounds there
        for further in (0.0, -3e-8, 3e-8, 6e-8):
            near = np.zeros((200, 4))
            for j, every in enumerate(known):
                t = rng.choice(every, 200)
                near[:, j] = (np.nextafter(t, steps * np.inf) if steps else t) * (1 + further)
            assert read(near) == pytest.approx(ask(near).reshape(200, -1), abs=1e-9)


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


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(loss="poisson", max_iter=3),
        GradientBoostingRegressor(init=LinearRegression(), n_estimators=3),
    ],
    ids=["another link", "a start that is no constant"],
)
def test_what_is_not_the_sum_of_its_trees_is_refused(model):
    with pytest.raises(CannotRead, match="not the sum of its trees"):
        read_ensemble(model.fit(X, np.abs(SCORE)))


def test_leaves_that_hold_lines_are_refused_and_averages_are_read():
    lightgbm = pytest.importorskip("lightgbm")
    few = {"n_estimators": 5, "verbose": -1, "n_jobs": 1}
    with pytest.raises(CannotRead, match="not the sum"):
        read_ensemble(lightgbm.LGBMRegressor(linear_tree=True, **few).fit(X, SCORE))
    forest = lightgbm.LGBMClassifier(boosting_type="rf", bagging_freq=1, bagging_fraction=0.7, **few).fit(X, TWO)
    assert read_ensemble(forest)(X)[:, 0] == pytest.approx(forest.predict(X, raw_score=True), abs=1e-9)


def with_holes():
    holes = X.copy()
    holes[::7, 1], holes[3::9, 0] = np.nan, np.nan
    return holes


@pytest.mark.parametrize("rows", [X, with_holes()], ids=["complete", "missing values"])
@pytest.mark.parametrize("options", [{}, {"base_score": 0.2}, {"booster": "dart", "rate_drop": 0.3}], ids=str)
def test_xgboost(rows, options):
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    for labels in (TWO, THREE):
        if labels is THREE and "base_score" in options:
            continue
        model = xgboost.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1, **options).fit(rows, labels)
        raw = model.predict(rows, output_margin=True)
        assert read_ensemble(model)(rows) == pytest.approx(raw.reshape(len(X), -1), abs=1e-4)
    model = xgboost.XGBRegressor(n_estimators=6, max_depth=3, n_jobs=1, **options).fit(rows, 100 + SCORE)
    assert read_ensemble(model)(rows)[:, 0] == pytest.approx(model.predict(rows), abs=1e-3)


def test_xgboost_stops_where_it_was_best_and_refuses_what_is_no_sum():
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    stopped = xgboost.XGBClassifier(n_estimators=100, early_stopping_rounds=3, n_jobs=1)
    stopped.fit(X[:200], TWO[:200], eval_set=[(X[200:], TWO[200:])], verbose=False)
    raw = stopped.predict(X, output_margin=True)
    assert read_ensemble(stopped)(X)[:, 0] == pytest.approx(raw, abs=1e-4)
    counts = xgboost.XGBRegressor(objective="count:poisson", n_estimators=3, n_jobs=1).fit(X, np.abs(SCORE))
    with pytest.raises(CannotRead, match="not the sum"):
        read_ensemble(counts)
    line = xgboost.XGBClassifier(booster="gblinear", n_estimators=3).fit(X, TWO)
    with pytest.raises(CannotRead, match="no trees"):
        read_ensemble(line)


@pytest.mark.parametrize("rows", [X, with_holes()], ids=["complete", "missing values"])
@pytest.mark.parametrize("growth", ["SymmetricTree", "Depthwise", "Lossguide"])
def test_catboost(rows, growth):
    catboost = pytest.importorskip("catboost", reason="CatBoost is not installed")
    few = {"iterations": 6, "depth": 3, "verbose": 0, "allow_writing_files": False, "grow_policy": growth}
    for labels in (TWO, THREE):
        model = catboost.CatBoostClassifier(**few).fit(rows, labels)
        raw = model.predict(rows, prediction_type="RawFormulaVal")
        assert read_ensemble(model)(rows) == pytest.approx(raw.reshape(len(X), -1), abs=1e-9)
    model = catboost.CatBoostRegressor(**few).fit(rows, SCORE)
    assert read_ensemble(model)(rows)[:, 0] == pytest.approx(model.predict(rows), abs=1e-9)


def test_catboost_with_categories_is_refused():
    catboost = pytest.importorskip("catboost", reason="CatBoost is not installed")
    frame = pd.DataFrame({"a": X[:, 0], "c": np.where(X[:, 1] > 0, "yes", "no")})
    few = {"iterations": 6, "verbose": 0, "allow_writing_files": False, "cat_features": ["c"]}
    with pytest.raises(CannotRead, match="categorical"):
        read_ensemble(catboost.CatBoostClassifier(**few).fit(frame, (X[:, 1] > 0).astype(int)))


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_misread_is_seen_in_any_unit(unit):
    """Trees whose values are read a hundredth too large are refused, whatever the target is measured in."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    model = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(x, x[:, 0])
    right = read_ensemble(model).scaled(unit, 0.0)
    assert _confirmed(right, lambda points: unit * model.predict(points)) is right
    with pytest.raises(CannotRead, match="not the sum of its trees"):
        _confirmed(right.scaled(1.01, 0.0), lambda points: unit * model.predict(points))
