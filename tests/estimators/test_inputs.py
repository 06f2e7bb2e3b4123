"""Bad input gets a clear error."""

import numpy as np
import pandas as pd
import pytest
import torch

from evenhand import FairMetric, SenSeIClassifier, SenSeIRegressor, SenSRClassifier
from evenhand.estimators.inputs import data_bounds

SMALL = {"hidden": (4,), "steps": 3, "batch_size": 8}
X = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "sex": [0.0, 1.0, 0.0, 1.0]})
Y = np.array([0, 1, 1, 0])


def with_value(value):
    return X.assign(age=[20.0, value, 40.0, 50.0])


@pytest.mark.parametrize(
    ("model", "features", "labels", "message"),
    [
        (SenSeIClassifier(**SMALL), with_value(np.nan), Y, r"NaN or infinity in column\(s\) 'age'"),
        (SenSeIClassifier(**SMALL), with_value(np.inf), Y, r"NaN or infinity in column\(s\) 'age'"),
        (SenSeIClassifier(**SMALL), with_value(np.nan).to_numpy(), Y, "contains NaN"),
        (
            SenSeIClassifier(**SMALL),
            X.assign(job=list("abcd")),
            Y,
            r"'job' are not numbers; encode them.*OneHotEncoder",
        ),
        (SenSeIClassifier(**SMALL), X, np.zeros(4), "one class only"),
        (SenSeIClassifier(**SMALL), X[:0], Y[:0], "0 sample"),
        (SenSeIClassifier(rho=-1, **SMALL), X, Y, "rho must be zero or positive; got -1"),
        (SenSeIClassifier(rho=np.nan, **SMALL), X, Y, "rho must be a number; got nan"),
        (SenSeIClassifier(eps=-0.1, **SMALL), X, Y, "eps must be zero or positive; got -0.1"),
        (SenSRClassifier(eps=-0.1, **SMALL), X, Y, "eps must be zero or positive"),
        (SenSeIRegressor(rho=-1, **SMALL), X, Y, "rho must be zero or positive"),
        (SenSeIClassifier(lam=-1.0, **SMALL), X, Y, "lam must be zero or positive"),
        (SenSeIClassifier(FairMetric.euclidean(3), **SMALL), X, Y, "built for 3 features but X has 2"),
        (SenSeIClassifier(bounds="wide", **SMALL), X, Y, "bounds must be 'data', None, a Box or"),
        (
            SenSeIClassifier(bounds=(0, 35), **SMALL),
            X,
            Y,
            r"bounds exclude 2 of 4 training rows, in column\(s\) \['age'\]",
        ),
        (SenSeIClassifier(bounds=([0, 0, 0], 99), **SMALL), X, Y, "one value per column"),
        (SenSeIClassifier(bounds=(99, 0), **SMALL), X, Y, "low <= high"),
        (SenSeIClassifier(validation_fraction=1.0, **SMALL), X, Y, r"validation_fraction must lie in \[0, 1\)"),
        (SenSeIClassifier(**SMALL | {"steps": 0}), X, Y, "steps must be positive; got 0"),
        (SenSeIClassifier(**SMALL | {"batch_size": 0}), X, Y, "batch_size must be positive; got 0"),
        (SenSeIClassifier(lr=0.0, **SMALL), X, Y, "lr must be positive"),
        (SenSeIClassifier(warm_up=2.0, **SMALL), X, Y, "warm_up is a share of the steps"),
        (SenSeIClassifier(eps="0.1", **SMALL), X, Y, "eps must be a number; got '0.1' of type str"),
        (SenSeIClassifier(**SMALL | {"steps": 2.5}), X, Y, "steps must be a whole number; got 2.5"),
        (
            SenSeIClassifier(**SMALL | {"hidden": 100}),
            X,
            Y,
            r"hidden must be .* got 100; write hidden=\(100,\)",
        ),
        (SenSeIClassifier(**SMALL | {"hidden": (0,)}), X, Y, "hidden must be a tuple of positive widths"),
        (SenSeIClassifier(class_weight="even", **SMALL), X, Y, "class_weight must be 'balanced', None or a table"),
    ],
)
def test_message(model, features, labels, message):
    with pytest.raises(ValueError, match=message):
        model.fit(features, labels)


