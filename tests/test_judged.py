"""Anything can be audited; what the preprocessing did is undone for the reader."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from evenhand import ERMClassifier, SenSeIClassifier, audit
from evenhand.fair_metrics.metric import FairMetric
from evenhand.judged import Judged, scores
from evenhand.output_distances import mean_squared_logits, squared_error, total_variation


def test_every_kind_of_model_gives_outputs_in_float64():
    x = torch.tensor([[0.5, 1.0], [2.0, -1.0], [0.0, 0.0]], dtype=torch.float64)
    y = np.array([0, 1, 0])
    logistic = LogisticRegression().fit(x.numpy(), y)
    linear = LinearRegression().fit(x.numpy(), y)
    for model, width in [
        (nn.Linear(2, 3), 3),
        (logistic, 2),
        (linear, 1),
        (lambda rows: rows.sum(1), 1),
        (lambda rows: np.asarray(rows)[:, :1], 1),
    ]:
        h = Judged.of(model).outputs(x)
        assert h.shape == (3, width)
        assert h.dtype == torch.float64
    judged = Judged.of(logistic)
    p = judged.outputs(x).softmax(1).numpy()
    torch.testing.assert_close(p, logistic.predict_proba(x.numpy()), check_dtype=False)
    assert (judged.predictions(x) == logistic.predict(x.numpy())).all()


def test_a_pipeline_is_undone():
    frame = pd.DataFrame({"age": [20.0, 40.0, 60.0], "job": ["a", "b", "a"], "flag": [0, 1, 1]})
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["job"]), (StandardScaler(), ["age"]), ("passthrough", ["flag"])
    )
    model = make_pipeline(encode, LogisticRegression()).fit(frame, [0, 1, 1])
    judged = Judged.of(model)
    encoded = judged.encode(frame)
    back = judged.decode(encoded.numpy(), frame)
    assert list(back.columns) == ["age", "job", "flag"]
    assert list(back["job"]) == ["a", "b", "a"]
    np.testing.assert_allclose(back["age"], frame["age"])
    scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame[["age", "flag"]], [0, 1, 1])
    back = Judged.of(scaled).decode(Judged.of(scaled).encode(frame[["age", "flag"]]).numpy(), frame)
    np.testing.assert_allclose(back["age"], frame["age"])


def test_rare_categories_are_put_together_and_told_apart_from_the_others():
    jobs, towns = ["a"] * 8 + ["b"] * 8 + ["c", "d", "e"], ["x"] * 9 + ["y"] * 8 + ["z", "w"]
    frame = pd.DataFrame({"pay": np.arange(19.0), "job": jobs, "town": towns})
    rare = make_pipeline(OneHotEncoder(sparse_output=False, min_frequency=4))
    encode = make_column_transformer((StandardScaler(), ["pay"]), (rare, ["job", "town"]))
    judged = Judged.of(make_pipeline(encode, LogisticRegression()).fit(frame, frame["pay"] > 9))
    back = judged.decode(judged.encode(frame).numpy(), frame)
    assert back["job"].tolist() == jobs[:16] + ["infrequent_sklearn"] * 3
    assert back["town"].tolist() == towns[:17] + ["infrequent_sklearn"] * 2
    assert judged.rare_category("job") in {"c", "d", "e"}
    assert judged.rare_category("town") in {"z", "w"}
    assert judged.rare_category("pay") == "another rare category"


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


def test_what_is_a_function_of_each_row():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 2)))
    Judged.of(lambda rows: torch.full((len(rows), 1), 7.0)).check_function(x)  # everybody alike
    Judged.of(lambda rows: 1e6 + rows[:, :1]).check_function(x)

    def first_is_lucky(rows):
        return rows[:, :1] + (torch.arange(len(rows)) == 0)[:, None]

    with pytest.raises(ValueError, match="other answers when asked again"):
        Judged.of(first_is_lucky).check_function(x)


def test_functions_are_asked_in_float64_unless_their_network_has_fewer_digits():
    x = torch.tensor([[1e9 + 1.0], [1e9 + 2.0]], dtype=torch.float64)
    assert Judged.of(lambda rows: np.asarray(rows) - 1e9).outputs(x)[:, 0].tolist() == [1.0, 2.0]
    net = nn.Linear(1, 2)
    torch.testing.assert_close(Judged.of(lambda rows: net(rows)).outputs(x), net(x.float()).double())


def test_labels_are_no_outputs():
    with pytest.raises(TypeError, match=r"must give numbers, one or more a row; got ndarray that are none") as caught:
        Judged.of(lambda rows: np.array(["divorced"] * len(rows))).outputs(torch.zeros(2, 1, dtype=torch.float64))
    assert "divorced" not in str(caught.value)


def test_a_search_stands_for_what_it_chose():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1]}).fit(x, y)
    ours, theirs = Judged.of(search), Judged.of(search.best_estimator_)
    assert ours.module is not None
    torch.testing.assert_close(ours.outputs(ours.encode(x)), theirs.outputs(theirs.encode(x)))


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="one output a row"):
        Judged.of(lambda rows: np.zeros(1)).outputs(torch.zeros(3, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match="1 of 2 rows hold NaN"):
        Judged.of(nn.Linear(1, 1)).encode(np.array([[1.0], [np.nan]]))


def test_a_model_trained_without_a_metric_brings_none():
    x = np.random.default_rng(0).normal(size=(40, 2))
    plain = ERMClassifier(hidden=(4,), steps=5, random_state=0).fit(x, x[:, 0] > 0)
    with pytest.raises(ValueError, match="fair_metric is needed"):
        Judged.of(plain).metric(None)
    metric = FairMetric(torch.tensor([[1.0], [0.0]]))
    fair = SenSeIClassifier(metric, hidden=(4,), steps=5, random_state=0).fit(x, x[:, 0] > 0)
    torch.testing.assert_close(Judged.of(fair).metric(None).directions, metric.directions)
    assert isinstance(Judged.of(fair).module, nn.Module)  # its gradients can be asked for


def test_logits_where_there_are_some_probabilities_where_not():
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0.5)
    rows = torch.from_numpy(x)
    for labels in (y > 0, y):
        logistic = LogisticRegression().fit(x, labels)
        judged = Judged.of(logistic)
        assert judged.distance(None) is mean_squared_logits
        np.testing.assert_allclose(judged.outputs(rows).softmax(1).numpy(), logistic.predict_proba(x), atol=1e-12)
        assert (judged.predictions(rows) == logistic.predict(x)).all()
        assert judged.threshold(2, None) == 0.0
    tree = Judged.of(DecisionTreeClassifier(max_depth=2, random_state=0).fit(x, y > 0))
    assert tree.distance(None) is total_variation
    assert Judged.of(LinearRegression().fit(x, y)).threshold(1, None) is None
    shifted = Judged.of(lambda rows: torch.stack([rows[:, 0] + 5, rows[:, 1] + 5], 1))
    h = shifted.outputs_for(mean_squared_logits)(rows)
    torch.testing.assert_close(h.sum(1), torch.zeros(60).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(shifted.outputs_for(squared_error)(rows)[:, 0], rows[:, 0] + 5, atol=1e-5, rtol=0)


def test_scores_are_what_decisions_look_at():
    h = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, -1.0]])
    assert scores(h).tolist() == [2.0, 3.0]
    assert scores(h, torch.tensor([0, 1])).tolist() == [-3.0, -3.0]
    assert scores(h[:, :2]).tolist() == [3.0, -3.0]
    assert scores(h[:, :1]).tolist() == [1.0, 3.0]
    versions = torch.stack([h, h + torch.tensor([5.0, 0.0, 0.0])], 1)  # (n, m, K)
    assert scores(versions).tolist() == [[2.0, 2.0], [3.0, 8.0]]


def test_a_network_that_autograd_cannot_follow_is_judged_by_differences():
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))

    class Quiet(nn.Module):
        def __init__(self):
            super().__init__()
            self.plain = plain

        def forward(self, x):
            with torch.no_grad():
                return self.plain(x)

    x = torch.rand(20, 3, dtype=torch.float64)
    assert Judged.of(plain).has_slopes(x)
    assert not Judged.of(Quiet()).has_slopes(x)
    about = {"fair_metric": FairMetric(torch.eye(3)[:, :1]), "eps": 0.01, "bounds": (0.0, 1.0)}
    followed, differences = audit(plain, x, **about), audit(Quiet(), x, **about)
    assert differences.r_low == pytest.approx(followed.r_low, rel=0.05)


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


def test_rounding_that_depends_on_the_place_in_the_batch_is_no_randomness():
    def noisy(x, size):
        h = x[:, :1].clone()
        h[0] += size
        return h

    x = torch.linspace(-1, 1, 50, dtype=torch.float64)[:, None]
    for unit in (1e-3, 1.0, 1e3):
        Judged.of(lambda x, unit=unit: noisy(unit * x, 3e-5 * unit)).check_function(x)
        with pytest.raises(ValueError, match="other answers when asked again"):
            Judged.of(lambda x, unit=unit: noisy(unit * x, 3e-4 * unit)).check_function(x)


def test_a_filler_of_gaps_inside_a_pipeline_leaves_people_as_they_are():
    frame = pd.DataFrame({"age": [20.0, 40.0, np.nan, 30.0], "pay": [1.0, 5.0, 3.0, 9.0]})
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(frame, [0, 1, 1, 0])
    judged = Judged.of(model)
    back = judged.decode(judged.encode(frame).numpy(), frame)
    np.testing.assert_allclose(back, [[20.0, 1.0], [40.0, 5.0], [30.0, 3.0], [30.0, 9.0]])


def test_margins_of_two_classes_become_two_logits():
    from sklearn.svm import SVC

    x = np.random.default_rng(0).normal(size=(60, 2))
    model = SVC().fit(x, x[:, 0] * x[:, 1] > 0)
    margin = torch.from_numpy(model.decision_function(x))
    torch.testing.assert_close(Judged.of(model).outputs(torch.from_numpy(x)), torch.stack([-margin, margin], 1) / 2)


def test_rows_that_are_not_finite_are_counted_each_once():
    x = np.zeros((5, 2))
    x[1, 0] = x[3, 0] = x[3, 1] = np.nan
    with pytest.raises(ValueError, match="2 of 5 rows hold NaN or infinity"):
        Judged.of(lambda x: x).encode(x)


@pytest.mark.parametrize("end", [nn.Softmax(1), nn.LogSoftmax(-1)])
def test_a_softmax_at_the_end_is_judged_by_the_logits_before_it(end):
    torch.manual_seed(0)
    bare = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
    for model in (nn.Sequential(*bare, end), nn.Sequential(bare, nn.Sequential(nn.Dropout(), end))):
        x = torch.randn(20, 3, dtype=torch.float64)
        judged = Judged.of(model)
        torch.testing.assert_close(judged.outputs(x), Judged.of(bare).outputs(x))
        p = torch.softmax(Judged.of(bare).outputs(x), 1)
        expected = (p[:10] - p[10:]).abs().sum(1) / 2  # not those of a softmax of probabilities
        torch.testing.assert_close(total_variation(judged.outputs(x[:10]), judged.outputs(x[10:])), expected)
        assert isinstance(list(model.modules())[-1], type(end))  # the user's own is left as it was


def test_a_model_that_works_in_place_overwrites_nobody():
    torch.manual_seed(0)
    model = nn.Sequential(nn.ReLU(), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    in_place = nn.Sequential(nn.ReLU(inplace=True), *model[1:])
    x = torch.randn(6, 3, dtype=torch.float64)
    before = x.clone()
    judged = Judged.of(in_place)
    torch.testing.assert_close(judged.outputs(x), Judged.of(model).outputs(x))
    assert judged.has_slopes(x)
    assert torch.equal(x, before)


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


def test_a_device_that_is_not_here_is_one_sentence():
    for device in ("cuda:99", "nowhere"):
        with pytest.raises(ValueError, match=rf"device='{device}' cannot be used here, .*'cpu' always can"):
            Judged.of(nn.Linear(3, 2), device)


def test_a_model_of_images_is_a_function_of_flat_rows():
    net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(6, 2))
    images = torch.rand(5, 2, 2, 3)
    judged = Judged.of(net, shape=(2, 2, 3))
    rows = judged.encode(images)
    assert rows.shape == (5, 12)
    torch.testing.assert_close(judged.outputs(rows), net.double()(images.double()).detach())
    torch.testing.assert_close(judged.module(rows), judged.outputs(rows))
    with pytest.raises(ValueError, match=r"flatten them"):
        Judged.of(net).encode(images)
    with pytest.raises(ValueError, match=r"x.reshape\(1, -1\)"):
        Judged.of(net).encode(images[0, 0, 0])
