import numpy as np
import pytest
from scipy.optimize import minimize

from evenhand.ensembles.line import Line, fair_line, usual_range
from evenhand.ensembles.losses import balanced_log_loss, squared_loss
from evenhand.ensembles.read import join_trees

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
WEIGHT = rng.uniform(0.5, 2, 300)
NOTHING, FREE = np.zeros((3, 3)), np.ones(3)
USUAL = np.clip(X, *usual_range(X, WEIGHT))


def test_stumps_are_the_line_between_the_ends_and_flat_beyond():
    slope = np.array([[1.0, 0.0], [-2.0, 3.0]])
    line = Line(slope, np.array([0.5, -1.0]), np.array([-1.0, 0.0]), np.array([3.0, 2.0]), np.array([0.2, 0.3]))
    trees, output, width = line.stumps()
    ensemble = join_trees(trees, output, line.base, 2).ramped(width)
    inside = rng.uniform(line.low, line.high, (50, 2))
    assert len(trees) == 3  # a slope of zero needs none
    assert ensemble(inside) == pytest.approx(line.base + (inside - line.middle) @ slope)
    assert ensemble([[9.0, -9.0]]) == pytest.approx(ensemble([[3.0, 0.0]]))
    assert ensemble([[np.nan, np.nan]]) == pytest.approx(ensemble([[-1.0, 0.0]]))  # the ends nearer to the middle


def test_without_a_penalty_it_is_weighted_least_squares():
    y = (X @ [1.0, -2.0, 0.5] + 3 + rng.normal(size=300))[:, None]
    line = fair_line(X, squared_loss, y, WEIGHT, np.zeros(1), NOTHING, 0.0, 0.0, FREE)
    design, root = np.column_stack([USUAL, np.ones(300)]), np.sqrt(WEIGHT)[:, None]
    expected = np.linalg.lstsq(design * root, y * root, rcond=None)[0]
    assert line.slope == pytest.approx(expected[:3], rel=1e-6)
    assert line.base - line.middle @ line.slope == pytest.approx(expected[3], rel=1e-6)


@pytest.mark.parametrize("k", [1, 3])
def test_minimises_the_log_loss_with_the_relative_penalty(k):
    score = X @ rng.normal(0, 2, (3, k))
    y = (score > rng.logistic(size=(300, 1))).astype(float) if k == 1 else np.eye(3)[score.argmax(1)]
    worst, rho, l2 = np.diag([0.3, 0.0, 0.1]), 0.5, 4.0
    line = fair_line(X, balanced_log_loss, y, WEIGHT, np.zeros(k), worst, rho, l2, FREE)
    z = USUAL - np.average(USUAL, axis=0, weights=WEIGHT)
    spread = (z * WEIGHT[:, None]).T @ z / WEIGHT.sum()

    def objective(flat):
        w, b = flat[: 3 * k].reshape(3, k), flat[3 * k :]
        unfair = (w * (worst @ w)).sum() / max((w * (spread @ w)).sum(), 1.0)
        ridge = l2 * (spread.diagonal()[:, None] * w**2).sum() / 2
        return WEIGHT @ balanced_log_loss(b + z @ w, y)[0] + rho * WEIGHT.sum() * unfair + ridge

    found = objective(np.append(line.slope, line.base))
    assert found == pytest.approx(minimize(objective, np.zeros(4 * k), method="BFGS").fun, rel=1e-3)


def test_what_makes_people_unequal_is_left_out_and_so_is_what_is_not_worth_it():
    y = (X @ [1.0, 1.0, 1.0] > 0)[:, None].astype(float)
    line = fair_line(X, balanced_log_loss, y, WEIGHT, np.zeros(1), np.diag([100.0, 0, 0]), 5.0, 1.0, FREE)
    assert abs(line.slope[0, 0]) < 0.02 * line.slope[1, 0]
    line = fair_line(X, balanced_log_loss, y, WEIGHT, np.zeros(1), NOTHING, 5.0, 1.0, np.array([1e-4, 1, 1]))
    assert abs(line.slope[0, 0]) < 0.02 * line.slope[1, 0]


def test_constant_columns_and_columns_with_holes_keep_slope_zero():
    x = np.column_stack([X, np.full(300, 7.0), np.full(300, np.nan)])
    x[3, 1] = np.nan
    line = fair_line(x, squared_loss, X[:, :2] @ [[1.0], [1.0]], WEIGHT, np.zeros(1), np.eye(5), 0.1, 1.0, np.ones(5))
    assert (line.slope[:, 0] != 0).tolist() == [True, False, True, False, False]


def test_the_usual_range_leaves_out_a_hundredth_at_either_end_by_weight():
    x = np.column_stack([np.arange(1000.0), np.append(np.zeros(970), np.full(30, 50.0)), np.full(1000, np.nan)])
    x[::2, 1] = np.nan
    low, high = usual_range(x, np.ones(1000))
    assert (low.tolist(), high.tolist()) == ([9, 0, 0], [989, 50, 0])
    weight = rng.integers(1, 4, 1000)
    assert np.array_equal(usual_range(x, weight), usual_range(np.repeat(x, weight, 0), np.ones(weight.sum())))
    shuffled = rng.permutation(1000)
    assert np.array_equal(usual_range(x[shuffled], weight[shuffled]), usual_range(x, weight))


def test_where_nearly_all_are_alike_the_others_still_count():
    rare = np.append(np.zeros(997), [1.0, 2.0, 900.0])
    below = np.append(np.full(999, 5.0), -3.0)
    low, high = usual_range(np.column_stack([rare, below, rare > 0]), np.ones(1000))
    assert (low.tolist(), high.tolist()) == ([0, -3, 0], [2, 5, 1])


def test_a_few_extreme_values_neither_tilt_the_line_nor_are_they_scored_further():
    far = X.copy()
    far[:2, 0] = 1e4
    y = (X @ [1.0, -2.0, 0.5])[:, None]
    lines = [fair_line(x, squared_loss, y, WEIGHT, np.zeros(1), NOTHING, 0.0, 0.0, FREE) for x in (X, far)]
    assert lines[1].slope == pytest.approx(lines[0].slope, rel=0.1)
    assert lines[1].high[0] <= X[:, 0].max()
