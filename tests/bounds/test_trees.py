from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from evenhand import Box, FairMetric, audit, certify
from evenhand.bounds.trees import bound_trees, people
from evenhand.ensembles.read import read_ensemble
from evenhand.ensembles.worst_case import worst_case
from evenhand.headline import stands
from evenhand.judged import Judged
from evenhand.search.geometry import Geometry

pytest.importorskip("numba", reason="the search is compiled by numba")

rng = np.random.default_rng(0)
X = np.column_stack([rng.uniform(-1, 1, (400, 3)), rng.integers(0, 2, 400)])
LABELS = {2: (X[:, 0] + X[:, 3] > 0.4).astype(int), 3: np.digitize(X[:, 0] - X[:, 1], [-0.5, 0.5])}
BOX = Box([-1, -1, -1, 0], [1, 1, 1, 1], binary=[3])
METRIC = FairMetric([[0.0], [0.3], [0.0], [1.0]])


def boosted(k):
    model = HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=6, random_state=0).fit(X, LABELS[k])
    scale = 0.25 if k == 2 else 1 / k
    geometry = Geometry(METRIC, BOX)
    return model, geometry, bound_trees(read_ensemble(model), geometry, torch.from_numpy(X[:30]), 0.01, scale)


def pairs(n=3000):
    """People and others near them or anywhere in the box."""
    x = X[rng.integers(0, len(X), n)]
    other = np.clip(x + rng.choice([0.01, 0.1, 1.0], (n, 1)) * rng.normal(size=x.shape), -1, 1)
    other[:, 3] = rng.integers(0, 2, n)
    return x, other


@pytest.mark.parametrize("k", [2, 3])
def test_nobody_lies_above_any_of_the_bounds(k):
    model, geometry, bound = boosted(k)
    x, other = pairs()
    h, h_other = (model.decision_function(v).reshape(len(x), -1) for v in (x, other))
    d_y = bound.scale * ((h - h_other) ** 2).sum(1)
    d_x = geometry.d_x(torch.from_numpy(other - x)).numpy()
    rows = torch.from_numpy(x)
    upper = bound.upper(rows).upper.numpy()
    assert (d_y - bound.lam * d_x <= upper + 1e-9).all()
    assert (upper <= bound.largest).all()
    close = d_x <= 0.01
    assert close.sum() > 100
    assert (d_y <= bound.near(rows, 0.01).numpy() + 1e-9)[close].all()
    assert (d_y[close] <= bound.everywhere).all()
    low, high = (v.numpy() for v in bound.score_range(rows, 0.01))
    if k == 2:
        score = h_other[:, 0]
    else:
        own = h.argmax(1)
        rest = h_other.copy()
        rest[np.arange(len(x)), own] = -np.inf
        score = h_other[np.arange(len(x)), own] - rest.max(1)
    assert (low - 1e-9 <= score)[close].all()
    assert (score <= high + 1e-9)[close].all()
    changed = model.predict(x) != model.predict(other)
    proved = stands(torch.from_numpy(h), torch.from_numpy(low), torch.from_numpy(high), 0.0).numpy()
    assert not (proved & changed & close).any()
    assert proved.any()


def test_a_row_is_bounded_alone():
    _, _, bound = boosted(2)
    rows = torch.from_numpy(X[:20])
    assert (bound.upper(rows).upper[7:8] == bound.upper(rows[7:8]).upper).all()


def test_certificate_closes_on_a_small_ensemble_and_the_audit_comes_close():
    model, _, _ = boosted(2)
    found = certify(model, X[100:], METRIC, 0.01, BOX, X[:100], distinct_people=True)
    assert found.r_low <= found.r_high <= 1.05 * found.r_low
    searched = audit(model, X[100:], METRIC, 0.01, BOX)
    assert 0.95 * found.r_low <= searched.r_low <= found.r_high * (1 + 1e-7)


