import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from evenhand.ensembles.ascent import Lines, ascend
from evenhand.ensembles.read import read_ensemble
from evenhand.ensembles.worst_case import People, worst_case

pytest.importorskip("numba", reason="the search is compiled by numba")

rng = np.random.default_rng(0)
D = 7  # three numbers, a binary column, a block of three
X = np.column_stack(
    [rng.uniform(-1, 1, (300, 3)), rng.integers(0, 2, (300, 1)), np.eye(3)[rng.integers(0, 3, 300)]]
).astype(np.float32)
X = X.astype(np.float64)
SCORE = X[:, 0] - X[:, 1] * X[:, 5] + 0.5 * X[:, 3] * X[:, 2]
MIX = rng.normal(size=(D, D))
PEOPLE = People(
    np.array([-1.0, -1, -1, 0, 0, 0, 0]),
    np.ones(D),
    np.array([False] * 3 + [True] * 4),
    np.array([-1, -1, -1, -1, 0, 0, 0], np.int32),
    MIX @ MIX.T / D,
)


def ensemble(kind):
    if kind == "three classes":
        labels = np.digitize(SCORE, [-0.4, 0.4])
        return read_ensemble(HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=6).fit(X, labels))
    hard = read_ensemble(HistGradientBoostingRegressor(max_iter=8, max_leaf_nodes=6).fit(X, SCORE))
    two = dict.fromkeys(range(3, D), (0.0, 1.0))
    return hard.softened(np.full(D, 0.2), two) if kind == "ramps" else hard


def worth(trees, x, points, lam):
    move = points - x
    return ((trees(points) - trees(x)) ** 2).sum(1) - lam * ((move @ PEOPLE.sigma) * move).sum(1)


@pytest.mark.parametrize("kind", ["hard", "ramps", "three classes"])
@pytest.mark.parametrize("lam", [0.05, 0.5])
def test_it_never_ends_below_its_start_and_stays_possible(kind, lam):
    trees, x, start = ensemble(kind), X[:60], X[60:120]
    found = ascend(trees, Lines.of(trees), PEOPLE, x, start, lam, 1.0)
    assert (worth(trees, x, found, lam) >= worth(trees, x, start, lam) - 1e-9).all()
    assert worth(trees, x, found, lam).mean() > worth(trees, x, start, lam).mean() + 0.05
    assert ((found >= PEOPLE.low) & (found <= PEOPLE.high)).all()
    assert np.isin(found[:, 3:], (0, 1)).all()
    assert (found[:, 4:].sum(1) == 1).all()
    assert (start == X[60:120]).all()


def test_of_hard_splits_no_other_value_of_a_column_is_better():
    trees, lam = ensemble("hard"), 0.1
    x = X[:15]
    found = ascend(trees, Lines.of(trees), PEOPLE, x, x, lam, 1.0)
    reached = worth(trees, x, found, lam)
    for j in range(3):
        for value in np.linspace(-1, 1, 801):
            other = found.copy()
            other[:, j] = value
            assert (worth(trees, x, other, lam) <= reached + 2e-3).all()
    for block in range(3):
        other = found.copy()
        other[:, 4:] = np.eye(3)[block]
        assert (worth(trees, x, other, lam) <= reached + 1e-9).all()
    other = found.copy()
    other[:, 3] = 1 - other[:, 3]
    assert (worth(trees, x, other, lam) <= reached + 1e-9).all()


@pytest.mark.parametrize("kind", ["hard", "ramps"])
def test_nearly_the_best_that_there_is(kind):
    """From the person and the two people of extreme scores, against a branch and bound that closes."""
    trees, lam, x = ensemble(kind), 0.2, X[:30]
    best = worst_case(trees, PEOPLE, x, lam=lam, boxes=4000).upper
    starts = [x] + [
        np.repeat(worst_case(trees, PEOPLE, x[:1], weights=np.array([sign]), boxes=200).witness, len(x), 0)
        for sign in (1.0, -1.0)
    ]
    lines = Lines.of(trees)
    found = np.max([worth(trees, x, ascend(trees, lines, PEOPLE, x, s, lam, 1.0), lam) for s in starts], 0)
    assert found.mean() > 0.9 * best.mean()


@pytest.mark.parametrize("lam", [0.3, 1.0, 3.0])
def test_trees_that_split_two_columns_of_a_block_are_counted_once(lam):
    target = 2 * X[:, 4] - X[:, 6] + X[:, 0] * X[:, 5]
    trees = read_ensemble(HistGradientBoostingRegressor(max_iter=8, max_leaf_nodes=10).fit(X, target))
    for start in (X, X[::-1]):
        found = ascend(trees, Lines.of(trees), PEOPLE, X, start, lam, 1.0)
        assert (worth(trees, X, found, lam) >= worth(trees, X, start, lam) - 1e-9).all()
