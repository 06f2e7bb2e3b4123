"""Numbers in their own unit: there and back, also where float32 is too coarse for them."""

import numpy as np
import pytest
import torch
from torch import nn

from evenhand import files
from evenhand.estimators import SenSeIRegressor
from evenhand.estimators.targets import Moments, Targets
from evenhand.fair_metrics import FairMetric

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)).astype(np.float32)
SMALL = {"hidden": (6,), "steps": 40, "batch_size": 50, "lr": 0.02, "random_state": 0}
METRIC = FairMetric([[1.0], [0.5], [0.0]])
FAR = 1e8 + 2 * RNG.random(200)  # a spread of one, where neighbouring float32 numbers are eight apart


@pytest.mark.parametrize("module", [None, nn.Sequential(nn.Linear(3, 6), nn.Dropout(0.0), nn.Linear(6, 1))])
@pytest.mark.parametrize("way", ["fit", "fit_stream"])
def test_numbers_far_from_zero_are_predicted_as_well_as_those_near_it(way, module, tmp_path):
    x, settings = np.float32(FAR - 1e8)[:, None] * X[:1], SMALL | {"rho": 0.0, "module": module}

    def fitted(y):
        model = SenSeIRegressor(METRIC, **settings)
        return model.fit(x, y) if way == "fit" else model.fit_stream([(x[:70], y[:70]), (x[70:], y[70:])])

    near, far = fitted(FAR - 1e8), fitted(FAR)
    np.testing.assert_allclose(far.predict(x) - 1e8, near.predict(x), atol=1e-4)
    assert far.score(x, FAR) == pytest.approx(near.score(x, FAR - 1e8), abs=1e-4)
    assert far.score(x, FAR) > 0.2
    if module is None:
        files.save(far, tmp_path / "far.model")
        np.testing.assert_array_equal(files.load(tmp_path / "far.model").predict(x), far.predict(x))
    layers = len(far.module_)
    far.set_params(warm_start=True, steps=1, lr=1e-9).fit(x, FAR)  # goes on where it was
    assert len(far.module_) == layers
    assert far.score(x, FAR) == pytest.approx(near.score(x, FAR - 1e8), abs=1e-3)


def test_a_sum_of_squares_does_not_cancel_over_batches():
    seen = Moments()
    for part in np.array_split(FAR, 7):
        seen = seen.with_values(part)
    assert seen.n == 200
    assert seen.mean == pytest.approx(FAR.mean(), rel=1e-15)
    assert seen.scale == pytest.approx(FAR.std(), rel=1e-9)
    assert Moments().with_values(np.full(3, 0.1)).scale == 1.0


@pytest.mark.parametrize("module", [nn.Sequential(nn.Linear(3, 1)), nn.Sequential(nn.Linear(3, 1), nn.Tanh())])
def test_there_and_back_between_units(module):
    x = torch.randn(5, 3)
    targets = Targets(1, np.array([7.0]), np.array([-3.0]))
    wanted = 7 * module(x).detach() - 3
    in_unit = targets.after(module)
    torch.testing.assert_close(in_unit(x).detach(), wanted)
    torch.testing.assert_close(targets.before(in_unit)(x).detach(), (wanted + 3) / 7)


@pytest.mark.parametrize("module", [nn.Sequential(nn.Linear(3, 2)), nn.Sequential(nn.Linear(3, 2), nn.Tanh())])
def test_there_and_back_with_a_unit_for_each_number(module):
    x = torch.randn(5, 3)
    targets = Targets(2, np.array([7.0, 0.5]), np.array([-3.0, 1.0]))
    wanted = module(x).detach() * torch.tensor([7.0, 0.5]) + torch.tensor([-3.0, 1.0])
    in_units = targets.after(module)
    torch.testing.assert_close(in_units(x).detach(), wanted)
    torch.testing.assert_close(targets.after(targets.before(in_units))(x).detach(), wanted)


def test_nobody_changes_nothing():
    """Classes have no moments, and a rank may have no rows."""
    assert Moments().joined(Moments()) == Moments()
    some = Moments().with_values(np.array([1.0, 3.0]))
    assert some.with_values(np.empty(0)) == some.joined(Moments()) == Moments().joined(some) == some
