"""Branch and bound against enumeration: every cell of a small ensemble, and the cheapest person in it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from evenhand.ensembles.read import Tree, join_trees
from evenhand.ensembles.worst_case import People, worst_case

pytest.importorskip("numba", reason="the search is compiled by numba")


def random_tree(rng, d, depth, binary):
    rows = []

    def add(level):
        here = len(rows)
        rows.append([-1, 0.0, 0, 0, rng.normal(), 1])
        if level:
            j = int(rng.integers(d))
            rows[here] = [j, 0.5 if j in binary else rng.uniform(-1, 1), add(level - 1), add(level - 1), 0.0, 1]
        return here

    add(depth)
    table = np.array(rows, dtype=float)
    return Tree(*(table[:, i] for i in range(6)))


def example(seed, trees=5, depth=2, free=True):
    """Two numbers, a binary column and a one-hot block of three; one oblique free direction."""
    rng = np.random.default_rng(seed)
    d, binary = 6, {2, 3, 4, 5}
    ensemble = join_trees([random_tree(rng, d, depth, binary) for _ in range(trees)], [0] * trees, [0.3], d)
    low = np.array([-1.0, -1, 0, 0, 0, 0])
    block = np.array([-1, -1, -1, 0, 0, 0], np.int32)
    a = rng.normal(size=d)
    a /= np.linalg.norm(a)
    sigma = np.eye(d) - np.outer(a, a) if free else np.eye(d)
    return rng, ensemble, People(low, np.ones(d), np.array([False, False, *[True] * 4]), block, sigma)


def person(rng):
    return np.array([*rng.uniform(-1, 1, 2), rng.integers(2), *np.eye(3)[rng.integers(3)]], dtype=float)


def discrete_parts():
    return [np.array([b, *np.eye(3)[c]]) for b, c in itertools.product((0.0, 1.0), range(3))]


def by_enumeration(ensemble, people, x, lam):
    """The largest (h' - h)^2 - lam d_X over all cells: constant outputs, a small quadratic programme for the price."""
    cuts = [np.unique(ensemble.threshold[ensemble.feature == j]) for j in (0, 1)]
    edges = [np.concatenate([[-1.0], c[(c > -1) & (c < 1)], [1.0]]) for c in cuts]
    best = 0.0
    for tail in discrete_parts():
        for i, j in itertools.product(range(len(edges[0]) - 1), range(len(edges[1]) - 1)):
            box = [(edges[0][i], edges[0][i + 1]), (edges[1][j], edges[1][j + 1])]
            middle = np.array([*(np.mean(side) for side in box), *tail])

            def price(z, tail=tail):
                e = np.array([*z, *tail]) - x
                return e @ people.sigma @ e

            start = [np.clip(x[k], *box[k]) for k in (0, 1)]
            found = minimize(price, start, bounds=box, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-10})
            gain = (ensemble(middle[None])[0, 0] - ensemble(x[None])[0, 0]) ** 2
            best = max(best, gain - lam * max(found.fun, 0.0))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_exact_against_enumeration(seed):
    rng, ensemble, people = example(seed)
    x = person(rng)
    lam = float(rng.uniform(0.3, 5))
    found = worst_case(ensemble, people, x[None], lam=lam, boxes=5000, tolerance=1e-6)
    expected = by_enumeration(ensemble, people, x, lam)
    assert found.upper[0] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert found.lower[0] == pytest.approx(expected, rel=1e-3, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), lam=st.floats(0, 10), boxes=st.integers(0, 60), width=st.sampled_from([0.0, 0.2]))
def test_no_person_lies_above_the_bound(seed, lam, boxes, width):
    rng, ensemble, people = example(seed)
    ensemble = ensemble.softened(np.array([width, width, 0, 0, 0, 0]), {} if width == 0 else {2: (0.0, 1.0)})
    x = person(rng)
    found = worst_case(ensemble, people, x[None], lam=lam, boxes=boxes)
    others = np.array([person(rng) for _ in range(400)] + [x])
    others[:200, :2] = np.clip(x[:2] + 0.1 * rng.normal(size=(200, 2)), -1, 1)
    e = others - x
    gain = (ensemble(others)[:, 0] - ensemble(x[None])[0, 0]) ** 2 - lam * ((e @ people.sigma) * e).sum(1)
    assert gain.max() <= found.upper[0] + 1e-9
    assert found.lower[0] <= found.upper[0]
    w = found.witness[0]
    reached = (ensemble(w[None])[0, 0] - ensemble(x[None])[0, 0]) ** 2 - lam * (w - x) @ people.sigma @ (w - x)
    assert found.lower[0] == pytest.approx(max(reached, 0.0), abs=1e-9)
    assert w[3:].sum() == 1
    assert set(w[2:]) <= {0.0, 1.0}


