"""SenSeI does what it is for: it removes the dependence on a sensitive feature, at a price that rho sets."""

import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score
from sklearn.neural_network import MLPRegressor

from evenhand import (
    ERMClassifier,
    FairMetric,
    SenSeIClassifier,
    SenSeIRegressor,
    SenSRClassifier,
    Variations,
    audit,
    fair_metrics,
)
from evenhand.search import PAPER_ADULT, CandidateSearch, GradientSearch

OPTIONS = {"hidden": (16,), "steps": 300, "batch_size": 200, "lr": 0.01, "random_state": 0}


@pytest.fixture(scope="module")
def biased():
    """Labels depend on skill, and unfairly on the group."""
    rng = np.random.default_rng(0)
    skill, group = rng.normal(size=1500), rng.integers(0, 2, 1500)
    y = (skill + 1.5 * (group - 0.5) + 0.3 * rng.normal(size=1500) > 0).astype(int)
    return pd.DataFrame({"skill": skill, "group": group.astype(float)}), y


def flips(model, X):
    """Share of people whose decision hinges on the group."""
    return np.mean(model.predict(X.assign(group=0.0)) != model.predict(X.assign(group=1.0)))


def test_the_sensitive_feature_stops_to_matter(biased):
    X, y = biased
    metric = fair_metrics.from_columns(X, ["group"])
    plain = ERMClassifier(**OPTIONS).fit(X, y)
    fair = SenSeIClassifier(metric, rho=20, eps=0.01, **OPTIONS).fit(X, y)
    assert flips(plain, X) > 0.3
    assert flips(fair, X) < 0.03
    assert fair.score(X, y) > 0.7  # the best score from skill alone is 1 - P(|skill| < .75) / 2 = .73


def test_more_rho_is_more_consistent(biased):
    X, y = biased
    metric = fair_metrics.from_columns(X, ["group"])
    share = [flips(SenSeIClassifier(metric, rho=rho, eps=0.01, **OPTIONS).fit(X, y), X) for rho in (0, 0.1, 20)]
    assert share[0] > share[1] + 0.02 > share[2]


def test_rho_zero_is_plain_training(biased):
    X, y = biased
    metric = fair_metrics.from_columns(X, ["group"])
    plain = ERMClassifier(**OPTIONS).fit(X, y)
    fair = SenSeIClassifier(metric, rho=0, quiet_start=False, **OPTIONS).fit(X, y)
    np.testing.assert_allclose(plain.decision_function(X), fair.decision_function(X), rtol=1e-6)


def test_eps_zero_is_defined(biased):
    X, y = biased
    metric = fair_metrics.from_columns(X, ["group"])
    fair = SenSeIClassifier(metric, rho=20, eps=0, **OPTIONS).fit(X, y)
    assert flips(fair, X) < 0.03
    assert fair.lam_ == pytest.approx(0.1)  # rests


def test_named_preset_runs(biased):
    X, y = biased
    metric = fair_metrics.from_columns(X, ["group"])
    options = OPTIONS | {"steps": 20}
    paper = SenSeIClassifier(metric, rho=40, eps=0.01, bounds=None, search=PAPER_ADULT, **options).fit(X, y)
    assert np.isfinite(paper.decision_function(X)).all()
    assert (PAPER_ADULT.subspace_step, PAPER_ADULT.subspace_steps) == (5.0, 50)


def test_search_can_be_given(biased):
    X, y = biased
    options = OPTIONS | {"steps": 20}
    SenSeIClassifier(search=GradientSearch(subspace_steps=0, full_steps=2), **options).fit(X, y)


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_start_has_no_response_to_the_directions(biased, quiet):
    X, y = biased
    metric = fair_metrics.from_columns(X, ["group"])
    model = SenSeIClassifier(metric, quiet_start=quiet, rho=1.0, **OPTIONS | {"steps": 1, "lr": 1e-12}).fit(X, y)
    response = model.module_[0].weight.detach().numpy() @ metric.directions.numpy()
    assert (np.abs(response).max() < 1e-6) == quiet


