"""Ensembles without numba: against the definition of a tree, and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier

from evenhand.ensembles import kernels, plain
from evenhand.ensembles.read import read_ensemble
from tests.ensembles.test_kernels import OUTPUTS, D, by_recursion, forest


@settings(deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([1, 7, 200_000]))
def test_every_row_goes_down_every_tree(seed, holes, at_once):
    rng, arrays, missing_left = forest(seed, trees=5, depth=5)
    x, base = rng.uniform(-1.5, 1.5, (9, D)), rng.normal(size=OUTPUTS)
    if holes:
        x[rng.random(x.shape) < 0.3] = np.nan
    total = np.repeat(base[None], len(x), 0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plain, "_AT_ONCE", at_once)
        plain.evaluate(x, arrays, missing_left if holes else None, total)
    expected = [by_recursion(point, arrays, missing_left, base) for point in x]
    np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-12)


def test_nobody_and_no_trees():
    _, arrays, _ = forest(0)
    total = np.zeros((0, OUTPUTS))
    plain.evaluate(np.zeros((0, D)), arrays, None, total)
    none = (*arrays[:6], arrays[6][:0], arrays[7][:0])
    total = np.ones((4, OUTPUTS))
    plain.evaluate(np.zeros((4, D)), none, None, total)
    assert (total == 1).all()


def test_without_numba_an_ensemble_is_its_model(monkeypatch):
    monkeypatch.setattr(kernels, "COMPILES", False)
    monkeypatch.setattr(kernels, "evaluate", None)  # which would be asked with numba
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 6))
    y = (x[:, 0] * x[:, 1] + rng.normal(size=500) > 0).astype(int)
    x[rng.random(x.shape) < 0.1] = np.nan
    boosted = HistGradientBoostingClassifier(max_iter=20).fit(x, y)
    np.testing.assert_allclose(read_ensemble(boosted)(x)[:, 0], boosted.decision_function(x), atol=1e-9)
    x = np.nan_to_num(x)
    trees = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(x, y)
    np.testing.assert_allclose(read_ensemble(trees)(x)[:, 0], trees.predict(x), atol=1e-9)
