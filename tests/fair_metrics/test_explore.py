import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.fair_metrics.explore import explore, log_likelihood, slope


@given(yes=st.integers(1, 30), no=st.integers(1, 30), length=st.floats(1e-3, 1e3))
@settings(max_examples=30, deadline=None)
def test_one_difference_has_a_closed_form(yes, no, length):
    """If all pairs differ alike, 2 / (1 + exp(s)) must be the share of comparable ones: s = log(1 + 2 no / yes)."""
    x = np.full((yes + no, 1), length)
    metric = explore(x, 0 * x, np.arange(yes + no) < yes, tol=1e-14)
    assert float(metric.sigma[0, 0]) * length**2 == pytest.approx(np.log1p(2 * no / yes), rel=1e-4)


def test_independent_features_have_the_closed_form_of_each():
    """Pairs differ in one feature each: the likelihood is a sum over the diagonal; no incomparable pair gives 0."""
    answers = {0: (20, 0), 1: (10, 10), 2: (5, 15)}
    rows = [(j, said) for j, (yes, no) in answers.items() for said in [1] * yes + [0] * no]
    x = np.eye(3)[[j for j, _ in rows]]
    sigma = explore(x, np.zeros_like(x), [said for _, said in rows], tol=1e-12).sigma.numpy()
    np.testing.assert_allclose(np.diag(sigma), [0, np.log(3), np.log(7)], atol=1e-4)
    np.testing.assert_allclose(sigma - np.diag(np.diag(sigma)), 0, atol=1e-4)


@pytest.mark.parametrize("d", [1e-12, 1e-3, 1.0, 50.0, 700.0, 1e4])
def test_likelihood_and_slope_are_exact_for_tiny_and_huge_distances(d):
    with mpmath.workdps(40 if d < 100 else 6000):
        e = mpmath.exp(mpmath.mpf(d))
        yes, no = mpmath.log(2 / (1 + e)), mpmath.log((e - 1) / (e + 1))
        slopes = (-e / (1 + e), 1 / mpmath.sinh(mpmath.mpf(d)))
    both = np.array([d, d])
    answers = np.array([True, False])
    np.testing.assert_allclose(log_likelihood(both, answers), [float(yes), float(no)], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(slope(both, answers), [float(s) for s in slopes], rtol=1e-12, atol=1e-300)


def planted(n=600, d=6, k=2, seed=0, dtype=np.float64):
    """Answers drawn from the model itself with Sigma = I - P_ran(A)."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(d, k)))[0]
    sigma = np.eye(d) - directions @ directions.T
    x1, x2 = rng.normal(size=(2, n, d))
    distance = np.einsum("ni,ij,nj->n", x1 - x2, sigma, x1 - x2) / d
    same = rng.random(n) < 2 / (1 + np.exp(distance))
    return x1.astype(dtype), x2.astype(dtype), same, sigma / d


def test_recovers_a_planted_subspace_and_stops_by_itself():
    x1, x2, same, sigma = planted(n=8000)
    found = explore(x1, x2, same).sigma.numpy()  # a warning, an error in the tests, would say that it did not stop
    assert np.linalg.eigvalsh(found).min() > -1e-9
    values, vectors = np.linalg.eigh(found)
    free = vectors[:, :2]
    assert values[1] < 0.1 * values[2]
    assert np.linalg.norm(sigma @ free, 2) < 0.1 * np.linalg.norm(sigma, 2)  # the planted directions
    assert np.linalg.norm(found - sigma, 2) < 0.25 * np.linalg.norm(sigma, 2)


def test_no_small_change_of_sigma_is_more_likely():
    """The problem is convex: a local optimum among positive semi-definite matrices is the optimum."""
    x1, x2, same, _ = planted(n=500, d=3, k=1)
    found = explore(x1, x2, same, tol=1e-12).sigma.numpy()

    def value(sigma):
        return log_likelihood(np.einsum("ni,ij,nj->n", x1 - x2, sigma, x1 - x2), same).mean()

    rng = np.random.default_rng(0)
    for _ in range(200):
        root = rng.normal(size=(3, 3))
        other = found + 0.02 * (root @ root.T / 3 - found)
        assert value(other) <= value(found) + 1e-9


def test_huge_distances_do_not_overflow():
    x1, x2, same, _ = planted(n=200, dtype=np.float32)
    sigma = explore(1e6 * x1, 1e6 * x2, same).sigma
    assert str(sigma.dtype) == "torch.float32"
    assert np.isfinite(sigma.numpy()).all()
    assert float(sigma.abs().max()) > 0


def test_the_draw_of_pairs_is_seeded():
    x1, x2, same, _ = planted(n=400, d=4)
    fits = [explore(x1, x2, same, max_pairs=100, random_state=seed).sigma.numpy() for seed in (3, 3, 4)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])


def test_says_so_when_it_has_to_stop_early():
    x1, x2, same, _ = planted(n=100)
    with pytest.warns(UserWarning, match="raise max_iter"):
        explore(x1, x2, same, max_iter=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"comparable": [1, 1, 1]}, "both answers"),
        ({"comparable": [0, 0, 0]}, "both answers"),
        ({"comparable": [0, 1, 2]}, "0 or 1"),
        ({"comparable": [0, 1]}, "same shape"),
        ({"x1": np.zeros((3, 3))}, "same shape"),
        ({"x1": np.full((3, 2), np.nan)}, "NaN"),
        ({"x1": np.ones((3, 2)) * [[0], [1], [2]]}, "pair 0 is called incomparable"),
    ],
)
def test_bad_input(change, message):
    good = {"x1": np.ones((3, 2)), "x2": np.ones((3, 2)) * [[0], [1], [2]], "comparable": [0, 1, 1]}
    with pytest.raises(ValueError, match=message):
        explore(**good | change)