def small(name, leaves):
    """A small ensemble of each kind that is read."""
    if name == "hist":
        return HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=leaves, random_state=0)
    if name == "gradient":
        return GradientBoostingClassifier(n_estimators=15, max_leaf_nodes=leaves, random_state=0)
    if name == "forest":
        return RandomForestClassifier(15, max_leaf_nodes=leaves, random_state=0)
    package = pytest.importorskip(name)
    if name == "lightgbm":
        return package.LGBMClassifier(n_estimators=15, num_leaves=leaves, verbose=-1, n_jobs=1)
    if name == "xgboost":
        return package.XGBClassifier(n_estimators=15, max_leaves=leaves, n_jobs=1)
    return package.CatBoostClassifier(
        iterations=15, depth=leaves.bit_length() - 1, verbose=0, thread_count=1, allow_writing_files=False
    )


@pytest.mark.parametrize("leaves", [4, 8])
@pytest.mark.parametrize("name", ["hist", "gradient", "forest", "lightgbm", "xgboost", "catboost"])
def test_the_audit_finds_what_branch_and_bound_knows(name, leaves):
    """Within 5 % of R = min over lam of lam * eps + mean r_lam, r_lam exact, inside a Pipeline too."""
    trees = small(name, leaves).fit(X, LABELS[2])
    model = make_pipeline(FunctionTransformer(), trees)
    people_, eps, arrays = X[: 10 if name == "forest" else 30], 0.01, people(Geometry(METRIC, BOX))
    found = audit(model, people_, METRIC, eps, BOX)
    assert found.r_low > 0
    ensemble = read_ensemble(trees)

    def worst(lam, **what):
        r = worst_case(ensemble, arrays, people_, lam=lam, boxes=20_000, tolerance=0.001, **what)
        assert (r.upper <= r.lower * 1.001 + 1e-8).all()
        return r.upper

    def dual(lam):
        if name == "forest":  # the total variation of votes for two classes: by how much a share rises or falls
            return lam * eps + np.max([worst(lam, weights=np.array([sign, 0.0])) for sign in (1, -1)], axis=0).mean()
        return lam * eps + worst(lam, scale=0.25).mean()

    exact = min(dual(lam) for lam in np.geomspace(0.1, 1000, 25))
    assert 0.95 * exact <= found.r_low <= exact * 1.01


def test_forests_are_searched_at_their_thresholds():
    forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(X, LABELS[2])
    judged = Judged.of(forest)
    assert judged.only_probabilities
    own = np.concatenate([t.tree_.threshold[t.tree_.feature == 0] for t in forest.estimators_])
    rounding = float(np.finfo(np.float32).eps)  # of x, which the trees round before they ask
    assert judged.jumps[0].tolist() == pytest.approx(np.unique(own).tolist(), rel=rounding, abs=rounding)
    blind = replace(judged, jumps=None)
    with pytest.MonkeyPatch.context() as patched:
        seeing_r = audit(forest, X[:25], METRIC, 0.01, BOX).r_low
        patched.setattr(Judged, "of", classmethod(lambda cls, *_: blind))
        blind_r = audit(forest, X[:25], METRIC, 0.01, BOX).r_low
    assert seeing_r >= 0.98 * blind_r > 0


def holes():
    filled = X.copy()
    filled[::6, 1] = np.nan
    return filled


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(n_estimators=1, max_depth=1).fit(X, LABELS[2]),
        HistGradientBoostingClassifier(max_iter=5, monotonic_cst=[1, 0, 0, 1]).fit(X, LABELS[2]),
        HistGradientBoostingClassifier(max_iter=5).fit(holes(), LABELS[2]),
        HistGradientBoostingClassifier(max_iter=5).fit(X[:12], LABELS[2][:12]),  # too few rows for any split
        ExtraTreesRegressor(5, max_depth=4, random_state=0).fit(X, X[:, 0]),
    ],
    ids=["one stump", "monotone", "trained with gaps", "constant", "a forest of numbers"],
)
def test_odd_ensembles_are_bracketed(model):
    found = audit(model, X[:40], METRIC, 0.05, BOX)
    proved = certify(model, X[:40], METRIC, 0.05, BOX, x_tune=X[60:92])
    assert found.r_low <= proved.r_high * (1 + 1e-9) <= 1.2 * found.r_low + 1e-9
