import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from evenhand.fair_metrics import free_share, from_classifier
from evenhand.fair_metrics.classifier import _some, _streamed_share, from_classifier_stream


def frame(n=300):
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, n).astype(float)
    race = rng.integers(0, 3, n)
    columns = {"a": rng.normal(size=n) + sex, "b": rng.normal(size=n) - race, "c": rng.normal(size=n), "sex": sex}
    return pd.DataFrame(columns | {f"race_{i}": (race == i).astype(float) for i in range(3)}), race


def contains(metric, direction):
    """Whether moves along the direction cost nothing."""
    direction = torch.as_tensor(direction, dtype=metric.directions.dtype)
    return metric.cost(direction[None] / direction.norm()).item() < 1e-6


def test_coefficients_are_those_of_sklearn():
    X, _ = frame()
    metric = from_classifier(X, ["sex"], ["sex"], l2=0.1)
    others = [c for c in X.columns if c != "sex"]
    model = LogisticRegression(C=1 / (0.1 * len(X)), max_iter=20_000, tol=1e-9).fit(X[others], X["sex"])
    expected = np.zeros(X.shape[1])
    expected[[X.columns.get_loc(c) for c in others]] = model.coef_[0]
    inner = metric.attribute_models[0]
    np.testing.assert_allclose(inner.directions[:, 0], expected, atol=1e-6)
    assert inner.directions[X.columns.get_loc("sex"), 0] == 0
    assert inner.estimator.coef_.shape == (1, X.shape[1] - 1)
    assert metric.directions.shape[1] == 2
    assert contains(metric, expected)
    assert str(inner) == "sex: LogisticRegression on 6 columns, 1 directions"


def test_a_one_hot_block_is_one_attribute_with_a_direction_per_category():
    X, race = frame()
    metric = from_classifier(X, ["race"], ["race"], l2=0.1)
    inner = metric.attribute_models[0]
    assert inner.directions.shape[1] == 3
    others = ["a", "b", "c", "sex"]
    model = LogisticRegression(C=1 / (0.1 * len(X)), max_iter=2000).fit(X[others], race)
    np.testing.assert_allclose(inner.directions[:4], model.coef_.T, atol=1e-4)
    assert (inner.directions[4:] == 0).all()


def test_several_attributes_and_the_default_of_predict():
    X, _ = frame()
    metric = from_classifier(X, ["sex", "race"], l2=0.1)
    assert [model.name for model in metric.attribute_models] == ["sex", "race"]
    for model in metric.attribute_models:
        for direction in model.directions.T:
            assert contains(metric, direction)


def test_numeric_attributes_by_ridge():
    X, _ = frame()
    metric = from_classifier(X, [], ["c"], l2=0.1)
    others = [c for c in X.columns if c != "c"]
    model = Ridge(alpha=0.1 * len(X)).fit(X[others], X["c"])
    inner = metric.attribute_models[0]
    assert isinstance(inner.estimator, Ridge)
    np.testing.assert_allclose(np.delete(inner.directions[:, 0], 2), model.coef_, atol=1e-6)


def test_an_attribute_outside_X():
    X, race = frame()
    names = np.array(["x", "y", "z"], dtype=object)[race]
    metric = from_classifier(X[["a", "b", "c"]], predict={"race": names})
    assert metric.attribute_models[0].used == (0, 1, 2)
    assert metric.d == 3


def test_the_inner_model_can_be_given():
    X, _ = frame()
    strong = from_classifier(X, [], ["sex"], classifier=LogisticRegression(C=1e-6))
    assert np.abs(strong.attribute_models[0].estimator.coef_).max() < 1e-2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: from_classifier(X, ["gender"]), "'gender' does not exist"),
        (lambda X: from_classifier(X, predict={"race": [None] + ["x"] * 299}), r"'race' is missing in 1 of 300 rows"),
        (lambda X: from_classifier(X, predict={"age": [float("nan")] * 2 + [1.0] * 298}), "'age' is missing in 2"),
        (lambda X: from_classifier(X, predict={"race": ["x"]}), "one value per row"),
        (
            lambda X: from_classifier(X, predict={"born": pd.date_range("1970", periods=300)}),
            "'born' holds dates",
        ),
        (lambda X: from_classifier(X, predict={"race": ["x"] * 300}), "single value"),
        (lambda X: from_classifier(X[["sex"]], ["sex"]), "no column is left"),
        (lambda X: from_classifier(X.iloc[:0], ["sex"]), "no rows"),
        (lambda X: from_classifier(X.assign(a=np.nan), ["sex"]), r"NaN or infinite values in column\(s\) \['a'\]"),
        (lambda X: from_classifier(X.assign(a="text"), ["sex"]), "are not numbers; encode them first"),
        (lambda X: from_classifier(X, [], []), "at least one sensitive column"),
        (lambda X: from_classifier(X, ["sex"], l2=0.0), "l2 must be a positive number, or several"),
        (lambda X: from_classifier(X, ["sex"], l2=()), "l2 must be a positive number, or several"),
        (lambda X: from_classifier(X, ["sex"], l2="strong"), "l2 must be a positive number, or several"),
        (lambda X: from_classifier(X, ["sex"], l2=(1, 2), classifier=LogisticRegression()), "give one of both"),
    ],
)
def test_errors_name_the_cause(call, message):
    with pytest.raises(ValueError, match=message):
        call(frame()[0])


