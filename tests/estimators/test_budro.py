import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import check_estimator

from evenhand import BuDROClassifier, FairMetric
from evenhand.estimators.budro import price_of
from evenhand.files import load, save

pytest.importorskip("lightgbm", reason="boosted trees are fitted by LightGBM")
rng = np.random.default_rng(0)
N = 400
GROUP = rng.integers(0, 2, N).astype(float)
X = np.column_stack([rng.normal(size=N), GROUP])
Y = (X[:, 0] + GROUP + 0.3 * rng.normal(size=N) > 0.5).astype(int)
FREE = FairMetric([[0.0], [1.0]])


def test_the_adversary_solves_the_published_linear_programme():
    """max <Pi, losses> with rows of Pi summing to 1/n and mean cost of at most eps: the dual reaches it."""
    n, m, eps = 8, 5, 0.15
    gains, cost = rng.random((n, m)), np.column_stack([np.zeros(n), rng.random((n, m - 1))])
    rows = np.kron(np.eye(n), np.ones(m))
    best = linprog(-gains.ravel() / n, A_ub=cost.ravel()[None] / n, b_ub=[eps], A_eq=rows, b_eq=np.ones(n))
    eta = price_of(gains, cost, np.ones(n), eps)
    assert eta * eps + (gains - eta * cost).max(1).mean() == pytest.approx(-best.fun, abs=1e-6)
    assert price_of(gains, cost, np.ones(n), 10.0) == 0


def test_a_free_column_stops_mattering():
    """Labels may move to rows of the other group at no cost, so that relying on the group loses."""
    fair = BuDROClassifier(FREE, eps=0.05, trees=40, leaves=6, support=N, random_state=0).fit(X, Y)
    plain = BuDROClassifier(FairMetric.euclidean(2), eps=0.0, trees=40, leaves=6, random_state=0).fit(X, Y)
    other = np.column_stack([X[:, 0], 1 - GROUP])

    def flips(model):
        return (model.predict(X) != model.predict(other)).mean()

    assert flips(plain) > 0.3
    assert flips(fair) < 0.6 * flips(plain)
    assert log_loss(Y, fair.predict_proba(X)) < log_loss(Y, np.full(N, Y.mean()))


def test_it_is_saved_like_the_others(tmp_path):
    model = BuDROClassifier(FREE, trees=4, leaves=4, random_state=0).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    save(model, tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict_proba(X), model.predict_proba(X))


def test_scikit_learn_checks():
    why = "neighbours are other rows: copies of a row are not the same as its weight"
    check_estimator(
        BuDROClassifier(trees=8, leaves=4),
        expected_failed_checks={f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")},
        on_skip=None,
        on_fail="raise",
    )
