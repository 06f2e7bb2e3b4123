import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

from evenhand import FairMetric
from evenhand.postprocess import glif, glif_new, glif_objective, laplacian, similarity_graph

METRIC = FairMetric(np.array([[1.0], [0.0], [0.0]]))


def dense_graph(n, seed, density=0.4):
    rng = np.random.default_rng(seed)
    w = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    return w + w.T


def by_definition(f, y, w, lam, normalised):
    """Sums over pairs, as written in the paper."""
    degree = w.sum(axis=1)
    f_scaled = f / np.sqrt(np.where(degree > 0, degree, 1))[:, None] if normalised else f
    pairs = itertools.combinations(range(len(y)), 2)
    return ((f - y) ** 2).sum() + lam * sum(w[i, j] * ((f_scaled[i] - f_scaled[j]) ** 2).sum() for i, j in pairs)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_against_the_dense_closed_form_and_the_definition(normalised, outputs):
    n, lam = 30, 2.5
    w, y = dense_graph(n, 0), np.random.default_rng(1).normal(size=(n, outputs))
    found = glif(y, graph=w, lam=lam, normalised=normalised)
    L = laplacian(w, normalised=normalised).toarray()
    np.testing.assert_allclose(found.outputs, np.linalg.solve(np.eye(n) + lam * L, y), atol=1e-10)
    assert found.objective == pytest.approx(by_definition(found.outputs, y, w, lam, normalised))
    assert found.objective_before == pytest.approx(by_definition(y, y, w, lam, normalised))
    assert found.objective == pytest.approx(glif_objective(found.outputs, y, w, lam, normalised=normalised))


def test_against_a_general_optimiser():
    w, y = dense_graph(6, 3), np.random.default_rng(0).normal(size=(6, 1))
    best = minimize(lambda f: by_definition(f[:, None], y, w, 1.5, False), y[:, 0], tol=1e-12)
    np.testing.assert_allclose(glif(y[:, 0], graph=w, lam=1.5).outputs, best.x, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 25), st.floats(0, 20), st.booleans(), st.integers(0, 99))
def test_coordinate_and_exact_agree_and_never_raise_the_objective(n, lam, normalised, seed):
    w, y = dense_graph(n, seed), np.random.default_rng(seed).normal(size=n)
    exact = glif(y, graph=w, lam=lam, normalised=normalised)
    slow = glif(y, graph=w, lam=lam, normalised=normalised, method="coordinate", sweeps=5000, tolerance=1e-11)
    np.testing.assert_allclose(exact.outputs, slow.outputs, atol=1e-7)
    assert exact.objective <= exact.objective_before + 1e-9
    if not normalised:
        assert exact.outputs.mean() == pytest.approx(y.mean(), abs=1e-9)  # the Laplacian keeps the mean
        assert y.min() - 1e-9 <= exact.outputs.min() <= exact.outputs.max() <= y.max() + 1e-9


def test_conjugate_gradients_agree_with_factorisation(monkeypatch):
    x = np.random.default_rng(0).normal(size=(400, 3))
    y = x[:, 0]
    direct = glif(y, x, METRIC, lam=3.0)
    monkeypatch.setattr("evenhand.postprocess.DIRECT", 10)
    np.testing.assert_allclose(glif(y, x, METRIC, lam=3.0).outputs, direct.outputs, atol=1e-6)


def test_graph_is_of_fair_distances():
    """Every weight is exp(-theta d_X) of the metric itself, and the free direction plays no part."""
    x = np.random.default_rng(0).normal(size=(60, 3))
    w = similarity_graph(x, METRIC, neighbours=5, theta=0.7)
    d_x = METRIC.pairwise(x, x).numpy()
    i, j = w.nonzero()
    np.testing.assert_allclose(w.toarray()[i, j], np.exp(-0.7 * d_x[i, j]), rtol=1e-4)
    assert (abs(w - w.T)).max() == 0
    assert np.diff(w.indptr).min() >= 5
    moved = x + np.array([9.0, 0, 0]) * np.arange(60)[:, None]
    np.testing.assert_allclose(
        similarity_graph(moved, METRIC, neighbours=5, theta=0.7).toarray(), w.toarray(), atol=1e-6
    )


def test_threshold_alone_is_every_close_pair():
    x = np.random.default_rng(0).normal(size=(40, 3))
    metric = FairMetric(sigma=np.diag([0.0, 1.0, 4.0]))
    w = similarity_graph(x, metric, neighbours=None, tau=0.5)
    d_x = metric.pairwise(x, x).numpy()
    expected = (d_x <= 0.5) & ~np.eye(40, dtype=bool)
    assert np.array_equal(w.toarray() > 0, expected)


