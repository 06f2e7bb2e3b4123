"""Anything can be audited; what the preprocessing did is undone for the reader."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from evenhand import (
    Box,
    CandidateSearch,
    ERMClassifier,
    SenSeIClassifier,
    Variations,
    audit,
    certify,
    certify_individuals,
)
from evenhand.bounds.layers import CannotCertify
from evenhand.counterfactuals import alter_columns
from evenhand.fair_metrics.metric import FairMetric
from evenhand.judged import Judged
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


def test_what_is_a_function_of_each_row():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 2)))
    Judged.of(lambda rows: torch.full((len(rows), 1), 7.0)).check_function(x)  # everybody alike
    Judged.of(lambda rows: 1e6 + rows[:, :1]).check_function(x)

    def first_is_lucky(rows):
        return rows[:, :1] + (torch.arange(len(rows)) == 0)[:, None]

    with pytest.raises(ValueError, match="other answers when asked again"):
        Judged.of(first_is_lucky).check_function(x)


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
    assert Judged.of(LinearRegression().fit(x, y)).distance(None) is squared_error  # a number is no logit
    shifted = Judged.of(lambda rows: torch.stack([rows[:, 0] + 5, rows[:, 1] + 5], 1))
    h = shifted.outputs_for(mean_squared_logits)(rows)
    torch.testing.assert_close(h.sum(1), torch.zeros(60).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(shifted.outputs_for(squared_error)(rows)[:, 0], rows[:, 0] + 5, atol=1e-5, rtol=0)


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


NAMED = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 3)), columns=["sex", "age", "pay"])
SEX = FairMetric([[1.0], [0.0], [0.0]])
OTHERWISE = [
    (NAMED[["age", "sex", "pay"]], r"they stand in another order; give x\[model.feature_names_in_\]"),
    (NAMED.rename(columns={"pay": "income"}), r"without 'pay' and with 'income'$"),
    (NAMED.assign(more=1.0), r"with 'more'; give x\["),
]


@pytest.mark.parametrize("x", [x for x, _ in OTHERWISE])
@pytest.mark.parametrize("make", [LogisticRegression, lambda: ERMClassifier(hidden=(4,), steps=5, random_state=0)])
def test_frames_that_predict_refuses_are_refused(make, x):
    says = next(says for other, says in OTHERWISE if other is x)
    y = NAMED["sex"] + NAMED["age"] > 0
    model = make().fit(NAMED, y)
    for given, names in ((model, NAMED), (make_pipeline("passthrough", model), NAMED)):
        with pytest.raises(ValueError, match="feature names"):
            given.predict(x)
        for ask in (
            lambda rows: audit(given, rows, SEX, 0.0, (-5.0, 5.0)),  # noqa: B023
            lambda rows: certify(given, names, SEX, 0.0, (-5.0, 5.0), x_tune=rows, distinct_people=True),  # noqa: B023
            lambda rows: certify(given, rows, SEX, 0.0, (-5.0, 5.0), x_tune=names, distinct_people=True),  # noqa: B023
            lambda rows: certify_individuals(given, rows[:5], SEX, 0.0, (-5.0, 5.0)),  # noqa: B023
            lambda rows: audit(given, iter([names, rows]), SEX, 0.0, (-5.0, 5.0)),  # noqa: B023
            lambda rows: certify(given, alter_columns(rows, {"sex": [0.0, 1.0]}), eps=0.0),  # noqa: B023
        ):
            with pytest.raises(ValueError, match=says):
                ask(x)


def test_columns_that_a_column_transformer_finds_by_name_may_stand_anywhere():
    encode = make_column_transformer((StandardScaler(), ["pay"]), ("passthrough", ["sex", "age"]))
    model = make_pipeline(encode, LogisticRegression()).fit(NAMED, NAMED["sex"] + NAMED["age"] > 0)
    metric = FairMetric([[0.0], [1.0], [0.0]])
    here, there = (audit(model, x, metric, 0.0, (-5.0, 5.0)).r_low for x in (NAMED, NAMED[["age", "pay", "sex"]]))
    assert here == there > 0


def test_versions_that_are_a_frame_are_read_as_the_people_are():
    """Through the steps before the estimator, and by their names."""
    y = NAMED["sex"] + NAMED["age"] > 0
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(NAMED, y)
    versions = alter_columns(NAMED * [1.0, 1.0, 50.0], {"sex": [-1.0, 1.0]})
    encoded = versions.map(model[:-1].transform)
    raw, mapped = (
        audit(model, NAMED * [1.0, 1.0, 50.0], eps=0.0, search=CandidateSearch(some)).r_low
        for some in (versions, encoded)
    )
    assert raw == pytest.approx(mapped)
    assert raw > 0
    plain = LogisticRegression().fit(NAMED, y)
    other = alter_columns(NAMED[["age", "sex", "pay"]], {"sex": [-1.0, 1.0]})
    with pytest.raises(ValueError, match="they stand in another order"):
        audit(plain, NAMED, eps=0.0, search=CandidateSearch(other))


class Ends(nn.Module):
    """A network whose own forward ends in a softmax."""

    def __init__(self, end=lambda h: h.softmax(-1)):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.end = nn.Linear(3, 3), end

    def forward(self, x):
        return self.end(self.linear(x))


@pytest.mark.parametrize("given", [Ends(), lambda x: Ends()(x.float()).detach()])
def test_probabilities_are_judged_as_probabilities(given):
    x = torch.rand(60, 3).double()
    judged = Judged.of(given).looked_at(x, None)
    assert judged.only_probabilities
    torch.testing.assert_close(judged.outputs(x).exp(), Ends()(x.float()).double(), atol=1e-6, rtol=0)
    assert (judged.module is not None) == isinstance(given, nn.Module) == judged.has_slopes(x)
    found = audit(given, x, SEX, 0.0, (0.0, 1.0))
    assert found.distance == "total variation"
    bare = nn.Sequential(Ends().linear, nn.Softmax(1))
    expected = audit(bare, x, SEX, 0.0, (0.0, 1.0), output_distance=total_variation)
    assert found.r_low == pytest.approx(expected.r_low, rel=0.01)
    assert found.decisions.low == expected.decisions.low
    as_they_are = Judged.of(given).looked_at(x, squared_error)
    torch.testing.assert_close(as_they_are.outputs(x), Ends()(x.float()).double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("end", [lambda h: h, torch.sigmoid, lambda h: h.softmax(-1)[:, :1]])
def test_other_outputs_are_no_probabilities_of_classes(end):
    x = torch.rand(60, 3).double()
    assert not Judged.of(Ends(end)).looked_at(x, None).only_probabilities


@pytest.mark.parametrize(
    ("model", "classes"),
    [
        (SGDClassifier(loss="modified_huber", alpha=0.1), 2),  # cut off at 0 and 1
        (SGDClassifier(loss="log_loss", alpha=0.1), 3),  # one class against the rest
        (SVC(probability=True, random_state=0), 2),  # fitted to the scores
        (GradientBoostingClassifier(loss="exponential", n_estimators=20, max_depth=1), 2),  # of twice the score
        (LogisticRegression(), 3),
    ],
    ids=["cut off", "against the rest", "fitted", "twice", "softmax"],
)
@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning", "ignore:predict.*decides otherwise:UserWarning")
def test_a_distance_between_probabilities_is_about_those_of_predict_proba(model, classes):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    x[:, 0] = x[:, 0] > 0
    model.fit(x[:200], np.digitize(x[:200, 0] + x[:200, 1] + rng.normal(size=200), [0.0, 1.0][: classes - 1]))
    held, box = x[200:], Box(x.min(0), x.max(0), binary=[0])
    turned = np.array([1.0, 0.0, 0.0]) + held * [-1.0, 1.0, 1.0]
    moved = np.abs(model.predict_proba(held) - model.predict_proba(turned)).sum(1) / 2
    judge = {"eps": 0.0, "output_distance": total_variation}
    assert audit(model, held, SEX, bounds=box, **judge).r_low == pytest.approx(moved.mean(), abs=1e-6)
    versions = Variations(np.stack([held, turned], 1), np.arange(100))
    exact = certify(model, versions, x_tune=Variations(np.stack([x[:50], x[:50]], 1), np.arange(50)), eps=0.0)
    assert exact.r_high == pytest.approx(moved.mean(), abs=1e-6)
    if isinstance(model, LogisticRegression):
        found = certify(model, held, SEX, bounds=box, x_tune=x[:60], tune_steps=20, **judge)
        assert found.r_low <= moved.mean() * (1 + 1e-6) <= found.r_high * (1 + 2e-6)
        return
    with pytest.raises(CannotCertify, match=r"not the softmax of its scores|whose inside can be read"):
        certify(model, held, SEX, bounds=box, x_tune=x[:60], **judge)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:torch.quantize_per_tensor:UserWarning")
def test_a_quantised_network_is_judged_without_gradients():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    with torch.no_grad():
        net[0].weight[:, 0] += 1
    quantised = torch.ao.quantization.quantize_dynamic(net, {nn.Linear})
    x = torch.rand(60, 3).double()
    assert not Judged.of(quantised).has_slopes(x)
    found, wanted = (audit(model, 5 * x, SEX, 0.0, (0.0, 5.0)).r_low for model in (quantised, net))
    assert found == pytest.approx(wanted, rel=0.3)


def test_names_that_a_library_has_rewritten_are_the_same_names():
    """LightGBM keeps "hours per week" as "hours_per_week", and takes either."""
    lightgbm = pytest.importorskip("lightgbm")
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["hours per week", "age"])
    model = lightgbm.LGBMClassifier(n_estimators=2, min_child_samples=2, verbose=-1).fit(x, x["age"] > 0)
    assert list(model.feature_names_in_) != list(x.columns)
    assert Judged.of(model).encode(x).shape == (60, 2)
    with pytest.raises(ValueError, match="they stand in another order"):
        Judged.of(model).encode(x[["age", "hours per week"]])


def test_names_that_differ_by_a_blank_alone_are_two_names():
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a_b", "a b"])
    model = LogisticRegression().fit(x, x["a b"] > 0)
    assert Judged.of(model).encode(x).shape == (60, 2)
    with pytest.raises(ValueError, match="they stand in another order"):
        Judged.of(model).encode(x[["a b", "a_b"]])
