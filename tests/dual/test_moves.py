"""The lower confidence bound: a map fixed beforehand."""

import numpy as np

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
