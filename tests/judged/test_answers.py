"""Anything gives outputs: logits, logarithms of probabilities, or numbers."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import RidgeClassifier
from torch import nn

from evenhand import Box, FairMetric, audit
from evenhand.judged import Judged


@pytest.mark.parametrize("classes", [2, 3])
def test_decision_functions_are_logits(classes):
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = (x[:, 0] > 0).astype(int) + (classes == 3) * (x[:, 1] > 0.5)
    model = RidgeClassifier().fit(x, y)
    h = Judged.of(model).outputs(torch.from_numpy(x)).numpy()
    assert h.shape == (60, classes)
    expected = model.decision_function(x)
    np.testing.assert_allclose(h[:, 1] - h[:, 0] if classes == 2 else h, expected)
    assert (Judged.of(model).predictions(torch.from_numpy(x)) == model.predict(x)).all()


def test_functions_are_asked_in_float64_unless_their_network_has_fewer_digits():
    x = torch.tensor([[1e9 + 1.0], [1e9 + 2.0]], dtype=torch.float64)
    assert Judged.of(lambda rows: np.asarray(rows) - 1e9).outputs(x)[:, 0].tolist() == [1.0, 2.0]
    net = nn.Linear(1, 2)
    torch.testing.assert_close(Judged.of(lambda rows: net(rows)).outputs(x), net(x.float()).double())


def test_labels_are_no_outputs():
    with pytest.raises(TypeError, match=r"must give numbers, one or more a row; got ndarray that are none") as caught:
        Judged.of(lambda rows: np.array(["divorced"] * len(rows))).outputs(torch.zeros(2, 1, dtype=torch.float64))
    assert "divorced" not in str(caught.value)


@pytest.mark.parametrize("classes", [[1, 2], ["no", "yes"], [0, 1, 7]], ids=str)
def test_of_a_classifier_that_gives_labels_only_it_is_said_how_often_they_change(classes):
    x = np.random.default_rng(0).normal(size=(200, 2))
    x[:, 0] = x[:, 0] > 0
    names = np.array(classes)

    class Labels:  # the first column decides for half of all people
        classes_ = names

        def predict(self, rows):
            return names[np.where((rows[:, 0] > 0.5) & (rows[:, 1] > 0), len(names) - 1, 0)]

    found = audit(Labels(), x, FairMetric([[1.0], [0.0]]), eps=0.0, bounds=Box(x.min(0), x.max(0), binary=[0]))
    assert found.distance == "total variation"
    assert found.r_low == pytest.approx((x[:, 1] > 0).mean())
    assert found.decisions.low == pytest.approx(found.r_low, abs=0.05)  # of those who chose nothing
    assert set(found.pairs(200)["prediction"]) <= set(classes)


def test_labels_that_are_no_class_are_refused_and_not_shown():
    model = SimpleNamespace(classes_=np.array(["no", "yes"]), predict=lambda rows: np.array(["divorced"] * len(rows)))
    with pytest.raises(ValueError, match="not among the model's classes_") as caught:
        Judged.of(model).outputs(torch.zeros(2, 1, dtype=torch.float64))
    assert "divorced" not in str(caught.value)


class OfFrames:
    """A model that reads its columns by name, and was never told which there are."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, frame):
        p = 1 / (1 + np.exp(-frame["sex"] - frame["age"]))
        return np.stack([1 - p, p], 1)

    def predict(self, frame):
        return self.classes_[self.predict_proba(frame).argmax(1)]


@pytest.mark.parametrize(
    "model", [OfFrames(), lambda frame: frame["sex"] + frame["age"]], ids=["estimator", "function"]
)
def test_what_reads_columns_by_name_is_given_a_frame(model):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["age", "sex"])
    judge = {"fair_metric": FairMetric([[0.0], [1.0]]), "eps": 0.0, "bounds": (-4.0, 4.0)}
    found = audit(model, frame, **judge)
    by_place = OfFrames().predict_proba if isinstance(model, OfFrames) else model
    assert (
        audit(lambda x: by_place({"age": x[:, 0].numpy(), "sex": x[:, 1].numpy()}), frame, **judge).r_low == found.r_low
    )
    with pytest.raises(TypeError, match=r"was given an? (ndarray|Tensor) of shape \(15, 2\) .* one a row"):
        audit(model, frame.to_numpy(), **judge)


