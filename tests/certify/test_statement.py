"""Between the bound and the sentence: who is counted, in which range, at which error, and what is checked."""

import copy
import itertools
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline
from torch import nn

from certify.models import BOX, EPS, METRIC, A, C, linear_model, people
from evenhand.bounds.bound import Bracket
from evenhand.bounds.layers import affine_layers
from evenhand.bounds.quadratic_dual import Multipliers
from evenhand.certify.certify import _check_folding, _trained_multipliers, certify, certify_individuals
from evenhand.certify.statement import AGAIN, STEP_UP, Statement, check_order, most_d_x
from evenhand.domain import Box
from evenhand.dual.confidence import betting_upper
from evenhand.dual.pool import Pool
from evenhand.fair_metrics.metric import FairMetric
from evenhand.judged import Judged
from evenhand.judged.decisions import behind
from evenhand.search.geometry import Geometry

FEW = {"tune_steps": 5, "tune_rows": 10, "rounds": 2}


def test_who_is_counted_how_and_in_which_range():
    """Two sides share the error; strangers share it with R(h); they differ by no more than the domain allows."""
    seen = []

    def recorded(values, high, alpha):
        seen.append((len(values), high, alpha))
        return betting_upper(values, high, alpha)

    x = people(40)
    x[:, 1] = 0.25  # nobody differs in what is not free
    cert = certify(linear_model(), iter([x]), METRIC, EPS, BOX, x_tune=people(20, 1), interval=recorded, **FEW)
    assert cert.n == 40
    assert {n for n, _, _ in seen} == {40, 20}
    assert max(alpha for _, _, alpha in seen) == pytest.approx(0.025)
    (strangers,) = {round(alpha, 9) for n, _, alpha in seen if n == 20}
    alphas = {round(alpha, 9) for n, _, alpha in seen if n == 40}
    assert round(0.025 - strangers, 9) in alphas  # the upper side of R(h), beside that of strangers
    assert max(high for n, high, _ in seen if n == 20) == pytest.approx((2 * A + 18 * C) ** 2)
    assert np.isnan(cert.yardstick)
    assert len(cert.each_high) == 40  # of a stream too; which rows they are is the stream's business
    assert len(cert.rows) == 0


def test_a_spike_that_a_search_may_miss_is_below_the_bound():
    """relu(k(z - c) + 1) - 2 relu(k(z - c)) + relu(k(z - c) - 1) is 1 at c and 0 from 1/k on."""
    k, c = 1e5, 0.731313
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[k, 0.0]] * 3))
        model[0].bias.copy_(torch.tensor([1 - k * c, -k * c, -1 - k * c]))
        model[2].weight.copy_(torch.tensor([[1.0, -2.0, 1.0]]))
        model[2].bias.zero_()
    found = certify_individuals(model, people(6), METRIC, EPS, BOX, **FEW)
    assert (found.upper >= 1 - 1e-6).all()


def test_two_classes_are_decided_at_margin_zero():
    """Exact for a linear model: whose margin, moved by its reach, changes sign."""
    model = nn.Linear(2, 2, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0, 0.0], [A, C]]))
    x = people(100, 4)
    cert = certify(model, x, METRIC, EPS, BOX, x_tune=people(20, 1), **FEW)
    score, reach = x @ np.array([A, C]), C * EPS**0.5
    turned = np.where(score > 0, -A + C * x[:, 1] - reach <= 0, A + C * x[:, 1] + reach > 0).mean()
    assert turned - 0.03 <= cert.decisions.low <= turned <= cert.decisions.high <= turned + 0.03


@pytest.mark.parametrize("level", [2.0, 4.0])
def test_trees_are_decided_at_the_stated_threshold(level):
    """By enumeration: sex is free and nothing else moves, so a decision can change with sex or not at all."""
    from sklearn.ensemble import GradientBoostingClassifier

    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 2, 300), rng.integers(0, 8, 300)]).astype(float)
    y = x[:, 1] + 1.5 * x[:, 0] + rng.normal(size=300) > 4
    model = GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0).fit(x, y)
    box = Box([0.0, 0.0], [1.0, 7.0], binary=[0])
    threshold = model.decision_function([[0.0, level], [1.0, level]]).mean()  # between the sexes of this level
    cert = certify(model, x[100:], METRIC, 1e-6, box, x_tune=x[:100], threshold=threshold, distinct_people=True)
    both = [model.decision_function(np.column_stack([np.full(200, sex), x[100:, 1]])) for sex in (0.0, 1.0)]
    turned = ((both[0] > threshold) != (both[1] > threshold)).mean()
    assert turned > 0.05
    assert cert.decisions.low == pytest.approx(turned)
    assert cert.decisions.high == pytest.approx(turned)


def test_nobody_in_the_domain_is_farther_than_the_largest_distance():
    rng = np.random.default_rng(0)
    corners = torch.tensor(list(itertools.product((0.0, 1.0), repeat=4)), dtype=torch.float64)
    for _ in range(5):
        factor = torch.tensor(rng.normal(size=(4, 4)))
        low, high = -torch.tensor(rng.random(4)), torch.tensor(rng.random(4))
        points, metric = low + (high - low) * corners, FairMetric.of(torch.zeros(4, 0).double(), factor)
        assert metric.pairwise(points, points).max() <= most_d_x(Geometry(metric, Box(low, high))) * (1 + 1e-9)


