"""The numbers that squeezing the scores does not change, against what they are by definition."""

import math

import numpy as np
import pytest
import torch

from evenhand.dual.confidence import betting_upper, empirical_bernstein_upper, hoeffding_upper
from evenhand.headline import PLACED, STRANGERS, Bracketed, Headline, Strangers, percent, stands
from evenhand.output_distances import mean_squared_logits, squared_error, total_variation


def outputs(n, k=2, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, k)))


def test_strangers_are_all_pairs_of_the_sample():
    h, x = outputs(300, 1), outputs(300, 3, 1) + 5
    strangers = Strangers(squared_error, outputs(100, 1, 2))
    assert not strangers.known
    for rows in (slice(0, 120), slice(120, 300)):
        strangers.add(h[rows], x[rows])
    exact = 2 * h.var(0, unbiased=True).item()  # the mean over all pairs
    assert strangers.mean(shifts=299) == pytest.approx(exact)
    assert strangers.mean() == pytest.approx(exact, rel=0.1)
    assert strangers.mean_d_x(lambda move: move.square().sum(-1)) == pytest.approx(2 * x.var(0).sum().item(), rel=0.1)


def test_many_strangers_are_a_fair_sample_of_all():
    n = STRANGERS + 5000
    h = torch.arange(n, dtype=torch.float64)[:, None]  # in order: late ones must be as likely as early ones
    strangers = Strangers(squared_error, h[:50])
    for start in range(0, n, 4000):
        strangers.add(h[start : start + 4000], h[start : start + 4000])
    kept = strangers._h[:, 0]
    assert len(kept) == STRANGERS
    assert len(strangers._x) == PLACED
    assert (strangers._x[:, 0] == kept[:PLACED]).all()
    assert kept.mean() == pytest.approx(n / 2, rel=0.01)
    assert strangers.mean() == pytest.approx(n**2 / 6, rel=0.02)


@pytest.mark.parametrize("interval", [betting_upper, empirical_bernstein_upper, hoeffding_upper])
@pytest.mark.parametrize("order", [1, -1])
def test_bounds_on_strangers_hold_in_any_order(interval, order):
    truth, missed = 2.0 / 12, 0  # twice the variance of a uniform variable
    for seed in range(60):
        rng = np.random.default_rng(seed)
        h = torch.from_numpy(np.sort(rng.random(200))[::order].copy())[:, None]
        strangers = Strangers(squared_error, torch.from_numpy(rng.random((60, 1))))
        strangers.add(h, h)
        low, high = strangers.lower(0.05, interval), strangers.upper(0.05, interval, 1.0)
        missed += not low <= truth <= high
    assert missed <= 0.1 * 60
    assert strangers.upper(0.05, interval, 1.0) < 0.6
    assert strangers.upper(0.05, interval, math.inf) == math.inf  # nothing is known without a range


def test_strangers_are_bounded_in_the_range_that_is_given():
    """What the interval is asked: pairs of people cut at the range, and that range; nothing where nobody differs."""
    h = torch.arange(4, dtype=torch.float64)[:, None]
    strangers, asked = Strangers(squared_error, h), []
    strangers.add(h[:1], h[:1])
    assert not strangers.known
    strangers.add(h[1:], h[1:])
    assert strangers.known
    strangers.upper(0.05, lambda values, high, alpha: asked.append((values.tolist(), high, alpha)) or 0.0, 3.0)
    ((values, high, alpha),) = asked
    assert (high, alpha) == (3.0, 0.05)
    assert len(values) == 2
    assert set(values) <= {1.0, 3.0}  # the squares of 1, 2 and 3, cut
    assert strangers.upper(0.05, lambda *_: pytest.fail("there is no range"), 0.0) == 0.0


def example(threshold=0.0, scale=1.0):
    """Five people with two others each: who is turned, who moves by how much of the tuning scores -10 .. 9."""
    tuning = scale * torch.stack([torch.zeros(20), torch.arange(-10.0, 10.0)], 1).double()
    score = torch.tensor([[-2.5, 0.5, -2.5], [3.5, 3.5, 1.5], [0.5, 0.5, -7.5], [5.5, 5.5, 5.5], [-4.5, -4.5, -0.5]])
    h = scale * torch.stack([torch.zeros(5, 3), score], 2).double()
    headline = Headline(mean_squared_logits, tuning, threshold if threshold is None else scale * threshold)
    headline.add(torch.zeros(5, 2).double(), h)
    return headline


