"""sup of t^2 - lam * d_X over a piece as a person sees it: above everything in it, close to it, the same in company."""

from dataclasses import replace

import pytest
import torch

from evenhand.bounds import chords
from evenhand.bounds.chords import Sights, _step_length, worst

LAM = 1.5


def sights(seed: int, n: int = 6, q: int = 2, *, inner: float = 0.0, enough: float = 0.0) -> Sights:
    """Random pieces of the plane; the person at delta = 0 lies in some of them."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    low = normal(n, 2)
    high = low + 1 + normal(n, 2).abs()
    a, c = 2 * normal(n, 2), 0.3 * normal(n)
    top = (c + torch.where(a > 0, a * high, a * low).sum(1)).clamp(min=0)
    side, offset = normal(n, q, 2), 0.5 * normal(n, q)
    weight, flat = torch.tensor([1.0, 0.4], dtype=torch.float64), torch.ones(n, dtype=torch.float64)
    return Sights(a, c, top, low, high, side, offset, inner * flat, enough * flat, weight, LAM)


def truth(s: Sights, i: int, fine: int = 700) -> float:
    """The largest value on a grid of the piece; -inf where it holds nobody."""
    share = torch.linspace(0, 1, fine, dtype=torch.float64)
    first = s.low[i, 0] + share * (s.high[i, 0] - s.low[i, 0])
    second = s.low[i, 1] + share * (s.high[i, 1] - s.low[i, 1])
    delta = torch.cartesian_prod(first, second)
    t = delta @ s.a[i] + s.c[i]
    d_x = delta.square() @ s.weight
    inside = ((delta @ s.side[i].T + s.offset[i]) >= 0).all(1) & (t >= 0) & (d_x >= s.inner[i].square())
    return float(torch.where(inside, t.square() - s.lam * d_x, -torch.inf).max())


@pytest.mark.parametrize("inner", [0.0, 0.8])
@pytest.mark.parametrize("q", [0, 2, 3])
def test_above_the_truth_and_close_to_it(q, inner):
    close = []
    for seed in range(4):
        s = sights(seed, q=q, inner=inner)
        found = worst(s, 10)[0]
        for i in range(len(s.a)):
            exact = truth(s, i)
            assert found[i] >= exact - 1e-9
            if exact > 0.05:
                close.append(found[i].item() / exact)
    assert len(close) > 3
    assert torch.tensor(close).median() < 1.03
    if inner == 0:
        assert max(close) < 1.15


def test_closed_form_in_one_dimension():
    one = torch.ones(1, 1, dtype=torch.float64)
    flat, none = one[0], torch.zeros(1, 0, 1, dtype=torch.float64)
    s = Sights(3 * one, 0 * flat, 6 * flat, 0 * one, 2 * one, none, none[..., 0], 0 * flat, -flat, one[0], 2.0)
    assert worst(s, 10)[0].item() == pytest.approx((9 - 2) * 4, rel=1e-3)  # (a^2 - lam) delta^2 at delta = 2
    half = Sights(3 * one, 0 * flat, 6 * flat, 0 * one, 2 * one, -one[None], flat[None], 0 * flat, -flat, one[0], 2.0)
    assert worst(half, 10)[0].item() == pytest.approx(7, rel=2e-2)  # delta <= 1


def test_nobody_depends_on_the_others():
    s = sights(7, n=9)
    together = worst(s, 10)[0]
    alone = torch.cat([worst(s[torch.tensor([i])], 10)[0] for i in range(9)])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-12)


def test_what_is_enough_ends_the_work_and_stays_true():
    hard, easy = sights(3), sights(3, enough=0.5)
    found, quick = worst(hard, 10)[0], worst(easy, 10)[0]
    assert ((quick <= 0.5) == (found <= 0.5)).all()
    assert (quick >= torch.tensor([truth(hard, i) for i in range(len(quick))]) - 1e-9).all()


def test_a_closer_look_never_hurts():
    s = sights(5)
    first, second, third = (worst(s, rounds)[0] for rounds in (0, 2, 8))
    assert (second <= first + 1e-12).all()
    assert (third <= second + 1e-12).all()
    assert (third < first - 1e-6).any()


def test_the_step_length_is_the_curvature_along_the_halfspaces_in_any_units():
    """The dual's Hessian is side (2 lam weight)^-1 side^T; of one halfspace, its only entry."""
    for unit in (1e-3, 1.0, 1e3):
        seen = sights(0, n=3, q=1)
        seen = replace(seen, side=seen.side / unit, weight=torch.tensor([0.5, 2.0], dtype=torch.float64) / unit**2)
        expected = 1 / (seen.side[:, 0].square() / (2 * LAM * seen.weight)).sum(1)
        torch.testing.assert_close(_step_length(seen)[:, 0], expected)


def test_what_is_far_above_is_given_no_finer_cut_and_stays_true(monkeypatch):
    s = replace(sights(1, enough=1e-3), lam=0.1)
    rough = worst(s)[0]
    exact = torch.tensor([truth(s, i) for i in range(len(rough))])
    assert (exact > chords.FAR_ABOVE * 1e-3).any()
    assert (rough >= exact - 1e-9).all()
    monkeypatch.setattr(chords, "FAR_ABOVE", 1e9)
    fine = worst(s)[0]
    assert (fine <= rough + 1e-12).all()
    assert (fine < rough - 1e-6).any()