def test_large_lam_treats_connected_people_alike_and_leaves_the_others():
    x = np.array([[0, 0, 0], [5, 0, 0], [0, 9, 9]], dtype=float)  # the first two differ in what does not matter
    found = glif([0.2, 0.8, 0.9], x, METRIC, lam=1e6, tau=1.0)
    np.testing.assert_allclose(found.outputs, [0.5, 0.5, 0.9], atol=1e-4)
    assert "1 rows have no similar row" in str(found)


@pytest.mark.parametrize("tau", [None, 1.0])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_new_people_minimise_the_objective_by_themselves(shape, tau):
    rng = np.random.default_rng(0)
    metric = FairMetric([[1.0], [0.0], [0.0]])
    known, new = rng.normal(size=(40, 3)), rng.normal(size=(6, 3))
    f, y = rng.normal(size=(40, *shape)), rng.normal(size=(6, *shape))
    found = glif_new(y, new, f, known, metric, lam=0.7, neighbours=5, theta=2.0, tau=tau)
    for i in range(6):
        d_x = ((new[i, 1:] - known[:, 1:]) ** 2).sum(1)
        near = np.argsort(d_x)[:5]
        w = np.exp(-2.0 * d_x[near]) * (d_x[near] <= (np.inf if tau is None else tau))

        def objective(value, w=w, near=near, i=i):
            value = value.reshape(shape)
            return ((value - y[i]) ** 2).sum() + 0.7 * (w.reshape(-1, *[1] * len(shape)) * (value - f[near]) ** 2).sum()

        best = minimize(objective, np.zeros(max(1, int(np.prod(shape)))), tol=1e-12).x.reshape(shape)
        np.testing.assert_allclose(found[i], best, atol=1e-5)
    alone = glif_new(y[:1], new[:1], f, known, metric, lam=0.7, neighbours=5, theta=2.0, tau=tau)
    np.testing.assert_allclose(alone, found[:1])  # whoever else is new


def test_new_people_of_other_shapes_are_refused():
    metric = FairMetric.euclidean(1)
    with pytest.raises(ValueError, match="one kind"):
        glif_new([[1.0, 2.0]], [[0.0]], [0.0], [[0.0]], metric)
    with pytest.raises(ValueError, match="of the same people"):
        glif_new([1.0], [[0.0], [1.0]], [0.0], [[0.0]], metric)
    with pytest.raises(ValueError, match="lam must be zero or positive"):
        glif_new([1.0], [[0.0]], [0.0], [[0.0]], metric, lam=-1.0)
    with pytest.raises(ValueError, match="lam must be zero or positive, got '1'"):
        glif_new([1.0], [[0.0]], [0.0], [[0.0]], metric, lam="1")
    with pytest.raises(ValueError, match="neighbours=, or tau="):
        glif_new([1.0], [[0.0]], [0.0], [[0.0]], metric, neighbours=None)


def test_lam_zero_changes_nothing():
    y = np.array([0.1, 0.9])
    np.testing.assert_array_equal(glif(y, graph=np.ones((2, 2)), lam=0).outputs, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outputs": [np.nan, 1.0], "graph": np.ones((2, 2))}, "finite"),
        ({"outputs": [0.0, 1.0]}, "say who is similar"),
        ({"outputs": [0.0, 1.0], "graph": np.ones((3, 3))}, r"\(2, 2\)"),
        ({"outputs": [0.0, 1.0], "graph": np.array([[0, 1], [0, 0]])}, "symmetric"),
        ({"outputs": [0.0, 1.0], "graph": -np.ones((2, 2))}, "not negative"),
        ({"outputs": [0.0, 1.0], "graph": np.ones((2, 2)), "lam": -1}, "lam"),
        ({"outputs": [0.0, 1.0], "graph": np.ones((2, 2)), "lam": "1"}, "lam must be zero or positive, got '1'"),
        ({"outputs": [0.0, 1.0], "graph": np.ones((2, 2)), "method": "fast"}, "method"),
        ({"outputs": [0.0, 1.0], "X": np.zeros((2, 3)), "fair_metric": METRIC, "neighbours": None}, "tau"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        glif(**arguments)


def test_too_few_sweeps_are_an_error_not_a_wrong_answer():
    with pytest.raises(ArithmeticError, match="sweeps"):
        glif(np.arange(9.0), graph=sparse.csr_array(dense_graph(9, 0)), lam=100, method="coordinate", sweeps=1)


PROGRAM = """
import resource
import numpy as np
from evenhand import FairMetric
from evenhand.postprocess import glif
rng = np.random.default_rng(0)
x = rng.normal(size=(20_000, 10)) @ rng.normal(size=(10, 10))
y = rng.normal(size=20_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
glif(y, x, FairMetric(np.eye(10)[:, :2]), lam=1.0)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_pairs():
    """All pairs of 20,000 people would take 3 GB."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.5