def test_the_value_that_everybody_shares_is_not_shown():
    X = frame()[0].assign(code=987654.25)
    calls = (
        lambda: from_classifier(X, ["code"]),
        lambda: from_classifier(X, predict={"code": ["Jane Doe"] * len(X)}),
        lambda: from_classifier_stream([X], ["code"]),
    )
    for call in calls:
        with pytest.raises(ValueError, match="'code' has the single value that everybody shares") as told:
            call()
        assert "Jane" not in str(told.value)
        assert "987654" not in str(told.value)


@pytest.mark.parametrize("learn", [from_classifier, lambda X, *args, **l2: from_classifier_stream([X], *args, **l2)])
def test_with_several_strengths_the_directions_of_each_cost_nothing(learn):
    X, _ = frame()
    both = learn(X, ["sex"], ["sex"], l2=(0.1, 1e-5))
    assert both.directions.shape[1] == 3
    assert [model.name for model in both.attribute_models] == ["sex", "sex"]
    for strength in (0.1, 1e-5):
        (one,) = learn(X, ["sex"], ["sex"], l2=strength).attribute_models
        assert contains(both, one.directions[:, 0])
    weak = from_classifier(X, ["sex"], ["sex"], l2=0.1)
    assert not contains(weak, both.attribute_models[1].directions[:, 0])


def with_more(scale):
    """Ten times ``frame``, a column that tells sex for sure where it speaks, and eight that say nothing; the larger
    these and b and c are, the smaller a part of the whole is free."""
    X = pd.concat([frame()[0]] * 10, ignore_index=True)
    X[["b", "c"]] *= scale
    rng = np.random.default_rng(1)
    X["told"] = (rng.random(len(X)) < 0.2) * (2 * X["sex"] - 1)
    more = scale * rng.normal(size=(len(X), 8))
    return pd.concat([X, pd.DataFrame(more, columns=[f"more_{i}" for i in range(8)])], axis=1)


@pytest.mark.parametrize(
    "learn", [from_classifier, lambda X, *a, **k: from_classifier_stream([X[:100], X[100:101], X[101:]], *a, **k)]
)
def test_by_default_both_strengths_unless_they_free_more_than_a_third(learn):
    """The guard looks at what is free of all rows, also where they come in chunks."""
    for scale, strengths in ((1.0, [0.15, 1e-5]), (0.0, [0.15])):
        X = with_more(scale)
        metric = learn(X, ["sex"], ["sex"])
        assert len(metric.attribute_models) == len(strengths)
        np.testing.assert_allclose(metric.sigma, learn(X, ["sex"], ["sex"], l2=strengths).sigma)
        others = X.assign(sex=0.0).to_numpy()
        assert (free_share(from_classifier(X, ["sex"], ["sex"], l2=(0.15, 1e-5)), others) > 1 / 3) == (scale == 0)


def test_the_share_that_is_free_is_the_same_in_chunks():
    X = with_more(0.3) + 1000.0  # far from zero: sums of squares would cancel
    metric = from_classifier(X, ["sex"], ["sex"], l2=0.1)
    values = X.to_numpy()
    chunks = [values[:7], values[7:150], values[150:]]
    assert _streamed_share(chunks, metric) == pytest.approx(free_share(metric, values), rel=1e-6)
    others = np.where(X.columns == "sex", 0.0, 1.0)
    assert _streamed_share(chunks, metric, others) == pytest.approx(free_share(metric, values * others), rel=1e-6)


