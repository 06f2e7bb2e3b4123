"""SenSeI's method on numbers: least squares when rho is zero, indifferent along the directions when it is large."""

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler
from torch import nn

from evenhand import SenSeIRegressor, fair_metrics

X, Y = load_diabetes(return_X_y=True, as_frame=True)
X[:] = StandardScaler().fit_transform(X)
OPTIONS = {"hidden": (), "steps": 600, "batch_size": 200, "lr": 0.02, "random_state": 0}


def test_rho_zero_is_least_squares():
    model = SenSeIRegressor(rho=0, **OPTIONS).fit(X, Y)
    exact = LinearRegression().fit(X, Y)
    assert model.score(X, Y) > exact.score(X, Y) - 0.005


def test_sex_stops_to_matter_in_the_original_unit():
    metric = fair_metrics.from_columns(X, ["sex"])
    plain = SenSeIRegressor(metric, rho=0, **OPTIONS).fit(X, Y)
    fair = SenSeIRegressor(metric, rho=50, eps=0.001, **OPTIONS).fit(X, Y)
    low, high = X.assign(sex=X.sex.min()), X.assign(sex=X.sex.max())

    def gap(model):
        return np.abs(model.predict(low) - model.predict(high)).mean()

    assert gap(plain) > 15  # units of disease progression
    assert gap(fair) < 2
    assert fair.score(X, Y) > plain.score(X, Y) - 0.05


def test_module_gives_the_original_unit_for_a_module_of_ones_own():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(10, 1)

        def forward(self, x):
            return self.layer(x)

    model = SenSeIRegressor(module=Own(), **OPTIONS | {"steps": 300}).fit(X, Y)
    with torch.no_grad():
        direct = model.module_(torch.tensor(X.to_numpy(), dtype=torch.float32)).numpy()[:, 0]
    np.testing.assert_allclose(direct, model.predict(X), rtol=1e-5)
    assert abs(direct.mean() - Y.mean()) < 10