@pytest.mark.parametrize("kind", [SenSeIClassifier, SenSRClassifier])
def test_versions_are_followed_through_mini_batches(kind):
    """CandidateSearch in an estimator, which sorts its rows: versions at distance 0 end up with nearly equal scores."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    turned = X * np.float32([-1, 1, 1])
    search = CandidateSearch(Variations(np.stack([X, turned], axis=1), np.arange(300)))
    strength = {"rho": 20.0} if kind is SenSeIClassifier else {}
    common = {"steps": 200, "batch_size": 64, "lr": 0.01, "random_state": 0, "bounds": (-9.0, 9.0)}
    fair = kind(FairMetric.euclidean(3), eps=0.0, search=search, **strength, **common).fit(X, y)
    gap = np.abs(fair.predict_proba(X) - fair.predict_proba(turned)).max(1).mean()
    plain = SenSeIClassifier(FairMetric.euclidean(3), rho=0.0, **common).fit(X, y)
    assert gap < 0.3 * np.abs(plain.predict_proba(X) - plain.predict_proba(turned)).max(1).mean()


class TestSeveralNumbers:
    """A regressor of several numbers at once, as scikit-learn's MLPRegressor is."""

    RNG = np.random.default_rng(0)
    X = RNG.normal(size=(400, 4)).astype(np.float32)
    Y = np.c_[1000 * X[:, 0] + 500 * X[:, 1] + 7000, X[:, 2] - 0.5 * X[:, 3]]
    SMALL: ClassVar = {"steps": 300, "hidden": (30,), "random_state": 0, "lr": 0.01}

    def test_each_is_predicted_in_its_own_unit(self):
        model = SenSeIRegressor(FairMetric.euclidean(4), rho=0.0, **self.SMALL).fit(self.X, self.Y)
        predicted = model.predict(self.X)
        assert predicted.shape == self.Y.shape
        assert r2_score(self.Y, predicted, multioutput="raw_values").min() > 0.98
        frame = model.fit(pd.DataFrame(self.X), pd.DataFrame(self.Y, columns=["wage", "score"]))
        np.testing.assert_allclose(frame.predict(pd.DataFrame(self.X)), predicted, rtol=1e-5)

    def test_each_is_made_fair(self):
        """Column 0 may not matter to the first number, nor column 2 to the second."""
        metric = FairMetric(torch.eye(4)[:, [0, 2]])
        fair = SenSeIRegressor(metric, rho=20.0, **self.SMALL).fit(self.X, self.Y)
        moved = self.X.copy()
        moved[:, [0, 2]] += 1.0
        change = np.abs(fair.predict(moved) - fair.predict(self.X)).mean(0) / self.Y.std(0)
        assert (change < 0.1).all()
        assert r2_score(self.Y[:, 0], fair.predict(self.X)[:, 0]) > 0.1  # column 1 is left

    def test_one_column_is_one_number(self):
        with pytest.warns(DataConversionWarning):
            model = SenSeIRegressor(FairMetric.euclidean(4), **self.SMALL | {"steps": 5}).fit(self.X, self.Y[:, :1])
        assert model.predict(self.X).shape == (400,)

    def test_held_out_rows_weights_and_going_on(self):
        settings = self.SMALL | {"steps": 60, "validation_fraction": 0.2, "warm_start": True}
        model = SenSeIRegressor(FairMetric(torch.eye(4)[:, :1]), rho=1.0, **settings)
        weight = (np.arange(400) % 4 != 0).astype(float)
        first = model.fit(self.X, self.Y, sample_weight=weight).score(self.X, self.Y)
        assert model.fit(self.X, self.Y, sample_weight=weight).score(self.X, self.Y) > first - 0.05

    @pytest.mark.parametrize("kind", [SenSeIRegressor, MLPRegressor])
    def test_it_is_judged_number_by_number(self, kind):
        metric = FairMetric(torch.eye(4)[:, :1])
        model = kind(metric, **self.SMALL) if kind is SenSeIRegressor else kind(hidden_layer_sizes=(8,), max_iter=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self.X, self.Y)
        people, about = self.X[:30], {"fair_metric": metric, "eps": 0.01, "bounds": (-5.0, 5.0)}
        with pytest.raises(ValueError, match=r"predicts 2 numbers .* each alone"):
            audit(model, people, **about)
        if kind is SenSeIRegressor:
            alone = [audit(lambda x, k=k: model.module_(x)[:, k : k + 1], people, **about) for k in (0, 1)]
            assert alone[0].r_low > 0
