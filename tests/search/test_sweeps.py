"""Column by column, on models made of steps: against the best of all boxes of a tree, by enumeration."""

import itertools

import numpy as np
import torch
from sklearn.tree import DecisionTreeRegressor

from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.output_distances import squared_error
from evenhand.search.attack import Attack
from evenhand.search.climbs import worth
from evenhand.search.geometry import Geometry
from evenhand.search.sweeps import _new, sweep

LAM = 0.5


def tree_and_people():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 3)).round(3)
    y = np.sin(3 * x[:, 0]) + x[:, 1] * (x[:, 2] > -0.3)
    return DecisionTreeRegressor(max_leaf_nodes=12, random_state=0).fit(x, y), torch.tensor(x[:25])


def thresholds(tree, d):
    marks = tree.tree_.threshold[tree.tree_.feature >= 0]
    column = tree.tree_.feature[tree.tree_.feature >= 0]
    return tuple(torch.tensor(np.unique(marks[column == j])) for j in range(d))


def _behind(mark):  # scikit-learn's trees compare in float32
    near = np.float32(mark)
    return float(near) if near > mark else float(np.nextafter(near, np.float32(2)))


def _not_behind(mark):
    near = np.float32(mark)
    return float(near) if near <= mark else float(np.nextafter(near, np.float32(-2)))


def best_of_all_cells(tree, x):
    """In every cell between thresholds the nearest point is a clamp: all combinations of cells."""
    marks = [np.concatenate([[-1.0], t.numpy(), [1.0]]) for t in thresholds(tree, 3)]
    best = np.zeros(len(x))
    for cell in itertools.product(*(range(len(m) - 1) for m in marks)):
        low = np.array([_behind(m[i]) if i else m[i] for m, i in zip(marks, cell)])
        high = np.array([_not_behind(m[i + 1]) for m, i in zip(marks, cell)])
        near = np.clip(x.numpy(), low, high)
        d_y = (tree.predict(near) - tree.predict(x.numpy())) ** 2
        best = np.maximum(best, d_y - LAM * ((near - x.numpy()) ** 2).sum(1))
    return best


def reached(attack, x, found):
    return worth(squared_error(attack.h(x), attack.h(found)), attack.d_x(found - x), LAM)


def test_most_of_the_best_is_found_and_more_with_thresholds():
    tree, x = tree_and_people()
    geometry = Geometry(FairMetric.euclidean(3, torch.float64), Box(-1.0, 1.0, d=3))

    def outputs(rows):
        return torch.from_numpy(tree.predict(rows.numpy()))[:, None]

    exact = best_of_all_cells(tree, x)
    values = []
    for marks in (None, thresholds(tree, 3)):
        attack = Attack(outputs, geometry, squared_error, False, thresholds=marks, stepwise=True)
        found = sweep(attack, x, attack.h(x), x, LAM, 4)
        assert attack.geometry.box.contains(found).all()
        value = reached(attack, x, found).numpy()
        assert (value >= 0).all()
        assert (value <= exact + 1e-9).all()
        values.append(value.sum())
    assert values[1] >= 0.9 * exact.sum()
    assert values[1] >= values[0] >= 0.75 * exact.sum()


def test_values_are_tried_once_and_only_where_they_change_something():
    values = torch.tensor([[[1.0, 2.0, 1.0, 0.5, 2.0]], [[0.5, 0.5, 0.5, 0.5, 0.5]]])
    assert _new(values, torch.tensor([[0.5], [0.5]])).tolist() == [[[True, True, False, False, False]], [[False] * 5]]
