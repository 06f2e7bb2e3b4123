"""Laws that hold for any input: metrics, search, regularizer, scores, certificates."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from evenhand import FairMetric, FairRegularizer, GradientSearch, Variations, audit, certify, evaluation
from evenhand.output_distances import mean_squared_logits
from evenhand.search import CandidateSearch, DistanceGain

seeds = st.integers(0, 2**31 - 1)
few = settings(max_examples=25, deadline=None)
TIGHT = {"rtol": 1e-9, "atol": 1e-9}


def numbers(seed):
    return torch.Generator().manual_seed(seed)


def normal(g, *shape):
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def net(g, d, k=2, hidden=6):
    model = nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, k)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(normal(g, *p.shape))
    return model


@st.composite
def metrics(draw):
    """A metric with 0 < k <= d directions, or one from a sigma of any rank; and a generator for more."""
    g, d = numbers(draw(seeds)), draw(st.integers(1, 6))
    if draw(st.booleans()):
        return FairMetric(normal(g, d, draw(st.integers(1, d)))), g
    factor = normal(g, draw(st.integers(1, d)), d)
    return FairMetric(sigma=factor.T @ factor), g


# d_X


@few
@given(metrics())
def test_sigma_is_psd_and_directions_are_orthonormal_and_free(case):
    metric, g = case
    assert torch.linalg.eigvalsh(metric.sigma).min() > -1e-9
    k = metric.directions.shape[1]
    assert torch.allclose(metric.directions.T @ metric.directions, torch.eye(k, dtype=torch.float64), **TIGHT)
    x = normal(g, 4, metric.d)
    assert metric(x, x + normal(g, 4, k) @ metric.directions.T).max() < 1e-9 if k else True


@few
@given(metrics(), st.floats(1e-3, 1e3))
def test_distances_are_symmetric_never_negative_and_scale_as_squares(case, scale):
    metric, g = case
    x, z = normal(g, 5, metric.d), normal(g, 5, metric.d)
    assert (metric(x, z) >= 0).all()
    assert torch.equal(metric(x, x), torch.zeros(5, dtype=torch.float64))
    assert torch.allclose(metric(x, z), metric(z, x), **TIGHT)
    assert torch.allclose(metric.cost(scale * (x - z)), scale**2 * metric(x, z), rtol=1e-9)
    assert torch.allclose(metric.pairwise(x, z).diagonal(), metric(x, z), rtol=1e-7, atol=1e-9)
    root = metric.pairwise(x, torch.cat([x, z])).sqrt()
    assert (root[:, 1] <= root[:, 0] + root[0, 1] + 1e-7).all()  # the triangle inequality of its root


@few
@given(metrics())
def test_distances_follow_the_rows(case):
    metric, g = case
    x, z = normal(g, 6, metric.d), normal(g, 6, metric.d)
    order = torch.randperm(6, generator=g)
    assert torch.allclose(metric(x[order], z[order]), metric(x, z)[order], **TIGHT)


# search


@few
@given(metrics(), st.floats(0, 10), st.booleans(), st.integers(1, 2))
def test_a_search_never_ends_below_its_start_and_stays_in_its_box(case, lam, bounded, starts):
    metric, g = case
    x, model = torch.rand(5, metric.d, generator=g, dtype=torch.float64), net(g, metric.d)
    gain = DistanceGain(model(x).detach())
    found = GradientSearch(starts=starts)(model, gain, x, metric, lam, (0.0, 1.0) if bounded else None, g)
    assert (found.gain - lam * found.d_x >= -1e-9).all()
    assert torch.allclose(found.gain, gain(model(found.x_worst)), rtol=1e-6, atol=1e-6)
    assert torch.allclose(found.d_x, metric(x, found.x_worst), rtol=1e-6, atol=1e-6)
    if bounded:
        assert ((found.x_worst >= 0) & (found.x_worst <= 1)).all()


@few
@given(metrics())
def test_an_infinite_price_buys_nothing(case):
    metric, g = case
    x, model = torch.rand(5, metric.d, generator=g, dtype=torch.float64), net(g, metric.d)
    found = GradientSearch()(model, DistanceGain(model(x).detach()), x, metric, float("inf"), (0.0, 1.0), g)
    assert found.d_x.max() == 0
    assert metric(x, found.x_worst).max() < 1e-9


@few
@given(metrics())
def test_fast_and_plain_searches_agree(case):
    metric, g = case
    x, model = torch.rand(5, metric.d, generator=g, dtype=torch.float64), net(g, metric.d)
    gain, seed = DistanceGain(model(x).detach()), int(torch.randint(2**31, (), generator=g))
    fast, plain = (
        GradientSearch(fast=fast)(model, gain, x, metric, 0.5, (0.0, 1.0), numbers(seed)) for fast in (True, False)
    )
    for found in (fast, plain):  # what is said is what the model gives there
        torch.testing.assert_close(found.gain, mean_squared_logits(model(x), model(found.x_worst)), **TIGHT)
    same = torch.isclose(fast.gain - 0.5 * fast.d_x, plain.gain - 0.5 * plain.d_x, rtol=1e-5, atol=1e-7)
    assert same.sum() >= 4  # where a step ends on a kink, rounding may send one person to another summit


@few
@given(metrics(), st.integers(2, 4))
def test_candidate_search_is_the_exact_maximum_and_follows_the_rows(case, m):
    metric, g = case
    x, model = normal(g, 4, metric.d), net(g, metric.d)
    versions = torch.cat([x[:, None], normal(g, 4, m - 1, metric.d)], dim=1)
    search = CandidateSearch(Variations(versions.numpy(), rows=range(4)), same_individual=False)
    found = search(model, DistanceGain(model(x).detach()), x, metric, 0.3)
    value = torch.stack(
        [mean_squared_logits(model(x), model(versions[:, j])) - 0.3 * metric(x, versions[:, j]) for j in range(m)]
    )
    assert torch.allclose(found.gain - 0.3 * found.d_x, value.max(dim=0).values, **TIGHT)


# regularizer


@few
@given(metrics(), st.floats(0, 2), st.floats(0, 5))
def test_the_regularizer_is_never_negative_and_zero_for_a_constant_model(case, eps, lam):
    metric, g = case
    x, model = torch.rand(5, metric.d, generator=g, dtype=torch.float64), net(g, metric.d)
    fair = FairRegularizer(metric, eps=eps, bounds=(0.0, 1.0), lam=lam, generator=g).double().eval()
    assert fair(model, x) >= -1e-9
    nn.init.zeros_(model[2].weight)
    assert fair(model, x).item() == pytest.approx(lam * eps, rel=1e-6, abs=1e-9)  # lam is float32


@few
@given(metrics(), st.floats(0.1, 10))
def test_the_regularizer_scales_with_the_square_of_the_outputs(case, scale):
    """d_Y is squared: c h at price c^2 lam has c^2 the value, for the same moves."""
    metric, g = case
    x, model = torch.rand(5, metric.d, generator=g, dtype=torch.float64), net(g, metric.d)
    search, seed = GradientSearch(full_steps=0), int(torch.randint(2**31, (), generator=g))

    def value(lam):
        fair = FairRegularizer(metric, eps=0.1, search=search, lam=lam, generator=numbers(seed)).double().eval()
        return fair(model, x).item()

    once = value(1.0)
    with torch.no_grad():
        model[2].weight.mul_(scale)
        model[2].bias.mul_(scale)
    assert value(scale**2) == pytest.approx(scale**2 * once, rel=1e-5, abs=1e-9)  # Adam's steps know no scale


@few
@given(metrics())
def test_everybody_twice_is_the_same_mean(case):
    metric, g = case
    x, model = torch.rand(4, metric.d, generator=g, dtype=torch.float64), net(g, metric.d)
    versions = torch.stack([x, torch.rand(4, metric.d, generator=g, dtype=torch.float64)], dim=1)
    values = []
    for times in (1, 2):
        repeated = Variations(versions.repeat(times, 1, 1).numpy(), rows=range(4 * times))
        fair = FairRegularizer(metric, search=CandidateSearch(repeated, same_individual=False)).double().eval()
        values.append(fair(model, x.repeat(times, 1)).item())
    assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-12)


# scores

labels = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=30)


@few
@given(labels, seeds)
def test_scores_do_not_depend_on_the_order_or_on_duplicates(rows, seed):
    y, predicted, group = (np.array(column) for column in zip(*rows))
    order = np.random.default_rng(seed).permutation(len(y))
    accuracy = evaluation.balanced_accuracy(y, predicted)
    assert 0 <= accuracy <= 1
    assert evaluation.balanced_accuracy(y[order], predicted[order]) == pytest.approx(accuracy)
    assert evaluation.balanced_accuracy(np.tile(y, 2), np.tile(predicted, 2)) == pytest.approx(accuracy)
    gaps = evaluation.tpr_gaps(y, predicted, group)
    again = evaluation.tpr_gaps(np.tile(y, 2)[::-1], np.tile(predicted, 2)[::-1], np.tile(group, 2)[::-1])
    assert again.rms == pytest.approx(gaps.rms, nan_ok=True)
    assert not gaps.max < gaps.abs - 1e-12
    assert not gaps.rms < gaps.abs - 1e-12


@few
@given(st.integers(1, 8), st.integers(2, 5), seeds)
def test_counterfactual_scores_are_bounded_and_zero_for_equal_versions(g, m, seed):
    p = np.random.default_rng(seed).random((g, m))
    assert 0 <= evaluation.ctf_std(p) <= 0.5
    assert evaluation.ctf_std(p[::-1, ::-1]) == pytest.approx(evaluation.ctf_std(p))
    same = np.repeat(p[:, :1], m, axis=1)
    assert evaluation.ctf_std(same) == pytest.approx(0, abs=1e-12)
    assert evaluation.prediction_consistency(same > 0.5) == 1
    assert 0 <= evaluation.prediction_consistency(p > 0.5) <= 1


# audit and certificate


@settings(max_examples=3, deadline=None)
@given(seeds, st.integers(1, 2))
def test_lower_bounds_never_exceed_upper_bounds(seed, k):
    g = numbers(seed)
    d = 3
    model, metric = net(g, d, hidden=4), FairMetric(normal(g, d, k))
    x = torch.rand(60, d, generator=g, dtype=torch.float64).numpy()
    found = audit(model, x, metric, eps=0.05, bounds=(0.0, 1.0))
    proved = certify(model, x, metric, eps=0.05, bounds=(0.0, 1.0), tune_steps=6, tune_rows=6, rounds=1)
    assert found.lower <= found.r_low + 1e-9
    assert proved.r_low <= proved.r_high + 1e-9
    assert found.r_low >= 0
    assert (found.d_y >= -1e-9).all()


@settings(max_examples=4, deadline=None)
@given(seeds)
def test_an_audit_grows_with_eps_and_scales_with_the_outputs(seed):
    g = numbers(seed)
    model, metric = net(g, 3, hidden=4), FairMetric(normal(g, 3, 1))
    x = torch.rand(15, 3, generator=g, dtype=torch.float64).numpy()
    small, large = (audit(model, x, metric, eps=eps, bounds=(0.0, 1.0)).r_low for eps in (0.0, 0.2))
    assert small <= large + 1e-6 + 0.02 * abs(large)  # two searches, each a lower bound
    nn.init.zeros_(model[2].weight)
    assert audit(model, x, metric, eps=0.1, bounds=(0.0, 1.0)).r_low == pytest.approx(0, abs=1e-9)
