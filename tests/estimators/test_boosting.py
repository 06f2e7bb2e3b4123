import traceback

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils.estimator_checks import check_estimator

from evenhand import Box, FairMetric, SenSeIBoostingClassifier, SenSeIBoostingRegressor, audit, fair_metrics
from evenhand.ensembles.line import usual_range
from evenhand.estimators import BuDROClassifier, ClassifierMetric
from evenhand.estimators.boosting import Given, possible_people

pytest.importorskip("lightgbm", reason="boosted trees are fitted by LightGBM")
pytest.importorskip("numba", reason="without numba these fits take minutes")

rng = np.random.default_rng(0)
N = 600
SEX = rng.integers(0, 2, N).astype(float)
X = pd.DataFrame({"skill": rng.normal(size=N), "hours": rng.normal(size=N) + SEX, "sex": SEX})
Y = (X["skill"] + X["hours"] + 0.3 * rng.normal(size=N) > 0.5).astype(int).to_numpy()


def learner(frame):
    return fair_metrics.from_classifier(frame, columns=["sex"], predict=["sex"])


def small(**changed):
    return SenSeIBoostingClassifier(**{"fair_metric": learner, "trees": 30, "leaves": 6, "random_state": 0} | changed)


def test_fairer_than_without_the_penalty_and_still_useful():
    plain = small(rho=0.0, smooth=0.0).fit(X, Y)
    fair = small(rho=1.0, trees=60, learning_rate=0.3).fit(X, Y)
    box, metric = fair.bounds_, fair.fair_metric_

    def relative(model):
        f = model.decision_function(X)
        strangers = ((f[:, None] - f[None]) ** 2).mean() / 4
        return audit(model, X.iloc[:50], metric, 0.01, box).r_low / strangers

    assert relative(fair) < relative(plain) / 4
    assert fair.score(X, Y) > 0.68
    flipped = X.assign(sex=1 - X["sex"])
    assert (fair.predict(flipped) == fair.predict(X)).mean() > 0.95


def test_same_seed_same_model_and_order_of_rows_does_not_matter():
    first, again = small(trees=5).fit(X, Y), small(trees=5).fit(X, Y)
    assert (first.decision_function(X) == again.decision_function(X)).all()
    order = rng.permutation(N)
    other = small(trees=5).fit(X.iloc[order], Y[order])
    assert other.decision_function(X) == pytest.approx(first.decision_function(X), abs=1e-6)


def test_smaller_scores_are_no_gain():
    """The penalty is relative to the spread: even a large rho leaves scores that differ between people."""
    scores = small(rho=5.0, trees=60).fit(X, Y).decision_function(X)
    assert scores.std() > 0.3


def test_where_little_can_be_known_rho_makes_it_fairer_not_smaller():
    """Labels that are mostly noise have scores of little variance, and squeezing them further is no way out."""
    noisy = np.where(rng.random(N) < 0.35, 1 - Y, Y)
    models = [small(rho=rho).fit(X, noisy) for rho in (0.001, 0.1)]
    found = [audit(m, X.iloc[:40], m.fair_metric_, 0.01, m.bounds_).relative.low for m in models]
    spread = [model.decision_function(X).std() for model in models]
    assert found[1] < found[0] / 2
    assert spread[1] > spread[0] / 4


def test_sensitive_features_need_not_be_columns():
    def outside(frame, sensitive):
        return fair_metrics.from_classifier(frame, predict={"sex": sensitive})

    features = X[["skill", "hours"]]
    model = small(fair_metric=outside).fit(features, Y, sensitive_features=SEX)
    assert model.fair_metric_.directions.shape == (2, 1)
    assert abs(float(model.fair_metric_.directions[1, 0])) > 0.9  # hours give sex away


@pytest.mark.parametrize("learner", [None, ClassifierMetric()])
def test_sensitive_features_teach_without_a_function(learner):
    """Rows whose weight is zero teach nothing."""
    features = X[["skill", "hours"]]
    taught = small(fair_metric=learner).fit(features, Y, sensitive_features=pd.DataFrame({"sex": SEX}))
    wanted = fair_metrics.from_classifier(features, predict={"sex": SEX})
    np.testing.assert_allclose(taught.fair_metric_.sigma, wanted.sigma, atol=1e-6)
    weight, noise = np.r_[np.ones(N), np.zeros(N)], np.r_[SEX, 1 - SEX]
    for given in (noise, {"sex": noise}, pd.DataFrame({"sex": noise})):
        more = small(fair_metric=learner).fit(
            pd.concat([features] * 2, ignore_index=True), np.r_[Y, Y], weight, sensitive_features=given
        )
        np.testing.assert_allclose(more.fair_metric_.sigma, wanted.sigma, atol=1e-6)


