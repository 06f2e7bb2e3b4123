"""Defined behaviour at the extremes: nothing that is not a number reaches a user in silence."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from torch import nn

from evenhand import (
    ERMClassifier,
    FairMetric,
    FairRegularizer,
    GradientSearch,
    SenSeIClassifier,
    SenSeIRegressor,
    SenSRClassifier,
    audit,
    ratio_rule,
)
from evenhand.objectives import ERM, SenSeI
from evenhand.training.loop import TrainingDiverged, train

RNG = np.random.default_rng(0)
X = RNG.random((80, 4)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] > 1).astype(int)
FIRST = FairMetric(torch.eye(4)[:, :1])


def net(d=4, k=2, hidden=8):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, k))


def fitted(kind=SenSeIClassifier, x=X, y=Y, **settings):
    if kind is not ERMClassifier:
        settings = {"fair_metric": FairMetric(torch.eye(x.shape[1])[:, :1])} | settings
    return kind(**({"hidden": (8,), "steps": 25, "batch_size": 40, "random_state": 0} | settings)).fit(x, y)


def finite(estimator, x=X):
    return np.isfinite(estimator.predict_proba(x)).all() and np.isfinite(estimator.history_.to_numpy()).all()


def test_float32_and_float64_agree():
    def value(dtype):
        own = FairMetric(torch.eye(4, dtype=dtype)[:, :1])
        generator = torch.Generator().manual_seed(0)  # gives the same start in both precisions
        fair = FairRegularizer(own, eps=0.1, bounds=(0.0, 1.0), generator=generator).to(dtype)
        model = net().to(dtype)
        x = torch.from_numpy(X).to(dtype)
        value = fair(model, x) + nn.functional.cross_entropy(model(x), torch.from_numpy(Y))
        value.backward()
        return [value.detach().double(), *(p.grad.double() for p in model.parameters()), fair.lam.double()]

    for single, double in zip(value(torch.float32), value(torch.float64)):
        assert torch.allclose(single, double, rtol=1e-4, atol=1e-5)


def test_metrics_agree_in_both_precisions():
    directions, x, z = RNG.normal(size=(6, 2)), RNG.normal(size=(5, 6)), RNG.normal(size=(5, 6))
    double = FairMetric(torch.as_tensor(directions))
    single = FairMetric(torch.as_tensor(directions, dtype=torch.float32))
    assert double(x, z).dtype == torch.float64
    assert torch.allclose(single(x, z).double(), double(x, z), rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1.0, 1e4, 1e8])
def test_any_scale_of_the_features_is_trained_or_reported(scale):
    try:
        estimator = fitted(x=(X * scale).astype(np.float32))
    except TrainingDiverged as error:
        assert "scale the features" in str(error)  # noqa: PT017
    else:
        assert finite(estimator, (X * scale).astype(np.float32))


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_distances_scale_as_squares(scale):
    a, b = torch.from_numpy(X[:40]).double(), torch.from_numpy(X[40:]).double()
    metric = FairMetric(torch.eye(4, dtype=torch.float64)[:, :1])
    assert torch.allclose(metric(a * scale, b * scale), metric(a, b) * scale**2, rtol=1e-10)


def test_a_constant_model_is_fair_and_stays_finite():
    model = net()
    nn.init.zeros_(model[2].weight)
    fair = FairRegularizer(FIRST, eps=0.1, bounds=(0.0, 1.0)).eval()
    assert fair(model, torch.from_numpy(X)).item() == pytest.approx(0.1)  # lam * eps, nothing moves
    assert audit(model, X, FIRST, bounds=(0.0, 1.0)).r_low == pytest.approx(0.0, abs=1e-9)


def test_perfectly_separable_data_stay_finite():
    assert finite(fitted(ERMClassifier, y=(X[:, 0] > 0.5).astype(int), steps=300, lr=0.1))


def test_a_single_feature():
    assert finite(fitted(x=X[:, :1], y=(X[:, 0] > 0.5).astype(int)), X[:, :1])
    assert finite(fitted(x=X[:, :1], y=(X[:, 0] > 0.5).astype(int), fair_metric=None), X[:, :1])


def test_as_many_directions_as_features_make_everybody_alike():
    everything = FairMetric(torch.eye(4))
    assert everything(X[:5], X[5:10]).abs().max() == 0
    spread = [
        np.ptp(fitted(fair_metric=everything, rho=rho, steps=150, lr=0.02).predict_proba(X)[:, 0]) for rho in (0, 50)
    ]
    assert spread[1] < 0.2 * spread[0]


def test_rho_zero_is_plain_training():
    plain, fair = fitted(ERMClassifier), fitted(rho=0.0, quiet_start=False)
    assert np.array_equal(plain.predict_proba(X), fair.predict_proba(X))


@pytest.mark.parametrize("kind", [SenSeIClassifier, SenSRClassifier])
def test_eps_zero_allows_only_moves_that_cost_nothing(kind):
    estimator = fitted(kind, eps=0.0)
    assert finite(estimator)
    assert (estimator.history_["d_x"] == 0).all()
    assert finite(fitted(kind, eps=0.0, lam_rule=ratio_rule()))
    assert finite(fitted(kind, eps=0))  # as an integer


def test_huge_rho_gives_a_fair_model_or_a_report():
    try:
        estimator = fitted(rho=1e6, steps=100)
    except TrainingDiverged as error:
        assert "rho" in str(error)  # noqa: PT017
        return
    assert finite(estimator)
    flipped = X.copy()
    flipped[:, 0] = 1 - flipped[:, 0]
    assert np.abs(estimator.predict_proba(X) - estimator.predict_proba(flipped)).max() < 0.05


@pytest.mark.parametrize("kind", [ERMClassifier, SenSeIClassifier, SenSRClassifier])
def test_batches_of_one_and_fewer_than_the_classes(kind):
    assert finite(fitted(kind, batch_size=1))
    many = fitted(kind, y=np.arange(80) % 7, batch_size=3)
    assert finite(many)
    assert many.predict_proba(X).shape == (80, 7)


def test_two_rows_are_enough():
    assert finite(fitted(x=X[:2], y=np.array([0, 1])), X[:2])


def test_a_constant_target_and_constant_columns():
    estimator = SenSeIRegressor(FIRST, hidden=(4,), steps=5, random_state=0).fit(X, np.full(80, 3.0))
    assert np.isfinite(estimator.predict(X)).all()
    assert finite(fitted(x=np.ones_like(X)), np.ones_like(X))


def test_equal_rows_are_predicted_equally_whoever_else_is_there():
    estimator = fitted()
    alone = np.concatenate([estimator.predict_proba(X[i : i + 1]) for i in range(5)])
    assert np.allclose(alone, estimator.predict_proba(X)[:5], rtol=1e-12)


def test_a_nan_objective_stops_and_restores_the_last_good_weights():
    model = net()
    before = [p.clone() for p in model.parameters()]
    objective = ERM(loss=lambda h, y: h[:, 0] * float("nan"))
    with pytest.raises(TrainingDiverged, match="became nan at step 1 of 5"):
        train(model, objective, torch.from_numpy(X), torch.from_numpy(Y), steps=5, batch_size=8)
    assert all(torch.equal(p, q) for p, q in zip(before, model.parameters()))


def test_no_nan_in_eval_mode_either():
    """A search on a model that overflows keeps finite moves; the value says inf or nan rather than a small number."""
    model = net()
    with torch.no_grad():
        model[2].weight.mul_(1e30)
    value = FairRegularizer(FIRST, bounds=(0.0, 1.0)).eval()(model, torch.from_numpy(X))
    assert not value.isfinite() or value > 1e20


def test_the_same_seed_gives_the_same_bits_in_a_fresh_process():
    program = (
        "import numpy as np, hashlib; from evenhand import SenSeIClassifier, FairMetric; import torch;"
        "x = np.random.default_rng(0).random((80, 4)).astype(np.float32); y = (x[:, 0] + x[:, 1] > 1).astype(int);"
        "m = SenSeIClassifier(FairMetric(torch.eye(4)[:, :1]), hidden=(8,), steps=25, batch_size=40, random_state=0);"
        "print(hashlib.sha256(m.fit(x, y).predict_proba(x).tobytes()).hexdigest())"
    )
    import hashlib

    here = hashlib.sha256(fitted().predict_proba(X).tobytes()).hexdigest()
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert here == there


@pytest.fixture
def one_thread():
    """The number of torch's threads belongs to the process, so fits that change it would disturb each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_estimators_fitted_in_threads_at_once_are_those_fitted_alone_to_the_bit(one_thread):
    alone = [fitted(random_state=seed).predict_proba(X) for seed in range(3)]
    found: dict[int, np.ndarray] = {}

    def work(seed):
        found[seed] = fitted(random_state=seed).predict_proba(X)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 1, 2]
    for seed in range(3):
        assert np.array_equal(alone[seed], found[seed])


