"""SenSR removes the dependence on a free direction."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from evenhand import ERMClassifier, SenSeIRegressor, SenSRClassifier, fair_metrics
from evenhand.estimators import SenSRRegressor


def test_the_sensitive_feature_stops_to_matter():
    rng = np.random.default_rng(0)
    skill, group = rng.normal(size=1500), rng.integers(0, 2, 1500)
    X = pd.DataFrame({"skill": skill, "group": group.astype(float)})
    y = (skill + 1.5 * (group - 0.5) + 0.3 * rng.normal(size=1500) > 0).astype(int)
    options = {"hidden": (16,), "steps": 300, "batch_size": 200, "lr": 0.01, "random_state": 0}
    plain = ERMClassifier(**options).fit(X, y)
    fair = SenSRClassifier(fair_metrics.from_columns(X, ["group"]), eps=0.01, **options).fit(X, y)

    def flips(model):
        return np.mean(model.predict(X.assign(group=0.0)) != model.predict(X.assign(group=1.0)))

    assert flips(plain) > 0.3
    assert flips(fair) < 0.1
    assert {"loss", "lam", "d_x"} <= set(fair.history_.columns)


def test_regression_on_real_data():
    """Diabetes: worst cases in sex cost squared error, so predictions stop to depend on it."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X[:] = StandardScaler().fit_transform(X)
    metric = fair_metrics.from_columns(X, ["sex"])
    options = {"hidden": (), "steps": 300, "batch_size": 200, "lr": 0.03, "random_state": 0}
    plain = SenSeIRegressor(metric, rho=0, **options).fit(X, y)
    fair = SenSRRegressor(metric, eps=0.0, **options).fit(X, y)
    low, high = X.assign(sex=X.sex.min()), X.assign(sex=X.sex.max())
    gaps = [np.abs(model.predict(low) - model.predict(high)).mean() for model in (plain, fair)]
    assert gaps[1] < gaps[0] / 2
    assert fair.score(X, y) > 0.4