def test_bounds_out_of_order_are_never_stated():
    for r_low, r_high, each_low, each_high in [(0.0, 0.0, 0.0, 0.0), (1.0, 1.0, [0.5, 2.0], [0.5, 2.0])]:
        check_order(r_low, r_high, np.array(each_low), np.array(each_high))
    for r_low, r_high, each_low, each_high in [
        (1.0, 0.5, 0.0, 0.0),
        (np.nan, 0.5, 0.0, 0.0),
        (0.1, 0.5, [0.1, 0.3], [0.2, 0.2]),
        (0.1, 0.5, [0.1], [np.nan]),
    ]:
        with pytest.raises(RuntimeError, match="please report"):
            check_order(r_low, r_high, np.array(each_low), np.array(each_high))


def test_what_is_nothing_but_rounding_is_no_lower_bound():
    check_order(1e-30, 0.0, np.array([1e-30]), np.array([0.0]), rounding=1e-28)
    with pytest.raises(RuntimeError, match="please report"):
        check_order(1e-26, 0.0, rounding=1e-28)


def test_what_rounding_found_is_not_stated():
    pool = Pool()
    pool.add(np.full((5, 1), 1e-30), np.zeros((5, 1)))
    nothing = SimpleNamespace(lam=1.0, everywhere=0.0)
    statement = Statement.__new__(Statement)
    statement.prepared = (None, None, SimpleNamespace(up=float), None, nothing, None, [1.0])
    statement.pool, statement.eps, statement.rounding, statement.above = pool, 0.0, 1e-28, SimpleNamespace(mean=0.0)
    assert statement.bracket() == (0.0, 0.0)
    statement.rounding = 0.0
    with pytest.raises(RuntimeError, match="please report"):
        statement.bracket()


@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_is_free_r_of_0_is_0(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    metric = FairMetric(sigma=torch.diag(torch.tensor([0.2, 1.0, 4.0])).double())
    x = torch.rand(60, 3, dtype=torch.float64)
    found = certify(model, x[:30], metric, 0.0, (0.0, 1.0), x_tune=x[30:], **FEW)
    assert found.r_low == found.r_high == 0
    assert certify_individuals(model, x[:30], metric, 0.0, (0.0, 1.0), **FEW).lower.max() == 0


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e7])
def test_folded_layers_are_those_of_the_model_whatever_its_size(scale):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).double()
    model(torch.randn(50, 3).double())
    model.eval()
    with torch.no_grad():
        model[-1].weight *= scale
        model[-1].bias *= scale
    x, layers = torch.randn(20, 3).double(), affine_layers(copy.deepcopy(model))
    _check_folding(Judged.of(model), layers, x)
    with torch.no_grad():
        model[-1].bias += 1e-3 * max(scale, 1.0)
    with pytest.raises(RuntimeError, match="the folded layers differ"):
        _check_folding(Judged.of(model), layers, x)


def test_multipliers_are_those_of_the_last_step():
    class Fitted:
        def __init__(self, multipliers):
            self.multipliers_ = multipliers

        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return X

    first, middle, last = (Multipliers.__new__(Multipliers) for _ in range(3))
    whole = make_pipeline(Fitted(first), Fitted(middle), Fitted(last))
    assert _trained_multipliers(behind(whole).estimator) is last
    assert _trained_multipliers(Fitted(first)) is first
    assert _trained_multipliers(Fitted("other")) is None
    assert _trained_multipliers(nn.Linear(1, 1)) is None


@pytest.mark.parametrize("loose", [2, 40])
def test_where_a_few_are_loose_r_high_is_taken_at_a_larger_lam_and_only_they_are_looked_at_again(loose):
    """The bound is 1 for all of forty but a few; theirs is 500 below lam = 300 and 1 from there on. Where everybody's
    is loose, that is given up after everybody was looked at AGAIN times."""
    asked = []

    @dataclass(frozen=True)
    class Tail:
        lam: float

        def at(self, lam):
            return Tail(lam)

        def upper(self, x, reached=None):
            asked.append((self.lam, len(x)))
            far = (x[:, 0] < loose) & (self.lam < 300)
            return Bracket(torch.zeros(len(x)), torch.where(far, 500.0, 1.0).double(), x)

    pool = Pool()
    pool.add(np.ones((40, 1)), np.full((40, 1), 1e-6))  # what was found: r_lam is at least about 1
    x = torch.arange(40, dtype=torch.float64)[:, None]
    bound = Tail(100.0)
    statement = Statement.__new__(Statement)
    statement.seen, statement.rbar, statement.eps, statement.progress = [x], [bound.upper(x).upper], 0.01, False
    asked.clear()
    found = statement._at_another_lam(bound, pool, 100.0)
    assert {count for _, count in asked} == {loose}
    if loose == 40:
        assert len(asked) == AGAIN
        return
    assert 300 <= max(lam for lam, _ in asked) <= 300 * STEP_UP
    assert found == pytest.approx(0.01 * max(lam for lam, _ in asked) + 1.0)


@pytest.mark.parametrize("given", [lambda x: x, lambda x: iter([x])])  # a table is looked at before, a stream is not
def test_held_out_people_outside_the_domain_are_not_judged(given):
    x = people(40)
    x[:3, 1] = 9.5
    with pytest.raises(ValueError, match="3 of 40 rows lie outside the bounds"):
        certify(linear_model(), given(x), METRIC, EPS, BOX, x_tune=people(20, 1), **FEW)