def test_soft_splits_close_too():
    rng, ensemble, people = example(3)
    soft = ensemble.softened(np.array([0.3, 0.3, 0, 0, 0, 0]))
    x = np.array([person(rng) for _ in range(5)])
    found = worst_case(soft, people, x, lam=1.0, boxes=5000)
    assert (found.upper <= 1.02 * found.lower + 1e-6).all()


def test_radius_keeps_to_neighbours_and_weights_give_the_range_of_scores():
    rng, ensemble, people = example(1, free=False)
    x = person(rng)
    near = worst_case(ensemble, people, x[None], radius=0.04, boxes=5000)
    others = np.repeat(x[None], 4000, 0)
    move = rng.normal(size=(4000, 2))
    others[:, :2] += 0.2 * rng.uniform(0, 1, (4000, 1)) * move / np.linalg.norm(move, axis=1, keepdims=True)
    others = others[(np.abs(others[:, :2]) <= 1).all(1)]
    h = ensemble(others)[:, 0] - ensemble(x[None])[0, 0]
    assert near.upper[0] == pytest.approx((h**2).max(), abs=1e-6)
    up = worst_case(ensemble, people, x[None], radius=0.04, weights=np.ones(1), boxes=5000).upper[0]
    assert up == pytest.approx(max(h.max(), 0.0), abs=1e-6)


def all_soft(seed, outputs=1):
    rng, ensemble, people = example(seed, trees=4)
    if outputs == 2:
        ensemble = replace(ensemble, output=np.array([0, 1, 0, 1], np.int32), base=np.array([0.3, -0.2]))
    return rng, ensemble.softened(np.array([0.3, 0.3, 0, 0, 0, 0]), dict.fromkeys((2, 3, 4, 5), (0.0, 1.0))), people


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    lam=st.floats(0, 5),
    radius=st.sampled_from([0.0, 0.02, 0.5, np.inf]),
    boxes=st.sampled_from([0, 5, 60]),
    outputs=st.integers(1, 2),
)
def test_no_person_lies_above_the_bound_of_ramps(seed, lam, radius, boxes, outputs):
    rng, ensemble, people = all_soft(seed, outputs)
    x = person(rng)
    weights = None if seed % 2 else rng.normal(size=outputs)
    found = worst_case(ensemble, people, x[None], lam=lam, radius=radius, weights=weights, boxes=boxes, scale=0.5)
    others = np.array([person(rng) for _ in range(300)] + [x])
    others[:200, 2:] = np.where(rng.random((200, 1)) < 0.7, x[2:], others[:200, 2:])
    others[:100, :2] = np.clip(x[:2] + 0.1 * rng.normal(size=(100, 2)), -1, 1)
    e, change = others - x, ensemble(others) - ensemble(x[None])
    cost = ((e @ people.sigma) * e).sum(1)
    gain = (0.5 * (change**2).sum(1) if weights is None else change @ weights) - lam * cost
    assert gain[cost <= radius].max(initial=0.0) <= found.upper[0] + 1e-9
    move, h = found.witness[0] - x, ensemble(found.witness) - ensemble(x[None])
    reached = 0.5 * (h**2).sum() if weights is None else h[0] @ weights
    assert found.lower[0] == pytest.approx(reached - lam * move @ people.sigma @ move, abs=1e-9)
    assert move @ people.sigma @ move <= radius + 1e-9
    assert people.low[0] - 1e-12 <= found.witness[0, 0] <= people.high[0] + 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_ramps_are_exact_against_a_grid(seed):
    """All six discrete people times a fine grid of the two numbers."""
    rng, ensemble, people = all_soft(seed)
    x, lam = person(rng), float(rng.uniform(0.2, 2))
    found = worst_case(ensemble, people, x[None], lam=lam, boxes=20_000, tolerance=1e-3)
    grid = np.linspace(-1, 1, 401)
    best = 0.0
    for tail in discrete_parts():
        others = np.array([[a, b, *tail] for a, b in itertools.product(grid, grid)])
        e = others - x
        gain = (ensemble(others)[:, 0] - ensemble(x[None])[0, 0]) ** 2 - lam * ((e @ people.sigma) * e).sum(1)
        best = max(best, gain.max())
    assert best - 1e-9 <= found.upper[0] <= best + 0.02 * best + 1e-3