@pytest.mark.parametrize("given", [SEX[:10], {"sex": SEX[:10]}, pd.DataFrame({"sex": SEX[:10]})])
def test_sensitive_features_of_other_rows_are_refused(given):
    with pytest.raises(ValueError, match=f"sensitive_features has 10 rows but X has {N}"):
        small().fit(X, Y, np.arange(N) % 2, sensitive_features=given)


def test_columns_along_the_directions_are_avoided_numbers_by_the_price_of_a_step():
    """Two copies of a binary column, one of them along the direction: splits are made on the other one."""
    told = (X["hours"] > 0).astype(float)
    frame = pd.DataFrame({"told": told, "same": told, "skill": X["skill"], "hours": X["hours"]})
    metric, labels = FairMetric([[1.0, 0], [0, 0], [0, 0.6], [0, 0.8]]), (told + X["skill"] > 0.5).astype(int)
    fair = small(fair_metric=metric, trees=8, avoid=2.0).fit(frame, labels)
    assert 0 not in fair.ensemble_.feature
    assert 1 in fair.ensemble_.feature
    assert fair._worth() == pytest.approx([1e-6, 1, 0.64, 0.36])  # a step in skill is (1 - .6^2)^(1/2) long
    again = small(fair_metric=metric, trees=8, rho=1e-9, avoid=0.0).fit(frame, labels)
    assert 0 in again.ensemble_.feature  # LightGBM takes the first of two equal ones
    with pytest.raises(ValueError, match="avoid must be zero or positive; got -1"):
        small(avoid=-1.0).fit(X, Y)


def test_numbers_that_are_nearly_free_and_far_tails():
    """As in tables of offences: two numbers give the groups away and decide, and some coordinates lie far out."""
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 2, (1500, 2))
    counts = np.minimum(rng.pareto(1.2, (1500, 2)), 60) + groups[:, :1]
    age, own = rng.normal(size=1500) - 1.2 * groups[:, 1], rng.normal(size=1500)
    frame = pd.DataFrame({"age": age, "counts": np.log1p(counts[:, 0]), "rare": counts[:, 1], "own": own})
    frame = (frame - frame.mean()) / frame.std()
    score = 1.5 * frame["counts"] - 1.5 * frame["age"] + 0.5 * frame["own"] + rng.logistic(0, 0.7, 1500)
    labels = (score > 0).astype(int)
    metric = fair_metrics.from_classifier(frame, predict={"one": groups[:, 0], "other": groups[:, 1]})
    fair = small(fair_metric=metric).fit(frame, labels)
    usual = small(fair_metric=metric, rho=0.0, smooth=0.0, linear=False).fit(frame, labels)
    relative = [audit(model, frame.iloc[:40], metric, 0.01, fair.bounds_).relative.low for model in (fair, usual)]
    assert relative[0] < relative[1] / 20


def test_how_far_a_move_goes_before_a_number_ends():
    model = small(bounds=Box([0.0, 0.0, 0.0], [10.0, 4.0, 1.0], binary=[2]))
    people = X.abs().clip(upper=4.0)
    model._prepare(Given(people, people.to_numpy(), None, None, None))
    x = np.array([[1.0, 1.0, 0.0], [9.0, 4.0, 0.0], [5.0, 2.0, 1.0]])
    move = np.array([[3.0, 1.0, 9.0], [-1.0, 2.0, 1.0], [0.0, 0.0, 1.0]])  # 3 and 3 times; none up; no number moves
    assert model._room(x, move)[:, 0] == pytest.approx([3.0, 0.0, 1.0])


