"""What all estimators share: labels, frames, modules of one's own, determinism."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from evenhand import (
    ERMClassifier,
    FairMetric,
    ProjectClassifier,
    SenSeIBoostingClassifier,
    SenSeIClassifier,
    SenSRClassifier,
    fair_metrics,
)
from evenhand.estimators.base import mlp
from evenhand.estimators.calibration import calibrate

SMALL = {"hidden": (8,), "steps": 30, "batch_size": 32, "lr": 0.02, "random_state": 0}
CLASSIFIERS = [ERMClassifier, ProjectClassifier, SenSRClassifier, SenSeIClassifier]


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(120, 5, n_informative=3, random_state=0)
    return pd.DataFrame(X, columns=list("abcde")), y


@pytest.fixture(scope="module")
def many():
    return make_classification(150, 6, n_informative=4, n_classes=3, random_state=1)


@pytest.mark.parametrize("Classifier", CLASSIFIERS)
@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1, 1], [3.0, 7.0]])
def test_any_label_type(table, Classifier, labels):
    X, y = table
    model = Classifier(**SMALL).fit(X, np.array(labels)[y])
    assert set(model.predict(X)) <= set(labels)
    assert list(model.classes_) == labels


@pytest.mark.parametrize("Classifier", CLASSIFIERS)
def test_outputs_agree_with_each_other(many, Classifier):
    X, y = many
    model = Classifier(**SMALL).fit(X, y)
    p, h = model.predict_proba(X), model.decision_function(X)
    assert p.shape == h.shape == (150, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p)
    np.testing.assert_allclose(p, torch.softmax(torch.tensor(h), 1).numpy())
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    with torch.no_grad():
        np.testing.assert_allclose(model.module_(torch.tensor(X, dtype=torch.float32)), h, atol=1e-5)


def test_the_logarithm_of_a_probability_that_rounds_to_zero_is_finite(table):
    X, y = table
    pytest.importorskip("lightgbm", reason="boosted trees are fitted by LightGBM")
    for made in (SenSeIClassifier(**SMALL), SenSeIBoostingClassifier(trees=2, random_state=0)):
        model = made.fit(X, y)
        calibrate(model, X, y)
        expected = model.predict_proba(X)
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(expected))
        model.offset_ = np.array([0.0, 2000.0])
        assert (model.predict_proba(X)[:, 0] == 0).all()
        assert np.isfinite(model.predict_log_proba(X)).all()


def test_binary_decision_function_is_the_margin(table):
    X, y = table
    model = SenSeIClassifier(**SMALL).fit(X, y)
    np.testing.assert_allclose(1 / (1 + np.exp(-model.decision_function(X))), model.predict_proba(X)[:, 1])


def test_pandas_polars_and_arrays_give_the_same(table):
    X, y = table
    models = [SenSeIClassifier(**SMALL).fit(form, y) for form in (X, pl.from_pandas(X), X.to_numpy())]
    for model, form in zip(models, (X, pl.from_pandas(X), X.to_numpy())):
        np.testing.assert_array_equal(model.decision_function(form), models[0].decision_function(X))
    assert list(models[0].feature_names_in_) == list(models[1].feature_names_in_) == list("abcde")


def test_same_seed_same_bits_and_another_seed_other_weights(table):
    X, y = table
    first, again, other = (SenSeIClassifier(**SMALL | {"random_state": s}).fit(X, y) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.decision_function(X), again.decision_function(X))
    assert not np.array_equal(first.decision_function(X), other.decision_function(X))


def test_global_seed_is_neither_used_nor_moved(table):
    X, y = table
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = SenSeIClassifier(**SMALL, validation_fraction=0.2).fit(X, y).decision_function(X)
    torch.manual_seed(6)
    np.testing.assert_array_equal(
        first, SenSeIClassifier(**SMALL, validation_fraction=0.2).fit(X, y).decision_function(X)
    )
    torch.manual_seed(5)
    SenSeIClassifier(**SMALL | {"hidden": ()}).fit(X, y)
    assert torch.equal(before, torch.get_rng_state())


def test_order_of_rows_does_not_matter(table):
    X, y = table
    shuffled = np.random.default_rng(0).permutation(len(X))
    first = SenSeIClassifier(**SMALL).fit(X, y)
    again = SenSeIClassifier(**SMALL).fit(X.iloc[shuffled], y[shuffled])
    np.testing.assert_array_equal(first.decision_function(X), again.decision_function(X))


def test_zero_weight_removes_a_row(table):
    X, y = table
    weight = np.r_[np.zeros(20), np.ones(100)]
    first = SenSeIClassifier(**SMALL).fit(X, y, sample_weight=weight)
    again = SenSeIClassifier(**SMALL).fit(X[20:], y[20:])
    np.testing.assert_array_equal(first.decision_function(X), again.decision_function(X))


def test_pickle_and_clone(table):
    X, y = table
    metric = fair_metrics.from_columns(X, ["a"])
    model = SenSeIClassifier(metric, **SMALL).fit(X, y)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.decision_function(X), back.decision_function(X))
    assert back.lam_ == model.lam_
    fresh = clone(model)
    assert not hasattr(fresh, "module_")
    np.testing.assert_array_equal(fresh.fit(X, y).decision_function(X), model.decision_function(X))


def test_grid_search_in_a_pipeline_refits_the_metric_per_fold(table):
    X, y = table
    seen = []

    def learner(Z):
        seen.append(len(Z))
        return FairMetric(torch.eye(5)[:, :1])

    pipeline = make_pipeline(StandardScaler(), SenSeIClassifier(learner, **SMALL))
    search = GridSearchCV(pipeline, {"senseiclassifier__rho": [0.0, 50.0]}, cv=3, refit=True).fit(X, y)
    assert seen == [80] * 6 + [120]
    assert set(search.cv_results_["param_senseiclassifier__rho"]) == {0.0, 50.0}


def test_learner_by_partial_sees_column_names(table):
    X, y = table
    learner = partial(fair_metrics.from_classifier, columns=["a"], predict={})
    model = SenSeIClassifier(learner, **SMALL).fit(X, y)
    np.testing.assert_allclose(model.fair_metric_.directions.numpy(), np.eye(5)[:, :1])


@pytest.mark.parametrize("Classifier", CLASSIFIERS)
def test_module_of_ones_own(table, Classifier):
    X, y = table
    own = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Tanh(), nn.Dropout(0.3), nn.Linear(7, 2))
    before = {name: value.clone() for name, value in own.state_dict().items()}
    model = Classifier(module=own, **SMALL).fit(X, y)
    assert all(torch.equal(before[name], value) for name, value in own.state_dict().items()), (
        "the user's is not touched"
    )
    assert model.predict_proba(X).shape == (120, 2)
    built = Classifier(module=lambda d, k: mlp(d, (3,), k), **SMALL).fit(X, y)
    assert built.predict(X).shape == (120,)


def test_module_of_the_wrong_width_is_refused(table):
    X, y = table
    with pytest.raises(ValueError, match=r"module must map \(n, 5\) to \(n, 2\)"):
        SenSeIClassifier(module=nn.Linear(5, 3), **SMALL).fit(X, y)


def test_validation_and_early_stopping(table):
    X, y = table
    options = SMALL | {"steps": 2000, "lr": 0.1}
    model = SenSeIClassifier(validation_fraction=0.3, patience=2, **options).fit(X, y)
    assert model.n_iter_ < 2000
    assert "validation" in model.history_.columns
    with pytest.raises(ValueError, match="patience needs validation data"):
        SenSeIClassifier(patience=2, **SMALL).fit(X, y)


def test_history_has_the_paper_s_quantities(table):
    X, y = table
    history = SenSeIClassifier(rho=5.0, **SMALL).fit(X, y).history_
    assert {"step", "objective", "loss", "lam", "d_x", "d_y"} <= set(history.columns)
    assert np.isfinite(history.to_numpy()).all()
    # objective = loss + rho * (lam*eps + d_y - lam*d_x), with rho = 5 and the default eps = 0.1
    expected = history.loss + 5.0 * (history.lam * 0.1 + history.d_y - history.lam * history.d_x)
    np.testing.assert_allclose(history.objective, expected, rtol=1e-4)


def test_deeper_networks_and_linear_ones(table):
    X, y = table
    for hidden, layers in (((), 1), ((4, 3), 5)):
        assert len(SenSeIClassifier(**SMALL | {"hidden": hidden}).fit(X, y).module_) == layers


def test_mlp_starts_as_in_the_authors_code():
    net = mlp(30, (20,), 2, torch.Generator().manual_seed(0))
    limit = (6 / 50) ** 0.5
    assert net[0].weight.abs().max() <= limit
    assert net[0].weight.std().item() == pytest.approx(limit / 3**0.5, rel=0.1)
    assert (net[0].bias == 0.1).all()
    assert (net[2].bias == 0.1).all()
