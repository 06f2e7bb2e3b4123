"""The lower confidence bound: a map fixed beforehand."""

import numpy as np
import pytest

from evenhand.dual.confidence import betting_upper
from evenhand.dual.moves import FixedMove, choose_move


def test_the_move_takes_the_best_affordable_candidate():
    d_y, d_x = np.array([[1.0, 5.0, 2.0], [0.0, 9.0, 0.5]]), np.array([[0.0, 9.0, 0.1], [0.0, 9.0, 1.0]])
    y, x = FixedMove(lam=1.0, d_x_cap=0.5, d_y_cap=1.5)(d_y, d_x)
    assert y.tolist() == [1.5, 0.0]  # 2.0 at price 0.1, cut at the cap; nothing affordable gains for the second
    assert x.tolist() == [0.1, 0.0]


def test_the_bound_covers():
    """d_Y = 1 at price 0.02 for everybody: R at eps = 0.01 is at least one half."""
    rng = np.random.default_rng(0)
    move = choose_move(np.ones((100, 1)), np.full((100, 1), 0.02), 0.01)
    covered = []
    for _ in range(50):
        d_y = rng.uniform(0.5, 1.5, (300, 1))
        covered.append(move.lower(*move(d_y, np.full((300, 1), 0.02)), 0.01, 0.05, betting_upper) <= 0.5)
    assert np.mean(covered) >= 0.95
    y, x = move(np.ones((300, 1)), np.full((300, 1), 0.02))
    assert 0.4 < move.lower(y, x, 0.01, 0.05, betting_upper) <= 0.5


def test_free_moves_need_no_budget():
    move = choose_move(np.ones((50, 1)), np.zeros((50, 1)), 0.0)
    assert 0.8 < move.lower(*move(np.ones((400, 1)), np.zeros((400, 1))), 0.0, 0.05, betting_upper) <= 1


def test_nearly_free_candidates_do_not_hide_what_the_budget_buys():
    """Everybody has many candidates that cost next to nothing and gain nothing, and one that is worth its price."""
    rng = np.random.default_rng(1)
    d_x = np.concatenate([1e-9 * rng.random((200, 30)), np.full((200, 1), 0.01)], 1)
    d_y = np.concatenate([1e-7 * rng.random((200, 30)), rng.uniform(0.02, 0.04, (200, 1))], 1)
    move = choose_move(d_y[:100], d_x[:100], 0.01)
    assert 0.01 < move.lower(*move(d_y[100:], d_x[100:]), 0.01, 0.05, betting_upper) <= 0.03


def value(move, d_y, d_x, eps):
    return move.lower(*(np.tile(part, 4) for part in move(d_y, d_x)), eps, 0.05, betting_upper)


@pytest.mark.parametrize("times", [1, 8, 40, 200])
def test_dear_moves_are_taken_by_those_few_whom_the_budget_reaches(times):
    """One in ``times`` people gains 1 at ``times`` eps: the mean price is eps, R is at least 1 / times. No other range
    of prices gives a better bound than the least that holds this one."""
    eps, n = 1e-3, 800
    d_y, d_x = np.zeros((n, 1)), np.zeros((n, 1))
    d_y[::times], d_x[::times] = 1.0, times * eps
    move = choose_move(d_y, d_x, eps)
    best = max(value(FixedMove(0.0, cap * eps, 1.5), d_y, d_x, eps) for cap in (2, 10, 50, 250))
    assert best * (1 - 1e-9) <= value(move, d_y, d_x, eps) <= 1 / times
    assert best > 0


@pytest.mark.parametrize("eps", [1e-4, 0.01, 5.0])
def test_the_price_of_a_gain_is_found_in_any_unit(eps):
    """A tenth gains .2 at .2 eps, a tenth .5 at eps and everybody a little at 8 eps: only the first two are worth it.
    Some move that costs a thousandth of eps and gains nothing is in nobody's way."""
    d_y, d_x = np.full((400, 4), 1e-3), np.full((400, 4), 8 * eps)
    d_y[:, 0], d_x[:, 0] = 0.0, 1e-3 * eps
    d_y[::10, 1], d_x[::10, 1] = 0.2, 0.2 * eps
    d_y[5::10, 2], d_x[5::10, 2] = 0.5, eps
    move = choose_move(d_y, d_x, eps)
    right = FixedMove(0.05 / eps, 2 * eps, 0.75)
    assert value(move, d_y, d_x, eps) >= value(right, d_y, d_x, eps) > 0.02
    y, x = move(d_y, d_x)
    assert x.max() <= eps
    assert y.sum() == pytest.approx(40 * 0.2 + 40 * 0.5)


def test_where_the_best_are_dear_the_less_good_stay():
    """Half gain 1 at 2 eps, half .6 and one person .01: with a budget for half of them, the first."""
    eps = 0.01
    d_y = np.concatenate([np.ones((200, 1)), np.full((200, 1), 0.6), np.full((1, 1), 0.01)])
    d_x = np.full((401, 1), 2 * eps)
    move = choose_move(d_y, d_x, eps)
    assert move(d_y, d_x)[1].tolist() == [2 * eps] * 200 + [0.0] * 201


def test_gain_and_price_share_the_error():
    seen = []

    def recorded(values, high, alpha):
        seen.append(alpha)
        return betting_upper(values, high, alpha)

    FixedMove(0.0, 0.1, 1.0).lower(np.full(50, 0.5), np.full(50, 0.05), 0.05, 0.05, recorded)
    assert seen == [0.025, 0.025]