@pytest.mark.parametrize("scale", [1e-9, 0.05, 1.0, 1e9])
def test_decisions_and_percentiles_are_counted(scale):
    headline = example(scale=scale)
    decisions = headline.decisions(0.05, 0.05)
    assert (decisions.low, decisions.high) == (0.4, 0.4)
    assert 0 < decisions.lower < 0.4 < decisions.upper < 1
    percentile = headline.percentile(0.05, 0.05, betting_upper)
    assert percentile.low == pytest.approx(100 * (3 + 2 + 8 + 0 + 4) / 20 / 5)
    assert percentile.lower < percentile.low == percentile.high < percentile.upper
    assert headline.percentile(0.05, 0.05, lambda values, high, alpha: 0.25 * high).upper == 25.0  # shares, in percent


def test_a_threshold_moves_the_decisions_and_no_threshold_means_none():
    assert example(threshold=2.0).decisions(0.05, None) == Bracketed(0.2, 1.0, pytest.approx(0.0102, abs=1e-3), 1.0)
    assert example(threshold=None).decisions(0.05, None) is None


def test_more_than_two_classes_decide_by_the_largest():
    h = torch.tensor([[[3.0, 1, 0], [2, 3, 0]], [[0, 5, 1], [0, 4, 1]]]).double()
    headline = Headline(total_variation, outputs(30, 3), None)
    headline.add(torch.zeros(2, 2).double(), h)
    assert headline.decisions(0.05, None).low == 0.5
    assert headline.percentile(0.05, None, betting_upper).low > 0


def test_bounds_from_above_are_never_below_what_was_found():
    tuning = torch.stack([torch.zeros(20), torch.arange(-10.0, 10.0)], 1).double()
    h = torch.stack([torch.zeros(2, 2), torch.tensor([[1.5, -0.5], [6.5, 6.5]])], 2).double()
    headline = Headline(mean_squared_logits, tuning, 0.0)
    low, high = torch.tensor([1.4, 2.5]).double(), torch.tensor([1.6, 8.5]).double()
    headline.add_bounded(torch.zeros(2, 2).double(), h, low, high)
    decisions, percentile = headline.decisions(0.05, 0.05), headline.percentile(0.05, 0.05, betting_upper)
    assert decisions.low == decisions.high == 0.5  # a witness refutes what a bound claims
    assert percentile.high == pytest.approx(100 * (2 + 4) / 20 / 2)


def test_a_decision_stands_on_its_side_of_the_threshold():
    score, low, high = (
        torch.tensor(v).double() for v in ([1.0, 1.0, -1.0, -1.0], [0.6, 0.4, -2, -2], [2, 2, 0.5, 0.6])
    )
    for h in (score[:, None], torch.stack([-score / 2, score / 2], 1)):
        assert stands(h, low, high, 0.5).tolist() == [True, False, True, False]
    assert stands(torch.zeros(2, 3), torch.tensor([0.1, 0.0]), torch.ones(2), None).tolist() == [True, False]


def test_relative_divides_and_is_undefined_when_strangers_are_alike():
    headline = example()
    relative = headline.relative(0.1, 0.2, 0.05, 0.3, 0.025, betting_upper, largest=100.0)
    mean = headline.strangers.mean()
    assert (relative.low, relative.high) == pytest.approx((0.1 / mean, 0.2 / mean))
    assert relative.lower <= relative.low <= relative.high <= relative.upper
    assert headline.relative(0.1, 0.2, 0.05, 0.3, 0.025, betting_upper).lower == 0  # no range, nothing from below
    alike = Headline(mean_squared_logits, torch.zeros(20, 2).double(), 0.0)
    alike.add(torch.zeros(9, 2).double(), torch.zeros(9, 3, 2).double())
    assert alike.relative(0.0, 0.0, 0.0, 0.0, 0.025, betting_upper) is None


def test_percent():
    assert [percent(v) for v in (0.0034, 0.5, 1.0, 4.2)] == ["0.34%", "50%", "100%", "420%"]
    assert (percent(0.9949), percent(0.996), percent(1.2)) == ("99%", "100%", "120%")
