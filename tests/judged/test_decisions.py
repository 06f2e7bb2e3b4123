"""What is said of decisions is what predict() decides."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import nn

from evenhand import ERMClassifier, FairMetric, audit, certify
from evenhand.estimators.calibration import calibrate
from evenhand.judged import Judged
from evenhand.judged.decisions import Threshold, behind, scores
from evenhand.text.calibration import Calibration

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
Y = np.where(X[:, 0] + X[:, 1] + RNG.normal(size=240) > 0, "yes", "no")
METRIC, BOUNDS = FairMetric([[1.0], [0.0], [0.0]]), (-4.0, 4.0)


def test_scores_are_what_decisions_look_at():
    h = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, -1.0]])
    assert scores(h).tolist() == [2.0, 3.0]
    assert scores(h, torch.tensor([0, 1])).tolist() == [-3.0, -3.0]
    assert scores(h[:, :2]).tolist() == [3.0, -3.0]
    assert scores(h[:, :1]).tolist() == [1.0, 3.0]
    versions = torch.stack([h, h + torch.tensor([5.0, 0.0, 0.0])], 1)  # (n, m, K)
    assert scores(versions).tolist() == [[2.0, 2.0], [3.0, 8.0]]


def calibrated():
    model = ERMClassifier(hidden=(4,), steps=40, random_state=0).fit(X, Y)
    calibrate(model, X[:80], Y[:80])
    return model


INSIDE = {
    "network": lambda: LogisticRegression().fit(X, Y),
    "calibrated network": calibrated,
    "trees": lambda: HistGradientBoostingClassifier(max_iter=10).fit(X, Y),
    "votes": lambda: RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, Y),
    "black box": lambda: CalibratedClassifierCV(LogisticRegression()).fit(X, Y),
    "margin and probability": lambda: SVC(probability=True, random_state=0).fit(X, Y),
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y),
}


@pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize(("value", "positive"), [(0.8, "yes"), (0.8, "no"), (0.15, None)])
def test_a_threshold_put_around_an_estimator_is_the_one_that_decides(inside, value, positive):
    model = FixedThresholdClassifier(FrozenEstimator(INSIDE[inside]()), threshold=value, pos_label=positive).fit(X, Y)
    judged = Judged.of(model)
    rows = judged.encode(X)
    assert (judged.predictions(rows) == model.predict(X)).all()
    assert judged.decides(rows, judged.outputs(rows), None)
    assert (scores(judged.outputs(rows)) > judged.threshold(2, None)).numpy().mean() == (
        model.predict(X) == "yes"
    ).mean()


def test_a_threshold_on_the_decision_function():
    for value, positive in ((0.7, "yes"), (0.7, "no")):
        model = FixedThresholdClassifier(
            RidgeClassifier(), threshold=value, pos_label=positive, response_method="decision_function"
        ).fit(X, Y)
        judged = Judged.of(model)
        assert (judged.predictions(judged.encode(X)) == model.predict(X)).all()


def test_a_threshold_that_was_tuned_and_one_that_is_reached_exactly():
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring="recall_macro").fit(X, Y)
    judged = Judged.of(GridSearchCV(tuned, {"estimator__C": [1.0]}).fit(X, Y))
    assert (judged.predictions(judged.encode(X)) == judged.behind.asked.predict(X)).all()
    votes = FixedThresholdClassifier(KNeighborsClassifier(2), threshold=0.5).fit(X, Y)  # a half, for many
    assert (Judged.of(votes).predictions(torch.from_numpy(X)) == votes.predict(X)).all()
    assert 36 < Threshold(1.0, "predict_proba").score(None) < 37  # those whose probability is 1
    assert Threshold(0.0, "predict_proba").score(None) == -np.inf


@pytest.mark.parametrize("judge", [audit, certify])
def test_what_nobody_similar_changes_is_not_said_to_change(judge):
    """The sensitive column moves the score by at most 8 * 0.25, and everybody is farther below the threshold."""
    inside = LogisticRegression().fit(X, Y)
    inside.coef_, inside.intercept_ = np.array([[0.25, 0.1, 0.0]]), np.zeros(1)
    model = FixedThresholdClassifier(FrozenEstimator(inside), threshold=0.95).fit(X, Y)
    found = judge(model, X[:60], METRIC, 0.0, BOUNDS, **({} if judge is audit else {"x_tune": X[100:160]}))
    assert found.decisions.low == 0
    assert judge is audit or found.decisions.high == 0
    plain = judge(inside, X[:60], METRIC, 0.0, BOUNDS, **({} if judge is audit else {"x_tune": X[100:160]}))
    assert plain.decisions.low == 1


class Stubborn(LogisticRegression):
    """Says yes from a probability of 0.9 on, and tells nobody but those who ask."""

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.9).astype(int)]


def test_decisions_that_predict_makes_otherwise_are_not_spoken_of():
    model = Stubborn().fit(X, Y)
    with pytest.warns(UserWarning, match=r"predict\(\) decides otherwise .* give threshold="):
        found = audit(model, X[:80], METRIC, 0.0, BOUNDS)
    assert found.decisions is None
    assert audit(model, X[:80], METRIC, 0.0, BOUNDS, threshold=np.log(9.0)).decisions is not None
    inside = SGDClassifier(loss="modified_huber", random_state=0)  # its probability is no softmax of its score
    for around in (inside, make_pipeline(StandardScaler(), inside)):
        squashed = FixedThresholdClassifier(around, threshold=0.8, response_method="predict_proba").fit(X, Y)
        with pytest.warns(UserWarning, match="decides otherwise"):
            assert certify(squashed, X[:60], METRIC, 0.0, BOUNDS, x_tune=X[100:200], tune_steps=10).decisions is None


@pytest.mark.parametrize("steps", [[], [StandardScaler()]])
@pytest.mark.parametrize("positive", ["yes", "no"])
def test_a_probability_of_one_is_reached(steps, positive):
    model = make_pipeline(*steps, RandomForestClassifier(5, random_state=0))
    model = FixedThresholdClassifier(model if steps else model[-1], threshold=1.0, pos_label=positive).fit(X, Y)
    judged = Judged.of(model)
    rows = judged.encode(X)
    assert 0.1 < (model.predict(X) == positive).mean() < 0.9
    assert (judged.predictions(rows) == model.predict(X)).all()
    assert judged.decides(rows, judged.outputs(rows), None)


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
@pytest.mark.parametrize("positive", ["yes", "no"])
def test_a_threshold_around_a_pipeline_is_asked_by_its_method(method, positive):
    around = make_pipeline(StandardScaler(), LogisticRegression())
    model = FixedThresholdClassifier(around, threshold=0.3, pos_label=positive, response_method=method).fit(X, Y)
    judged = Judged.of(model)
    assert judged.behind.asked is None
    assert (judged.behind.said(judged.encode(X)) == model.predict(X)).all()


class OfNetwork:
    """An estimator around a network in float32, as those of skorch are."""

    classes_ = np.array([0, 1])

    def __init__(self, answer):
        torch.manual_seed(0)
        self.answer = answer
        self.module_ = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))

    def predict(self, x, *more):
        return self.answer(self.module_(torch.as_tensor(x)).argmax(1).numpy(), *more)


def test_a_network_in_float32_is_asked_in_float32():
    model = OfNetwork(lambda said: said)
    assert audit(model, X[:60], METRIC, 0.0, BOUNDS).decisions is not None
    wrong = OfNetwork(lambda said: 1 - said)
    with pytest.warns(UserWarning, match="decides otherwise"):
        assert audit(wrong, X[:60], METRIC, 0.0, BOUNDS).decisions is None


@pytest.mark.parametrize("answer", [lambda said: (said, said), lambda said, missing: said, lambda said: None])
def test_a_predict_that_cannot_be_asked_says_nothing_and_stops_nobody(answer):
    with pytest.warns(UserWarning, match=r"predict\(\) cannot be asked what it decides \(TypeError\)"):
        found = audit(OfNetwork(answer), X[:60], METRIC, 0.0, BOUNDS)
    assert found.decisions is None
    assert found.r_low == audit(OfNetwork(answer).module_, X[:60], METRIC, 0.0, BOUNDS).r_low


LABELS = (X[:, 1:] > 0).astype(int)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        MLPClassifier((4,), max_iter=5),
        RidgeClassifier(),
        RandomForestClassifier(3),
        MultiOutputClassifier(LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
        ClassifierChain(LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_several_labels_for_each_person_are_refused_with_the_cure(model):
    for given in (model.fit(X, LABELS), make_pipeline(StandardScaler(), model).fit(X, LABELS)):
        with pytest.raises(ValueError, match=r"predicts 2 labels for each person, .* judge each alone"):
            audit(given, X[:60], METRIC, 0.0, BOUNDS)


def test_scores_of_pairs_of_classes_are_no_logits():
    for classes in (3, 4):
        y = np.digitize(X[:, 0] + X[:, 1], np.linspace(-1, 1, classes - 1))
        for kernel in ("rbf", "linear"):
            model = SVC(kernel=kernel, decision_function_shape="ovo").fit(X, y)
            with pytest.raises(ValueError, match=r'"ovr"'):
                audit(model, X[:60], METRIC, 0.0, BOUNDS)
            assert audit(model.set_params(decision_function_shape="ovr"), X[:60], METRIC, 0.0, BOUNDS).r_low > 0
    assert Judged.of(SVC(decision_function_shape="ovo").fit(X, Y)).outputs(torch.from_numpy(X)).shape == (240, 2)


def test_what_stands_behind():
    inside = LogisticRegression().fit(X, Y)
    two = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), inside)).fit(X, Y)
    found = behind(two)
    assert found.estimator is inside
    assert found.asked is inside
    np.testing.assert_allclose(found.steps.transform(X), two[:-1].transform(X))
    around = FixedThresholdClassifier(two, threshold=0.7).fit(X, Y)
    assert behind(around).asked is None  # its predict takes people, not what the last step takes
    frame = pd.DataFrame(X, columns=list("abc"))
    named = FixedThresholdClassifier(LogisticRegression(), threshold=0.7).fit(frame, Y)
    judged = Judged.of(named)
    assert judged.decides(judged.encode(frame), judged.outputs(judged.encode(frame)), None)


def test_a_text_classifier_decides_by_its_calibrated_probability():
    inside = make_pipeline(StandardScaler(), calibrated())
    inside[0].fit(X)
    model = SimpleNamespace(
        classes_=np.array(["no", "yes"]), pipeline_=inside, calibration_=Calibration(2.0, -0.7), threshold_=0.3
    )
    judged = Judged.of(model)
    rows = judged.encode(X)
    p = model.calibration_.probabilities(inside[-1]._outputs(inside[0].transform(X)))[:, 1]
    assert (judged.predictions(rows) == np.where(p >= 0.3, "yes", "no")).all()
    assert 0 < (p >= 0.3).mean() < 1
    assert not np.array_equal(judged.predictions(rows), inside.predict(X))
    three = SimpleNamespace(classes_=np.arange(3), pipeline_=inside, calibration_=None, threshold_=float("nan"))
    assert behind(three).threshold is None
