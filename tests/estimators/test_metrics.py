"""Metric learners as estimators: in a Pipeline, in a grid, and taught from attributes outside X."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline

from evenhand.estimators import BuDROClassifier, ClassifierMetric, ColumnsMetric, SenSeIClassifier
from evenhand.fair_metrics import FairMetric, from_classifier, from_classifier_stream, from_columns

RNG = np.random.default_rng(0)
SEX = RNG.integers(0, 2, 300)
X = pd.DataFrame({"skill": RNG.normal(size=300), "proxy": SEX + 0.3 * RNG.normal(size=300), "sex": SEX.astype(float)})
Y = (X["skill"] + X["proxy"] > 0.5).to_numpy().astype(int)
OUTSIDE = X[["skill", "proxy"]]
SMALL = {"hidden": (4,), "steps": 10, "batch_size": 50, "random_state": 0}


def test_they_learn_what_the_functions_learn():
    learned = ClassifierMetric(["sex"], l2=0.01).fit(X).fair_metric_
    np.testing.assert_array_equal(learned.directions, from_classifier(X, ["sex"], l2=0.01).directions)
    assert learned.attribute_models[0].name == "sex"
    columns = ColumnsMetric(["sex"]).fit(X).fair_metric_
    np.testing.assert_array_equal(columns.directions, from_columns(X, ["sex"]).directions)


def test_transform_removes_the_directions():
    learner = ClassifierMetric(["sex"]).fit(X)
    projected = learner.transform(X)
    np.testing.assert_allclose(projected @ learner.fair_metric_.directions.numpy(), 0, atol=1e-5)
    np.testing.assert_allclose(learner.transform(projected_frame(projected)), projected, atol=1e-6)
    out = ClassifierMetric(["sex"]).set_output(transform="pandas").fit(X).transform(X)
    assert list(out.columns) == list(X.columns)


def projected_frame(values):
    return pd.DataFrame(values, columns=X.columns)


def test_a_model_behind_it_cannot_tell_people_apart_along_the_directions():
    model = make_pipeline(ClassifierMetric(["sex"]), LogisticRegression()).fit(X, Y)
    flipped = X.assign(sex=1 - X["sex"])
    np.testing.assert_allclose(model.decision_function(X), model.decision_function(flipped), atol=1e-6)


def test_attributes_outside_x_teach_it():
    frame = pd.DataFrame({"sex": np.array(["f", "m"])[SEX]})
    learned = ClassifierMetric().fit(OUTSIDE, sensitive_features=frame).fair_metric_
    expected = from_classifier(OUTSIDE, predict={"sex": frame["sex"].to_numpy()})
    np.testing.assert_array_equal(learned.directions, expected.directions)
    both = ClassifierMetric(["sex"]).fit(X, sensitive_features={"other": RNG.integers(0, 3, 300)}).fair_metric_
    assert [model.name for model in both.attribute_models] == ["sex", "other"]


def test_its_parameters_can_be_searched():
    grid = GridSearchCV(SenSeIClassifier(ClassifierMetric(["sex"]), **SMALL), {"fair_metric__l2": [1e-3, 10.0]}, cv=2)
    grid.fit(X, Y)
    assert grid.best_params_["fair_metric__l2"] in (1e-3, 10.0)
    assert grid.best_estimator_.fair_metric_.directions.shape == (3, 2)


@pytest.mark.parametrize("fair_metric", [None, ClassifierMetric(), lambda X, s: from_classifier(X, predict={"s": s})])
def test_sensitive_features_are_split_with_x_in_every_fold(fair_metric):
    attribute = np.array(["f", "m"])[SEX]
    with sklearn.config_context(enable_metadata_routing=True):
        model = SenSeIClassifier(fair_metric, **SMALL).set_fit_request(sensitive_features=True)
        found = cross_validate(
            model,
            OUTSIDE,
            Y,
            params={"sensitive_features": attribute},
            cv=3,
            return_estimator=True,
            return_indices=True,
        )
    for fold, rows in zip(found["estimator"], found["indices"]["train"]):
        expected = from_classifier(OUTSIDE.iloc[rows], predict={"s": attribute[rows]}).directions
        np.testing.assert_allclose(fold.fair_metric_.directions, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: SenSeIClassifier(**SMALL).fit(OUTSIDE, Y, sensitive_features=SEX[:9]), "has 9 rows but X has 300"),
        (lambda: SenSeIClassifier(FairMetric.euclidean(2), **SMALL).fit(OUTSIDE, Y, sensitive_features=SEX), "already"),
        (lambda: ColumnsMetric(["sex"]).fit(X, sensitive_features=SEX), "use ClassifierMetric"),
        (lambda: ColumnsMetric(["age"]).fit(X), "'age' does not exist"),
    ],
)
def test_errors_name_the_cause(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_rows_of_weight_zero_teach_nothing():
    weight = (np.arange(300) % 3 > 0).astype(float)
    kept = weight > 0
    weighted = SenSeIClassifier(**SMALL).fit(OUTSIDE, Y, weight, sensitive_features=SEX)
    without = SenSeIClassifier(**SMALL).fit(OUTSIDE[kept], Y[kept], sensitive_features=SEX[kept])
    np.testing.assert_array_equal(weighted.fair_metric_.directions, without.fair_metric_.directions)


@pytest.mark.parametrize(
    "learner", [None, ClassifierMetric(), lambda X, S, sample_weight=None: learned(X, S, sample_weight)]
)
@pytest.mark.parametrize("method", [SenSeIClassifier, BuDROClassifier])
def test_a_row_of_weight_two_teaches_the_metric_twice(learner, method):
    weight = np.where(OUTSIDE["skill"] > 0, 3, 1)
    twice = np.repeat(np.arange(300), weight)
    small = SMALL if method is SenSeIClassifier else {"trees": 1}
    if method is BuDROClassifier:
        pytest.importorskip("lightgbm", reason="boosted trees are fitted by LightGBM")
    weighted = method(learner, **small).fit(OUTSIDE, Y, weight, sensitive_features=SEX).fair_metric_
    given = method(learner, **small).fit(OUTSIDE.iloc[twice], Y[twice], sensitive_features=SEX[twice]).fair_metric_
    plain = method(learner, **small).fit(OUTSIDE, Y, sensitive_features=SEX).fair_metric_
    np.testing.assert_allclose(weighted.directions, given.directions, atol=1e-6)
    assert not np.allclose(weighted.directions, plain.directions, atol=1e-3)


def learned(X, S, weight):
    return from_classifier(X, predict={"sex": S}, sample_weight=weight)


def test_weights_of_classes_teach_the_metric_nothing():
    model = SenSeIClassifier(class_weight={0: 1, 1: 9}, **SMALL).fit(OUTSIDE, Y, sensitive_features=SEX)
    plain = SenSeIClassifier(**SMALL).fit(OUTSIDE, Y, sensitive_features=SEX)
    np.testing.assert_array_equal(model.fair_metric_.directions, plain.fair_metric_.directions)


def test_weights_of_the_metric_itself():
    weight = np.where(OUTSIDE["skill"] > 0, 3, 0)
    learner = ClassifierMetric().fit(OUTSIDE, sensitive_features=SEX, sample_weight=weight)
    twice = np.repeat(np.arange(300), weight)
    given = ClassifierMetric().fit(OUTSIDE.iloc[twice], sensitive_features=SEX[twice])
    np.testing.assert_allclose(learner.fair_metric_.directions, given.fair_metric_.directions, atol=1e-6)


@pytest.mark.parametrize("regions", [pd.Series(np.arange(300) % 25), pd.DataFrame({"region": np.arange(300) % 25})])
def test_categories_that_are_called_by_numbers_are_no_quantity(regions):
    for given, kind in ((regions, "Ridge"), (regions.astype("category"), "LogisticRegression")):
        model = ClassifierMetric().fit(OUTSIDE, sensitive_features=given).fair_metric_.attribute_models[0]
        assert type(model.estimator).__name__ == kind


BATCHES = [(X[i : i + 100], Y[i : i + 100]) for i in range(0, 300, 100)]


@pytest.mark.parametrize(
    "learner", [ColumnsMetric(["sex"]), ClassifierMetric(["sex"]), ClassifierMetric(["sex"], l2=0.1)]
)
def test_they_learn_from_a_stream_what_they_learn_from_the_table(learner):
    streamed = SenSeIClassifier(learner, **SMALL).fit_stream(BATCHES).fair_metric_
    whole = SenSeIClassifier(learner, **SMALL).fit(X, Y).fair_metric_
    np.testing.assert_allclose(np.abs(streamed.directions.numpy()), np.abs(whole.directions.numpy()), atol=1e-3)
    by_place = SenSeIClassifier(clone(learner).set_params(columns=[2]), **SMALL)
    arrays = by_place.fit_stream([(x.to_numpy(), y) for x, y in BATCHES]).fair_metric_
    np.testing.assert_allclose(arrays.directions, streamed.directions, atol=1e-5)
    assert clone(learner).fit_stream([x for x, _ in BATCHES]).transform(X).shape == X.shape


def test_a_function_of_a_stream_meets_the_names_of_the_columns():
    model = SenSeIClassifier(lambda chunks: from_classifier_stream(chunks, ["sex"]), **SMALL).fit_stream(BATCHES)
    assert model.fair_metric_.attribute_models[0].name == "sex"


def test_what_a_stream_cannot_teach_is_said():
    class InMemory(BaseEstimator):
        def fit(self, X, y=None):
            raise AssertionError

    with pytest.raises(
        TypeError, match="InMemory learns from a table in memory, and a stream is none; give a FairMetric"
    ):
        SenSeIClassifier(InMemory(), **SMALL).fit_stream(BATCHES)
    with pytest.raises(ValueError, match="classifier= and regressor= learn from a table in memory"):
        ClassifierMetric(["sex"], classifier=LogisticRegression()).fit_stream([X])
    with pytest.raises(ValueError, match="no chunks"):
        ColumnsMetric(["sex"]).fit_stream([])
    assert ClassifierMetric().fit_stream([X]).fair_metric_.directions.shape == (3, 0)