def test_estimators_fitted_in_processes_at_once_are_those_fitted_alone_to_the_bit(one_thread):
    joblib = pytest.importorskip("joblib")
    alone = [fitted(random_state=seed).predict_proba(X) for seed in range(2)]
    found = joblib.Parallel(n_jobs=2)(
        joblib.delayed(SenSeIClassifier(FIRST, hidden=(8,), steps=25, batch_size=40, random_state=seed).fit)(X, Y)
        for seed in range(2)
    )
    for seed in range(2):
        assert np.array_equal(alone[seed], found[seed].predict_proba(X))


def trained_on(threads):
    """Large enough to be shared among threads (see train.threads_for); in float64, where rounding stays small."""
    torch.set_num_threads(threads)
    x = torch.rand(400, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    model = net(64, hidden=700).double()
    metric = FairMetric(torch.eye(64, dtype=torch.float64)[:, :2])
    own, search = torch.Generator().manual_seed(1), GradientSearch(subspace_steps=3, full_steps=2)
    fair = FairRegularizer(metric, bounds=(0.0, 1.0), search=search, generator=own).double()
    generator = torch.Generator().manual_seed(2)
    train(model, SenSeI(fair, 5.0), x, (x[:, 0] > 0.5).long(), steps=4, batch_size=400, generator=generator)
    return torch.cat([model(x).flatten(), fair.lam.flatten()]).detach()


def test_another_number_of_threads_changes_nothing_but_the_rounding(one_thread):
    one, again, two = trained_on(1), trained_on(1), trained_on(2)
    assert torch.equal(one, again)
    assert torch.allclose(one, two, atol=1e-6)


def test_a_regularizer_of_nobody_is_refused_or_finite():
    fair = FairRegularizer(FIRST, bounds=(0.0, 1.0))
    lam = fair.lam.clone()
    value = fair(net(), torch.zeros(0, 4))
    assert value.isfinite()
    assert torch.equal(fair.lam, lam)
    objective = SenSeI(fair, 1.0)
    assert objective.rho == 1.0
