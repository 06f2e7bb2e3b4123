"""Fine-tuning for the certificate, by itself and in an estimator."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from evenhand.bounds.quadratic_dual import Multipliers
from evenhand.certify.certify import certify
from evenhand.domain import Box
from evenhand.estimators import SenSeIClassifier
from evenhand.fair_metrics.metric import FairMetric
from evenhand.training import certified
from evenhand.training.certified import certified_fine_tune

METRIC = FairMetric(torch.tensor([[1.0], [0.0], [0.0]]))
BOX = Box(-torch.ones(3), torch.ones(3), binary=[0])


def data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(n, 3, generator=g) - 1
    x[:, 0] = x[:, 0].sign()
    return x, ((x[:, 1] + 0.7 * x[:, 0]) > 0).long()


def plain_net():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 2))
    x, y = data(400, 0)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
    return model


@pytest.fixture
def shorter(monkeypatch):
    """Estimators fine-tune for fewer steps."""
    monkeypatch.setattr(certified, "certified_fine_tune", partial(certified_fine_tune, steps=60, lr=1e-2))


def _odd(m):
    return Multipliers(m.lam, [torch.cat([e, e]) for e in m.eta], m.gam, m.th)


def test_fine_tuning_lowers_the_certified_bound_and_keeps_some_accuracy():
    model = plain_net()
    x, y = data(600, 0)
    held_out, _ = data(40, 2)
    tuning, _ = data(20, 3)
    quick = {"tune_steps": 20, "tune_rows": 10, "rounds": 3}
    before = certify(model, held_out, METRIC, 0.01, BOX, x_tune=tuning, **quick)
    multipliers = certified_fine_tune(model, x, y, METRIC, 0.01, BOX, rho_c=1.0, steps=80, lr=1e-2)
    after = certify(model, held_out, METRIC, 0.01, BOX, x_tune=tuning, **quick)
    assert after.r_high < 0.3 * before.r_high
    # from where training left off the tuning ends no higher, and the lower bound stays below
    warm = certify(model, held_out, METRIC, 0.01, BOX, x_tune=tuning, start=multipliers, **quick)
    assert after.r_low <= warm.r_high <= 1.1 * after.r_high
    # multipliers of a net of another shape are left alone
    other = certify(nn.Linear(3, 2), held_out[:20], METRIC, 0.01, BOX, x_tune=tuning, start=_odd(multipliers), **quick)
    assert other.r_low <= other.r_high
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).float().mean().item()
    assert accuracy > 0.6


def test_the_estimator_fine_tunes_when_asked(shorter):
    x, y = data(300, 0)
    settings = {"hidden": (6,), "rho": 1.0, "eps": 0.01, "bounds": BOX, "random_state": 0, "steps": 60, "lr": 1e-2}
    plain = SenSeIClassifier(METRIC, **settings).fit(x.numpy(), y.numpy())
    tuned = SenSeIClassifier(METRIC, **settings, certified=5.0).fit(x.numpy(), y.numpy())
    held_out, tuning = data(30, 2)[0], data(20, 3)[0]
    given = {"eps": 0.01, "bounds": BOX, "x_tune": tuning, "tune_steps": 12, "tune_rows": 8, "rounds": 2}
    assert certify(tuned, held_out, **given).r_high < certify(plain, held_out, **given).r_high
    with pytest.raises(ValueError, match="certified=None"):
        SenSeIClassifier(METRIC, **{**settings, "bounds": None}, certified=1.0).fit(x.numpy(), y.numpy())
    tuned.set_params(certified=None).fit(x.numpy(), y.numpy())
    assert not hasattr(tuned, "multipliers_")


def test_a_stream_is_fine_tuned_too(shorter):
    x, y = data(300, 0)
    settings = {"hidden": (6,), "rho": 1.0, "eps": 0.01, "bounds": BOX, "random_state": 0, "steps": 60, "lr": 1e-2}
    batches = [(x[i : i + 60].numpy(), y[i : i + 60].numpy()) for i in range(0, 300, 60)]
    plain = SenSeIClassifier(METRIC, **settings).fit_stream(batches)
    tuned = SenSeIClassifier(METRIC, **settings, certified=5.0).fit_stream(batches)
    held_out, tuning = data(30, 2)[0], data(20, 3)[0]
    given = {"eps": 0.01, "bounds": BOX, "x_tune": tuning, "tune_steps": 12, "tune_rows": 8, "rounds": 2}
    assert tuned.multipliers_.lam > 0
    assert certify(tuned, held_out, **given).r_high < certify(plain, held_out, **given).r_high


def test_fine_tuning_that_was_stopped_goes_on_to_the_same_bits(shorter, tmp_path):
    x, y = data(120, 0)
    settings = {"hidden": (4,), "bounds": BOX, "random_state": 0, "steps": 10, "certified": 1.0}
    whole = SenSeIClassifier(METRIC, **settings).fit(x.numpy(), y.numpy())

    class Stopped(Exception):
        pass

    def stop(step, steps, record):
        if steps == 60 and step > 30:
            raise Stopped

    first = SenSeIClassifier(METRIC, **settings, callbacks=[stop]).checkpoint_to(tmp_path / "run")
    with pytest.raises(Stopped):
        first.fit(x.numpy(), y.numpy())
    assert list(tmp_path.glob("run.certified*"))
    again = SenSeIClassifier(METRIC, **settings).checkpoint_to(tmp_path / "run").fit(x.numpy(), y.numpy())
    np.testing.assert_array_equal(again.decision_function(x.numpy()), whole.decision_function(x.numpy()))