@pytest.mark.parametrize(
    "learn", [from_classifier, lambda X, *a, **k: from_classifier_stream([X[:100], X[100:]], *a, **k)]
)
@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 0.5), (-0.83, 1.21), (0.0, 1000.0)])
def test_how_two_groups_are_coded_changes_nothing(learn, low, high):
    """Neither which regression is fitted nor how much counts as free."""
    X = with_more(1.0)
    coded = X.assign(sex=np.where(X["sex"] == 1, high, low))
    np.testing.assert_allclose(learn(coded, ["sex"]).sigma, learn(X, ["sex"]).sigma, atol=1e-5)


@pytest.mark.parametrize("unit", [1.0, 1e5])
@pytest.mark.parametrize("l2", [0.15, 1e-5])
def test_the_regression_is_fitted_to_the_end(l2, unit):
    """At the minimum the mean loss has the slope -l2 w, also where it is hardly regularised and in large units."""
    X = with_more(1.0)
    X["more_0"] *= unit
    values = X.drop(columns="sex").to_numpy()
    for metric in (from_classifier(X, ["sex"], l2=l2), from_classifier_stream([X[:500], X[500:]], ["sex"], l2=l2)):
        (found,) = metric.attribute_models
        w = found.directions[list(found.used), 0]
        p = 1 / (1 + np.exp(-(values @ w + found.estimator.intercept_[0])))
        slope = values.T @ (p - X["sex"]) / len(X) + l2 * w
        np.testing.assert_allclose(slope / values.std(0), 0, atol=1e-6)


def test_a_stream_learns_what_the_whole_does_also_when_it_is_sorted(monkeypatch):
    monkeypatch.setattr("evenhand.fair_metrics.classifier.ENOUGH", 700)
    X = with_more(1.0).sort_values("sex", ignore_index=True)
    whole, parts = from_classifier(X, ["sex"]), from_classifier_stream([X[:1], X[1:900], X[900:]], ["sex"])
    assert len(whole.attribute_models) == 2
    np.testing.assert_allclose(whole.sigma, parts.sigma, atol=1e-5)
    values = X.to_numpy()
    np.testing.assert_array_equal(_some([values[:1], values[1:900], values[900:]]), values[::5])


def test_chunks_are_read_by_their_columns():
    X, _ = frame()
    empty = X[:0]
    plain = from_classifier_stream([X], ["sex"], l2=0.1)
    np.testing.assert_allclose(from_classifier_stream([empty, X[:9], empty, X[9:]], ["sex"], l2=0.1).sigma, plain.sigma)
    np.testing.assert_allclose(from_classifier_stream([X], ["sex"], "sex", l2=0.1).sigma, plain.sigma)
    for other in (X[X.columns[::-1]], X.drop(columns="a"), X.to_numpy()):
        with pytest.raises(ValueError, match="chunk 1 has not the columns of the first"):
            from_classifier_stream([X, other], ["sex"])
    with pytest.raises(ValueError, match="no chunks with rows"):
        from_classifier_stream([empty], ["sex"])
    with pytest.raises(TypeError, match="must be a list of names"):
        from_classifier_stream([X], "sex")
    said = pd.DataFrame({"sex": [0.0, 1.0], "name": ["Alice Secret", "Bob"]})
    with pytest.raises(ValueError, match="'name' are not numbers") as error:
        from_classifier_stream([said], ["sex"])
    assert "Alice" not in str(error.value)


def test_a_missing_value_of_a_nullable_column_is_named():
    X, _ = frame()
    X["b"] = X["b"].astype("Float64").mask(X.index == 3)
    with pytest.raises(ValueError, match=r"NaN or infinite values in column\(s\) \['b'\]"):
        from_classifier(X, ["sex"])


def test_groups_of_mixed_types():
    X, _ = frame()
    mixed = np.array([1 if s else "other" for s in X["sex"]], dtype=object)
    assert len(from_classifier(X[["a", "b"]], (), {"group": mixed}, l2=0.1).attribute_models) == 1


def test_a_model_of_ones_own_is_fitted_once():
    X, _ = frame()
    metric = from_classifier(X, ["sex"], ["sex"], classifier=LogisticRegression())
    assert len(metric.attribute_models) == 1


def test_several_strengths_of_a_number():
    X, _ = frame()
    both = from_classifier(X, [], ["a"], l2=[10.0, 1e-6])
    strong, free = both.attribute_models
    assert np.linalg.norm(strong.directions) < 0.5 * np.linalg.norm(free.directions)


