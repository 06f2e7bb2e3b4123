import numpy as np
import pytest

from evenhand.ensembles.boosting import Boosting, _Slope, balanced_log_loss, squared_loss
from evenhand.ensembles.read import Tree, join_trees

rng = np.random.default_rng(0)


@pytest.mark.parametrize("k", [1, 3])
def test_losses_have_the_gradients_they_say(k):
    h = rng.normal(size=(6, k))
    y = (rng.integers(0, 2, (6, 1)) if k == 1 else np.eye(3)[rng.integers(0, 3, 6)]).astype(float)
    for loss in (balanced_log_loss, squared_loss):
        _, gradient, _ = loss(h, y)
        for c in range(k):
            step = np.zeros_like(h)
            step[:, c] = 1e-6
            slope = (loss(h + step, y)[0] - loss(h - step, y)[0]) / 2e-6
            assert slope == pytest.approx(gradient[:, c], abs=1e-6)


def settings(**changed):
    return Boosting(
        **{"trees": 1, "leaves": 4, "learning_rate": 0.1, "rho": 0.7, "l2": 0.0, "versions": 2, "search_every": 5}
        | changed
    )


def test_gradient_is_that_of_the_relative_penalty():
    n, m, weight = 5, 2, rng.uniform(0.5, 2, 5)
    y = rng.integers(0, 2, (n, 1)).astype(float)
    h = 3 * rng.normal(size=(n * (1 + m), 1))

    def objective(h):
        variance = np.average((h[:n] - np.average(h[:n], axis=0, weights=weight)) ** 2, axis=0, weights=weight)[0]
        worst = ((h[:n].T - h[n:].reshape(m, n)) ** 2).max(0)
        penalty = 0.7 * np.average(worst, weights=weight) / variance
        return (weight * balanced_log_loss(h[:n], y)[0]).sum() + weight.sum() * penalty

    gradient = settings()._gradient(h, n, m, balanced_log_loss, y, weight).gradient
    for i in range(len(h)):
        step = np.zeros_like(h)
        step[i] = 1e-5
        assert (objective(h + step) - objective(h - step)) / 2e-5 == pytest.approx(gradient[i, 0], abs=1e-5)


def test_leaves_are_newton_steps_by_weight():
    stump = Tree(*map(np.array, ([0, -1, -1], [0.0, 0, 0], [1, 0, 0], [2, 0, 0], [0.0, 0, 0], [True] * 3)))
    soft = join_trees([stump], [0], [0.0], 1).softened([1.0])
    x, g = np.array([[-2.0], [0.0], [2.0]]), np.array([[1.0], [2.0], [-4.0]])
    alone = _Slope(g, np.ones((3, 1)), np.zeros(0, np.int64), np.zeros(0), 0.0, 0.0)
    values = settings(l2=1.0)._leaves(soft, x, alone, 0)
    assert values[1:] == pytest.approx([-0.1 * (1 + 1) / (1.5 + 1), -0.1 * (1 - 4) / (1.5 + 1)])
    tied = _Slope(
        g, np.ones((3, 1)), np.array([1]), np.array([3.0]), 0.0, 0.0
    )
    values = settings(l2=1.0)._leaves(soft, x, tied, 0)  # row 0 is all left, its version half and half
    assert values[1] == pytest.approx(-0.1 * 2 / (1.5 + 2 * 3 * 0.5**2 + 1))