@pytest.mark.parametrize("model", [SenSeIBoostingClassifier, SenSeIBoostingRegressor, BuDROClassifier])
@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((0.0, 9.0), r"bounds exclude \d+ of 600 training rows, in column\(s\) \['skill', 'hours'\]; widen the bounds"),
        ("wide", r"bounds must be 'data', None, a Box or \(low, high\); got 'wide'"),
        (5, r"bounds must be None, a Box or a pair \(low, high\); got 5"),
        (None, "bounds are needed"),
    ],
)
def test_bounds_are_checked_as_those_of_networks(model, bounds, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model(FairMetric.euclidean(3), bounds=bounds, trees=1).fit(X, Y)


def test_what_is_missing_can_be_anything_within_the_bounds():
    race = np.eye(3)[rng.integers(0, 3, N)]
    table = np.column_stack([X.to_numpy(), race])
    holes = np.where(rng.random(table.shape) < 0.3, np.nan, table)
    box = Box([-9.0, -9.0, 0, 0, 0, 0], [9.0, 9.0, 1, 1, 1, 1], blocks=[[3, 4, 5]], binary=[2])
    model = small(fair_metric=None, bounds=box, trees=1)
    assert model.fit(holes, Y).bounds_ is box
    holes[7, 2] = 0.5
    with pytest.raises(ValueError, match="bounds exclude 1 of 600 training rows"):
        model.fit(holes, Y)


def test_missing_values_classes_and_weights():
    holes = X.copy()
    holes.loc[::9, "skill"] = np.nan
    labels = np.array(["no", "maybe", "yes"])[np.digitize(X["skill"] + X["hours"], [0, 1])]
    metric = FairMetric(torch.tensor([[0.0], [0.0], [1.0]]))
    model = small(fair_metric=metric).fit(holes, labels)
    assert model.predict_proba(holes).sum(1) == pytest.approx(np.ones(N))
    assert (model.predict(holes) == labels).mean() > 0.6
    assert (model.classes_[model.predict_proba(holes).argmax(1)] == model.predict(holes)).all()


@pytest.mark.parametrize("monotone", [[1, 0], [1, 0, 4711], ["up", 0, 0], 4711, [0.5, 0, 0]])
def test_monotone_is_one_sign_for_each_column(monotone):
    with pytest.raises(ValueError, match="monotone must hold -1, 0 or 1 for each of the 3 columns") as error:
        small(monotone=monotone).fit(X, Y)
    assert "4711" not in str(error.value)


def test_monotone_columns_stay_monotone():
    model = small(monotone=[1, 0, 0]).fit(X, Y)
    rows = X.iloc[:50]
    scores = [model.decision_function(rows.assign(skill=v)) for v in np.linspace(-2, 2, 21)]
    assert (np.diff(scores, axis=0) >= -1e-9).all()


def test_early_stopping_keeps_the_best_round():
    model = small(trees=80, learning_rate=0.5, validation_fraction=0.3, patience=3).fit(X, Y)
    assert model.n_iter_ < 80
    with pytest.raises(ValueError, match="validation_fraction"):
        small(patience=3).fit(X, Y)


def test_regressor_in_the_original_unit():
    y = 1000 * X["skill"].to_numpy() + 5000
    model = SenSeIBoostingRegressor(learner, trees=60, leaves=6, random_state=0, rho=0.01).fit(X, y)
    assert model.score(X, y) > 0.6
    assert model.predict(X).mean() == pytest.approx(5000, abs=100)


def test_possible_people_are_read_off_the_data():
    table = np.column_stack([rng.normal(size=50), np.eye(3)[rng.integers(0, 3, 50)], rng.integers(0, 2, 50)])
    box = possible_people(table)
    assert isinstance(box, Box)
    assert box.blocks == ((1, 2, 3),)
    assert box.binary == (4,)


SPLITS = "LightGBM sums gradients in float32: with other rows of the same total, ties between splits fall otherwise"


@pytest.mark.parametrize("estimator", [SenSeIBoostingClassifier, SenSeIBoostingRegressor])
def test_scikit_learn_checks(estimator):
    check_estimator(
        estimator(trees=20, leaves=4, search_every=8),
        expected_failed_checks={
            f"check_sample_weight_equivalence_on_{kind}_data": SPLITS for kind in ("dense", "sparse")
        },
        on_skip=None,
        on_fail="raise",
    )


def test_the_line_is_part_of_the_ensemble_and_can_be_left_out():
    with_line, without = small(trees=4).fit(X, Y), small(trees=4, linear=False).fit(X, Y)
    ensemble = with_line.ensemble_
    assert without.ensemble_.trees == without.n_iter_ == with_line.n_iter_ == 4
    stumps = ensemble.root[:-4]
    low, high = usual_range(np.asarray(X), np.ones(len(X)) / np.bincount(Y)[Y])  # classes count equally
    assert len(stumps) == 2  # sex lies along the directions
    assert ensemble.width[stumps] == pytest.approx((high - low)[ensemble.feature[stumps]] / 2)
    assert small(trees=4, monotone=[1, 0, 0]).fit(X, Y).ensemble_.trees == 4


def test_ramps_are_shorter_where_there_are_many_rows():
    model = small(trees=1, eps=1e-4).fit(X, Y)  # with a larger eps they are as wide as the columns
    many, few, fewest = (np.tile(np.asarray(X), (times, 1)) for times in (17, 1, 8))  # 10,200 rows
    (many, _), (few, two), (fewest, _) = (model._soft(rows, np.ones(len(rows))) for rows in (many, few, fewest))
    assert (fewest == few).all()
    assert many[0] == pytest.approx(few[0] * 5000 / 10_200)
    assert two == {2: (0.0, 1.0)}


def test_the_steepest_version_of_a_person_lies_along_the_gradient():
    """Of a linear score: all numbers change in proportion to slope over price, by a fair distance of eps to 1."""
    model = small(trees=1, bounds=Box([-9.0] * 3, [9.0] * 3)).fit(X, Y)
    slope, x = np.array([1.0, -2.0, 0.5]), np.asarray(X)
    drawn, price = rng.random((len(x), 2)), np.ones(3)
    move = model._steepest(x, drawn, np.random.default_rng(0), lambda rows: rows @ slope[:, None], price)
    length = np.linalg.norm(move, axis=1)
    assert np.abs(move @ slope) == pytest.approx(length * np.linalg.norm(slope))
    assert length.min() >= 0.01**0.5
    assert length.max() <= 1
    assert 0.3 < (move @ slope > 0).mean() < 0.7


JANE = "Jane Doe"


@pytest.mark.parametrize("model", [SenSeIBoostingClassifier, SenSeIBoostingRegressor, BuDROClassifier])
@pytest.mark.parametrize("note", [JANE, pd.Categorical([JANE] * N), pd.Timestamp("1990-05-03")])
def test_columns_that_are_no_numbers_are_named_and_not_shown(model, note):
    frame = X.assign(note=note)
    fitted = model(FairMetric.euclidean(4), trees=1).fit(X.assign(note=0.0), Y)
    lists = X.assign(note=JANE).to_numpy().tolist()
    calls = (
        (lambda: clone(fitted).fit(frame, Y), "'note' are not numbers; encode them first"),
        (lambda: fitted.predict(frame), "'note' are not numbers; encode them first"),
        (lambda: clone(fitted).fit(lists, Y), "'3' are not numbers"),
        (lambda: clone(fitted).fit(X.assign(note=0.0), Y, sample_weight=[JANE] * N), "sample_weight must be num"),
    )
    for call, message in calls:
        with pytest.raises(ValueError, match=message) as raised:
            call()
        assert JANE not in "".join(traceback.format_exception(raised.value))


def test_numbers_to_predict_are_checked_and_not_shown():
    model = SenSeIBoostingRegressor(FairMetric.euclidean(3), trees=1)
    names = [JANE] * N
    for call in (lambda: model.fit(X, names), lambda: model.fit(X, Y).score(X, names)):
        with pytest.raises(ValueError, match=f"y holds text in {N} of {N} rows") as raised:
            call()
        assert JANE not in str(raised.value)


def test_several_numbers_are_several_models():
    features, two = X[["skill", "hours"]], X[["skill", "hours"]].rename(columns={"skill": "u", "hours": "v"})
    alone = SenSeIBoostingRegressor(ClassifierMetric(), trees=5, leaves=4, random_state=0)
    with pytest.raises(ValueError, match=r"shape \(600, 2\) instead; for several .*MultiOutputRegressor"):
        alone.fit(features, two)
    sensitive = pd.DataFrame({"sex": SEX})
    with config_context(enable_metadata_routing=True):
        both = MultiOutputRegressor(clone(alone).set_fit_request(sensitive_features=True))
        both.fit(features, two, sensitive_features=sensitive)
        found = cross_val_predict(both, features, two, cv=2, params={"sensitive_features": sensitive})
    assert found.shape == (N, 2)
    for k, name in enumerate(two):
        one = clone(alone).fit(features, two[name], sensitive_features=sensitive)
        assert (both.predict(features)[:, k] == one.predict(features)).all()
        assert one.fair_metric_.directions.shape == (2, 1)