def test_a_learner_must_return_a_metric():
    with pytest.raises(TypeError, match="FairMetric or a function of X that returns one; got ndarray"):
        SenSeIClassifier(lambda X: np.eye(2), **SMALL).fit(X, Y)


def test_a_learned_metric_that_leaves_nothing_is_said():
    """Four groups that differ along all three columns make everything free; groups by chance do not."""
    rng = np.random.default_rng(0)
    labels, group = rng.integers(0, 2, 300), np.arange(300) % 4
    features = (rng.normal(size=(300, 3)) + 2 * np.eye(4)[group][:, :3]) * [1, 1, 100]
    with pytest.warns(UserWarning, match=r"makes 100% of the difference between people free, along 3 directions of 3"):
        SenSeIClassifier(**SMALL).fit(features, labels, sensitive_features=group.astype(str))
    SenSeIClassifier(**SMALL).fit(features, labels, sensitive_features=rng.permutation(group).astype(str))
    given = FairMetric(np.eye(3))
    SenSeIClassifier(given, **SMALL).fit(features, labels)  # who gives one knows it


def test_negative_weights_are_refused():
    with pytest.raises(ValueError, match="must not be negative"):
        SenSeIClassifier(**SMALL).fit(X, Y, sample_weight=[1, -1, 1, 1])


def test_a_constant_column_is_fine():
    model = SenSeIClassifier(**SMALL, random_state=0).fit(X.assign(constant=3.0), Y)
    assert np.isfinite(model.decision_function(X.assign(constant=3.0))).all()


def test_the_user_s_metric_is_not_moved_or_changed():
    metric = FairMetric(torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    model = SenSeIClassifier(metric, **SMALL).fit(X, Y)
    assert metric.directions.dtype == torch.float64
    assert model.fair_metric_.directions.dtype == torch.float32


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_data_bounds_of_parts_are_those_of_the_whole(free, order):
    """Also where a column holds only zeros and ones in some of the parts, and for free directions."""
    torch.manual_seed(0)
    x = torch.randn(30, 5)
    x[:, 3], x[:, 4] = (x[:, 3] > 0).float(), (x[:, 4] > 0).float()
    x[20:, 4] *= 0.5
    metric = FairMetric(torch.randn(5, 2)) if free else None
    known, found = data_bounds(x, metric), None
    for part in order:
        found = data_bounds(x[10 * part : 10 * part + 10], metric, found)
    assert found.binary == known.binary == (3,)
    for name in ("low", "high", *(("free_low", "free_high") if free else ())):
        torch.testing.assert_close(getattr(found, name), getattr(known, name))


def test_data_bounds_of_parts_of_which_a_sensitive_column_is_not_binary():
    """Binary, it is no free direction; then it is, and those before belong to its range."""
    torch.manual_seed(0)
    x, metric = torch.randn(30, 3), FairMetric([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    x[:20, 0] = (x[:20, 0] > 0).float()
    first = data_bounds(x[:20], metric)
    both = data_bounds(x[20:], metric, first)
    assert (first.free.shape[1], both.free.shape[1]) == (1, 2)
    assert bool(both.contains(x).all())


def test_data_bounds_are_the_range_and_indicators_are_zero_one():
    low, high = data_bounds(torch.tensor([[2.0, 1.0, 0.0], [5.0, 1.0, 1.0]]))
    assert low.tolist() == [2.0, 0.0, 0.0]
    assert high.tolist() == [5.0, 1.0, 1.0]


def test_unbounded_is_the_paper_s_setting():
    assert SenSeIClassifier(bounds=None, **SMALL).fit(X, Y).bounds_ is None