def test_an_attribute_is_not_predicted_from_itself():
    """Its own column is left out of the regression, or the direction would be that column and nothing else."""
    rng = np.random.default_rng(0)
    sex = (rng.random(400) < 0.5).astype(float)
    X = np.c_[sex, sex + 0.3 * rng.normal(size=400), rng.normal(size=400)]
    model = from_classifier(X, columns=[0], predict=[0]).attribute_models[0]
    assert model.used == (1, 2)
    assert model.directions[0, 0] == 0
    assert abs(model.directions[1, 0]) > 10 * abs(model.directions[2, 0])


@pytest.mark.parametrize("name", ["sex", "race"])
def test_in_chunks_the_coefficients_are_those_of_sklearn(name):
    """Two groups, and three in one-hot columns; a column that is always zero says nothing and stops nothing."""
    X, race = frame()
    X["zero"] = 0.0
    others = [c for c in X.columns if not c.startswith(name)]
    target = race if name == "race" else X["sex"]
    wanted = LogisticRegression(C=1 / (0.1 * len(X)), tol=1e-10, max_iter=5000).fit(X[others], target)
    model = from_classifier_stream([X[:100], X[100:110], X[110:]], predict=[name], l2=0.1).attribute_models[0]
    np.testing.assert_allclose(model.estimator.coef_, wanted.coef_, atol=1e-6)
    np.testing.assert_allclose(model.estimator.intercept_ - model.estimator.intercept_.mean() * (name == "race"),
                               wanted.intercept_ - wanted.intercept_.mean() * (name == "race"), atol=1e-6)  # fmt: skip
    assert model.estimator.classes_.tolist() == ([0, 1, 2] if name == "race" else [0, 1])
    assert model.estimator.passes_ < 20
    np.testing.assert_allclose(model.directions[[X.columns.get_loc(c) for c in others]], wanted.coef_.T, atol=1e-6)


def test_chunks_with_holes_are_refused():
    X, _ = frame()
    broken = X[200:].copy()
    broken.iloc[5, 0] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinite values in column\(s\) \['a'\]"):
        from_classifier_stream([X[:200], broken], predict=["sex"])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.arange(300.0) % 20, LogisticRegression),
        (np.arange(300.0) % 21, Ridge),
        (np.arange(300) % 3 + 0.5, Ridge),
        (np.arange(300) % 2 + 0.5, LogisticRegression),  # two values are two groups, however they are coded
        (np.arange(300) % 21, Ridge),  # ages, say; codes of categories are better given as strings
        ((np.arange(300) % 21).astype(str), LogisticRegression),
        (pd.Series(np.arange(300) % 21).astype("category"), LogisticRegression),
    ],
)
def test_numbers_of_many_values_or_between_whole_ones_are_quantities(values, kind):
    X, _ = frame()
    found = from_classifier(X[["a", "b"]], (), {"it": values}).attribute_models[0]
    assert isinstance(found.estimator, kind)


@pytest.mark.parametrize("attribute", ["sex", "race", "c"])
@pytest.mark.parametrize("scale", [1.0, 1e6])  # of one column; the second makes scikit-learn's Newton steps give up
def test_a_row_of_weight_two_teaches_what_the_row_given_twice_teaches(attribute, scale):
    X, _ = frame()
    X["a"] *= scale
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    twice = X.loc[np.repeat(X.index, weight)]
    for l2 in (None, 0.1):
        weighted = from_classifier(X, [attribute], l2=l2, sample_weight=weight)
        given = from_classifier(twice, [attribute], l2=l2)
        np.testing.assert_allclose(weighted.project(torch.eye(7)), given.project(torch.eye(7)), atol=1e-6)
        plain = from_classifier(X, [attribute], l2=l2)
        assert not np.allclose(weighted.project(torch.eye(7)), plain.project(torch.eye(7)), atol=1e-3 / scale)


def test_the_size_of_the_weights_is_no_matter():
    X, _ = frame()
    weight = np.random.default_rng(1).random(len(X)) + 0.1
    parts = (weight / weight.sum(), weight / weight.mean())
    small, usual = (from_classifier(X, ["sex"], sample_weight=part) for part in parts)
    np.testing.assert_allclose(small.project(torch.eye(7)), usual.project(torch.eye(7)), atol=1e-6)


@pytest.mark.parametrize("weight", [np.zeros(300), np.ones(299), np.full(300, np.nan)])
def test_weights_that_count_nobody_are_refused(weight):
    with pytest.raises(ValueError, match="sample_weight must be 300 positive numbers"):
        from_classifier(frame()[0], ["sex"], sample_weight=weight)