def test_a_function_of_a_single_person_is_told_what_it_is_asked():
    with pytest.raises(TypeError, match=r"a Tensor of shape \(2, 3\) \(ValueError, .* many people at once, one a row"):
        Judged.of(lambda row: float(row[0] + row[1])).outputs(torch.zeros(2, 3, dtype=torch.float64))


@pytest.mark.parametrize("classes", [2, 3])
def test_outputs_of_trees_are_the_logits_of_their_probabilities(classes):
    from sklearn.ensemble import GradientBoostingClassifier

    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    y = np.digitize(x[:, 0] + rng.normal(size=120), [-0.5, 0.5] if classes == 3 else [0.0])
    model = GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0).fit(x, y)
    judged = Judged.of(model)
    assert judged.ensemble is not None
    h = judged.outputs(torch.from_numpy(x))
    assert h.shape == (120, classes)
    np.testing.assert_allclose(torch.softmax(h, 1), model.predict_proba(x), atol=1e-7)
    if classes == 2:
        torch.testing.assert_close(h.sum(1), torch.zeros(120, dtype=torch.float64))  # centred


def test_a_function_gives_more_than_probabilities_unless_it_says_so():
    judged = Judged.of(lambda x: x[:, :1])
    assert not judged.only_probabilities
    assert not judged.is_classifier


def test_margins_of_two_classes_become_two_logits():
    from sklearn.svm import SVC

    x = np.random.default_rng(0).normal(size=(60, 2))
    model = SVC().fit(x, x[:, 0] * x[:, 1] > 0)
    margin = torch.from_numpy(model.decision_function(x))
    torch.testing.assert_close(Judged.of(model).outputs(torch.from_numpy(x)), torch.stack([-margin, margin], 1) / 2)


class Returns(nn.Module):
    """A network that returns its logits in some wrapping."""

    def __init__(self, wrap):
        super().__init__()
        self.linear, self.wrap = nn.Linear(3, 2), wrap

    def forward(self, x):
        return self.wrap(self.linear(x))


class Output:
    """As models of transformers return it."""

    def __init__(self, logits):
        self.logits = logits


@pytest.mark.parametrize("wrap", [lambda h: {"logits": h}, Output])
def test_the_logits_are_taken_from_what_holds_them(wrap):
    model, x = Returns(wrap), torch.rand(7, 3).double()
    judged = Judged.of(model)
    torch.testing.assert_close(judged.outputs(x), model.double().linear(x).detach())
    assert judged.has_slopes(x)
    by_function = Judged.of(lambda x: wrap(model.linear(x)))
    torch.testing.assert_close(by_function.outputs(x), judged.outputs(x))


@pytest.mark.parametrize(
    ("wrap", "error", "says"),
    [
        (lambda h: (h, h), TypeError, "must return a tensor, .*; got a tuple"),
        (lambda h: {"scores": h}, TypeError, "got a dict"),
        (lambda h: h.sum(), ValueError, r"gave \(\) for 7 rows"),
        (lambda h: h[:3], ValueError, r"gave \(3, 2\) for 7 rows"),
    ],
)
def test_what_is_no_output_of_each_person_is_refused(wrap, error, says):
    with pytest.raises(error, match=says):
        Judged.of(Returns(wrap)).outputs(torch.rand(7, 3).double())


def test_several_outputs_for_each_person_are_refused():
    x = torch.rand(30, 3, dtype=torch.float64)
    per_token = nn.Sequential(nn.Linear(3, 6), nn.Unflatten(1, (2, 3)))
    for model in (per_token, lambda rows: np.zeros((len(rows), 2, 3))):
        with pytest.raises(ValueError, match=r"outputs of shape \(\d+, 2, 3\), several for each person"):
            Judged.of(model).outputs(x)
    first = nn.Sequential(nn.Linear(3, 2), nn.Unflatten(1, (2, 1)), nn.Flatten())
    assert Judged.of(first).outputs(x).shape == (30, 2)
