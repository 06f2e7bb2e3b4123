import numpy as np
import pytest
from scipy.optimize import linprog

from evenhand.ensembles.boosting import (
    Boosting,
    Columns,
    Pairs,
    Slope,
    leaf_shares,
    price,
)
from evenhand.ensembles.losses import balanced_log_loss
from evenhand.ensembles.read import Tree, join_trees

rng = np.random.default_rng(0)


def settings(**changed):
    given = {"trees": 1, "leaves": 4, "learning_rate": 0.1, "rho": 0.7, "eps": np.inf, "l2": 0.0, "versions": 2}
    return Boosting(**given | {"search_every": 5} | changed)


@pytest.mark.parametrize(("eps", "spread"), [(np.inf, 3.0), (0.4, 3.0), (np.inf, 0.2)])
def test_gradient_is_that_of_the_relative_penalty(eps, spread):
    """Loss + rho * R / V, R the dearest mean square that eps pays for, also of scores that hardly differ; away from the
    kinks of lam."""
    n, weight = 6, rng.uniform(0.5, 2, 6)
    y = rng.integers(0, 2, (n, 1)).astype(float)
    pairs = Pairs(np.array([0, 1, 2, 4]), np.zeros((4, 1)), np.array([0.5, 2.0, 0.1, 3.0]))
    h = spread * rng.normal(size=(n + 4, 1))
    boosting = settings(eps=eps)
    found = boosting._gradient(h, balanced_log_loss, y, weight, pairs)
    counts = (h[pairs.row, 0] - h[n:, 0]) ** 2 > found.lam * pairs.cost
    assert counts.sum() == 4 if eps == np.inf else 0 < counts.sum() < 4

    def objective(h):
        variance = np.average((h[:n] - np.average(h[:n], axis=0, weights=weight)) ** 2, axis=0, weights=weight)[0]
        squares = (h[pairs.row, 0] - h[n:, 0]) ** 2 * counts
        penalty = 0.7 * (weight[pairs.row] * squares).sum() / variance
        return (weight * balanced_log_loss(h[:n], y)[0]).sum() + penalty

    for i in range(len(h)):
        step = np.zeros_like(h)
        step[i] = 1e-5
        assert (objective(h + step) - objective(h - step)) / 2e-5 == pytest.approx(
            found.gradient[i, 0], rel=1e-5, abs=1e-5
        )


def test_the_price_solves_the_linear_programme():
    """Shares of people to move: most squares for eps; lam is the dual of the budget."""
    squares, cost, weight, eps = rng.random(20), rng.random(20), rng.uniform(0.5, 2, 20), 0.2
    share = weight / weight.sum()
    best = linprog(-share * squares, A_ub=(share * cost)[None], b_ub=[eps], bounds=(0, 1))
    lam = price(squares, cost, weight, eps, weight.sum())
    assert lam == pytest.approx(-best.ineqlin.marginals[0])
    assert lam * eps + (share * np.maximum(squares - lam * cost, 0)).sum() == pytest.approx(-best.fun)
    assert price(squares, cost, weight, 10.0, weight.sum()) == 0
    free = np.where(cost < 0.5, 0.0, cost)
    assert price(squares, free, weight, 0.0, weight.sum()) == pytest.approx((squares / cost)[free > 0].max())


def test_worse_versions_replace_the_old_ones():
    weight, h = np.ones(4), np.array([[0.0], [0.0], [0.0], [0.0], [3.0]])
    old = Pairs(np.array([2]), np.array([[7.0]]), np.array([1.0]))
    tried = Pairs(np.arange(4), np.arange(4.0)[:, None], np.ones(4))
    h_new = np.array([[1.0], [2.0], [2.5], [0.5]])
    pairs, after = settings(eps=0.5)._worse(old, h, weight, tried, h_new)  # a quarter: one pair
    assert (pairs.row.tolist(), pairs.other.tolist(), after[4:].tolist()) == ([2], [[7.0]], [[3.0]])
    pairs, after = settings(eps=0.5)._worse(old, h, weight, tried, 10 * h_new)
    assert (pairs.row.tolist(), pairs.other.tolist(), after[4:].tolist()) == ([2], [[2.0]], [[25.0]])


def test_shares_are_the_weights_of_a_walk():
    ensemble = join_trees([deep(seed) for seed in range(3)], [0, 0, 0], [0.0], 3).softened([0.5, 0.0, 1.0])
    x = rng.normal(size=(40, 3))
    x[::4, 0], x[1::4, 1] = np.nan, np.nan
    total = np.zeros(40)
    for seed in range(3):
        one = join_trees([deep(seed)], [0], [0.0], 3).softened([0.5, 0.0, 1.0])
        shares = leaf_shares(one, Columns.of(x))
        assert shares.sum(0) == pytest.approx(np.ones(40))
        total += one.value[one.feature < 0] @ shares
    assert total == pytest.approx(ensemble(x)[:, 0], abs=1e-12)


def deep(seed):
    """A tree of seven leaves."""
    rng = np.random.default_rng(seed)
    rows = [[-1, 0.0, 0, 0, rng.normal(), 1]]
    for _ in range(6):
        leaf = int(rng.choice([i for i, row in enumerate(rows) if row[0] < 0]))
        rows[leaf] = [int(rng.integers(3)), rng.normal(), len(rows), len(rows) + 1, 0.0, int(rng.integers(2))]
        rows += [[-1, 0.0, 0, 0, rng.normal(), 1], [-1, 0.0, 0, 0, rng.normal(), 1]]
    return Tree(*np.array(rows).T)


def test_leaves_are_newton_steps_by_weight():
    stump = Tree(*map(np.array, ([0, -1, -1], [0.0, 0, 0], [1, 0, 0], [2, 0, 0], [0.0, 0, 0], [True] * 3)))
    soft = join_trees([stump], [0], [0.0], 1).softened([1.0])
    x, g = np.array([[-2.0], [0.0], [2.0]]), np.array([[1.0], [2.0], [-4.0]])
    shares = leaf_shares(soft, Columns.of(x))
    nobody = np.zeros(0, np.int64)
    alone = Slope(g, np.ones((3, 1)), nobody, np.zeros(0), 0.0, 0.0, 0.0)
    values = settings(l2=1.0)._leaves(soft, shares, alone, 0)
    assert values[1:] == pytest.approx([-0.1 * (1 + 1) / (1.5 + 1), -0.1 * (1 - 4) / (1.5 + 1)])
    shares = leaf_shares(soft, Columns.of(np.vstack([x, [[0.0]]])))
    g, curvature = np.vstack([g, [[0.0]]]), np.array([[1.0], [1.0], [1.0], [0.0]])
    tied = Slope(g, curvature, np.array([0]), np.array([3.0]), 0.0, 0.0, 0.0)
    values = settings(l2=1.0)._leaves(soft, shares, tied, 0)  # row 0 is all left, its version half and half
    assert values[1] == pytest.approx(-0.1 * 2 / (1.5 + 2 * 3 * 0.5**2 + 1))
