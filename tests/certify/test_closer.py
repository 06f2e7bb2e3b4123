"""Cutting planes in lam against the exact value of finite sets of candidates."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from evenhand.bounds.bound import Bracket
from evenhand.certify.closer import CLOSE, Uppers, draw_together
from evenhand.dual.pool import Pool

N, M, EPS = 40, 30, 0.05


def candidates(seed=0):
    """Many tie at some lam, as with trees: d_Y falls into steps."""
    rng = np.random.default_rng(seed)
    d_x = rng.exponential(0.3, (N, M))
    return np.round(3 * np.sqrt(d_x) * rng.random((N, M)), 1), d_x


@dataclass(frozen=True)
class Exact:
    """A bound whose people are numbered and whose x' are the numbers of their candidates."""

    lam: float
    d_y: np.ndarray
    d_x: np.ndarray
    loose: float = 0.0

    def at(self, lam):
        return replace(self, lam=lam)

    def upper(self, x, reached=None):
        who = x[:, 0].long().numpy()
        gain = np.concatenate([self.d_y - self.lam * self.d_x, np.zeros((N, 1))], 1)[who]
        best = torch.from_numpy(gain.max(1))
        witness = torch.stack([x[:, 0], torch.from_numpy(gain.argmax(1)).double()], 1)
        return Bracket(best, best + self.loose, witness)


class Distances:
    """In place of the search: d_Y and d_X of a candidate by its number; M is the person."""

    def __init__(self, d_y, d_x):
        zero = np.zeros((N, 1))
        self.d_y, self.d_x = np.concatenate([d_y, zero], 1), np.concatenate([d_x, zero], 1)

    def distances(self, x, points):
        who, which = points[..., 0].long().numpy(), points[..., 1].long().numpy()
        return torch.from_numpy(self.d_y[who, which]), torch.from_numpy(self.d_x[who, which])


def drawn(lam, seed=0, loose=0.0):
    d_y, d_x = candidates(seed)
    exact = Pool()
    exact.add(d_y, d_x)
    bound, attack, pool = Exact(lam, d_y, d_x, loose), Distances(d_y, d_x), Pool()
    x = torch.stack([torch.arange(N).double(), torch.full((N,), float(M), dtype=torch.float64)], 1)
    first = bound.upper(x)
    some_y, some_x = attack.distances(x, first.witness[:, None])
    pool.add(some_y.numpy(), some_x.numpy())
    uppers = Uppers(lam, first.upper)
    before = pool.minimise(EPS).value, uppers.least(EPS)
    told = []
    draw_together(bound, attack, x, uppers, pool, EPS, told.append)
    return exact.minimise(EPS).value, before, (pool.minimise(EPS).value, uppers.least(EPS)), uppers, told


@pytest.mark.parametrize("lam", [0.3, 2.0, 30.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_from_any_lam_both_sides_come_close_to_the_exact_value(lam, seed):
    exact, (low, high), (lower, upper), _, told = drawn(lam, seed)
    assert high > 1.05 * low  # there was something to do
    assert lower <= exact * (1 + 1e-9)
    assert upper >= exact * (1 - 1e-9)
    assert upper <= 1.02 * CLOSE * lower
    assert told


def test_a_loose_bound_stays_above_and_ends():
    exact, (_, high), (lower, upper), _, told = drawn(2.0, loose=0.1)
    assert lower <= exact * (1 + 1e-9)
    assert exact <= upper <= high
    assert len(told) <= 8


def test_bounds_at_two_lam_hold_between_and_beyond_but_not_below():
    d_y, d_x = candidates()
    uppers = Uppers(2.0, torch.from_numpy((d_y - 2 * d_x).max(1).clip(0)))
    uppers.add(0.5, torch.from_numpy((d_y - 0.5 * d_x).max(1).clip(0)))
    for lam in (0.5, 0.7, 1.0, 1.9, 2.0, 5.0):
        assert bool((uppers.at(lam).numpy() >= (d_y - lam * d_x).max(1).clip(0) - 1e-12).all())
    assert bool(uppers.at(0.4).isinf().all())


def test_only_those_are_looked_at_again_of_whom_little_is_known():
    _, _, _, _, told = drawn(2.0)
    counts = [int(line.split()[0]) for line in told]
    assert min(counts) < N  # nobody was looked at twice for nothing in the last rounds
    assert all("Ctrl-C" in line for line in told)


def test_a_pool_takes_further_candidates_of_its_people_only():
    d_y, d_x = candidates()
    whole, parts = Pool(), Pool()
    whole.add(d_y, d_x)
    parts.add(d_y[:, :10], d_x[:, :10])
    parts.more(d_y[:, 10:], d_x[:, 10:])
    assert parts.minimise(EPS).value == pytest.approx(whole.minimise(EPS).value, rel=1e-12)
    with pytest.raises(ValueError, match="all 40 individuals; got 3"):
        parts.more(d_y[:3], d_x[:3])
