"""How steep a network is over Dom: slopes hold everywhere, r_lam of nobody is above, and nothing is given away where
no unit can change."""

import pytest
import torch

from bounds.nets import random_layers, random_points, random_problem, with_activations
from evenhand.bounds.activations import RELU, TANH
from evenhand.bounds.crown import output_range
from evenhand.bounds.layers import Layer
from evenhand.bounds.problem import Problem
from evenhand.bounds.steepness import Steepness, slopes_over_dom, steepness
from evenhand.bounds.tuning import unpinned
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric

PROBLEMS = [
    lambda seed: random_problem((5, 12, 2), k=1, seed=seed),
    lambda seed: random_problem((4, 8, 8, 1), k=1, seed=seed, given_sigma=True, discrete=False),
    lambda seed: random_problem((3, 6, 5, 4, 2), k=0, seed=seed, discrete=False),
    lambda seed: random_problem((4, 9, 1), k=1, seed=seed).with_layers(
        with_activations(random_layers((4, 9, 1), seed), RELU, TANH)
    ),
]


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("seed", range(3))
def test_slopes_and_r_lam_are_below(make, seed):
    problem = make(seed)
    hull = unpinned(problem)
    x = random_points(problem, 400, seed).requires_grad_(True)
    low, high = slopes_over_dom(hull)
    for j in range(low.shape[0]):
        (slope,) = torch.autograd.grad(problem.f(x)[:, j].sum(), x, retain_graph=True)
        assert (slope >= low[j] - 1e-9).all()
        assert (slope <= high[j] + 1e-9).all()
    known = steepness(hull, output_range(problem))
    x = x.detach()
    other = torch.cat([random_points(problem, 400, seed + 50), (x + 0.05 * torch.randn_like(x)).clamp(-1, 1)])
    other = problem.box.round(other)
    for lam in (0.0, 0.3 * known.steep**2, 1.2 * known.steep**2, 9.0 * known.steep**2):
        gain = problem.gain(torch.cat([x, x]), other, lam).max()
        assert gain <= known.largest(lam) + 1e-9
        assert known.largest(lam) <= known.ceiling


def test_a_linear_network_is_known_exactly():
    """h = a x_0 + c x_1, x_0 free in [-1, 1], c^2 < lam: r_lam = (2 a)^2 lam / (lam - c^2), reached from the ends."""
    a, c, lam = 0.7, 0.5, 0.4
    layers = [Layer(torch.tensor([[a, c]], dtype=torch.float64), torch.zeros(1, dtype=torch.float64))]
    metric = FairMetric(torch.tensor([[1.0], [0.0]], dtype=torch.float64))
    problem = Problem(layers, metric, Box([-1.0, -50.0], [1.0, 50.0]))
    known = steepness(unpinned(problem), output_range(problem))
    assert known.largest(lam) == pytest.approx((2 * a) ** 2 * lam / (lam - c**2), rel=1e-6)


def test_the_largest_of_the_formula():
    rho = torch.linspace(0, 3, 300_001, dtype=torch.float64)
    for jump, steep, ceiling, reach in [
        (1.0, 2.0, 30.0, 3.0),
        (1.0, 2.0, 4.0, 3.0),
        (0.5, 0.0, 1.0, 3.0),
        (2, 1, 3, 1),
    ]:
        known = Steepness(jump, steep, ceiling, reach)
        for lam in (0.0, 1.0, 4.0, 4.5, 6.0, 40.0):
            curve = (jump + steep * rho).square().clamp(max=ceiling) - lam * rho.square()
            best = float(curve[rho <= reach].max())
            assert best - 1e-9 <= known.largest(lam) <= best + 1e-3


@pytest.mark.parametrize(("jump", "steep"), [(0.0, 2.0), (0.3, 2.0), (1.0, 0.5)])
def test_its_own_best_lam(jump, steep):
    """lam * eps + J^2 lam / (lam - L^2) is smallest where it is (J + L sqrt(eps))^2."""
    eps = 0.01
    steepness = Steepness(jump, steep, ceiling=1e6, reach=1e6)
    lam = steepness.best_lam(eps)
    assert lam * eps + steepness.largest(lam) == pytest.approx((jump + steep * eps**0.5) ** 2, rel=1e-6)
