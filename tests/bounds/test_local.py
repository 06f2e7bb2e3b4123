"""The local bound: nothing tried lies above it, it is nearly exact on tiny nets, and each row is on its own."""

import pytest
import torch

from bounds.nets import other_points, random_layers, random_points
from evenhand.bounds.local import Local, can_be_cut, cut
from evenhand.bounds.problem import Problem
from evenhand.bounds.shells import shell_values
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric

LAM = 2.0


def column_problem(sizes=(4, 6, 1), seed=0, free_column=False, units=None):
    """d_X by column; column 0 is binary and free, column 1 free as well if asked for."""
    d = sizes[0]
    price = torch.rand(d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.5
    price[0] = 0.0
    if free_column:
        price[1] = 0.0
    unit = torch.ones(d, dtype=torch.float64) if units is None else units
    layers = random_layers(sizes, seed, scale=1.5)
    layers[0] = layers[0]._replace(weight=layers[0].weight / unit)
    box = Box(-unit, unit, binary=[0])
    return Problem(layers, FairMetric(sigma=torch.diag(price / unit.square())), box)


def tried(problem, x, lam):
    """The largest d_Y - lam * d_X among many points: (n,)."""
    x_other = other_points(problem, x, 500, 3)
    wide = x[:, None].expand_as(x_other)
    best = problem.gain(wide, x_other, lam).max(1)
    point = x_other[torch.arange(len(x)), best.indices]
    value = best.values
    generator = torch.Generator().manual_seed(0)
    span = problem.box.high - problem.box.low
    for step in range(200):  # random steps that shrink
        noise = torch.randn(len(x), problem.d, generator=generator, dtype=torch.float64) * span * 0.97**step
        new = problem.box.round(point + 0.3 * noise)
        gain = problem.gain(x, new, lam)
        point = torch.where((gain > value)[:, None], new, point)
        value = torch.maximum(value, gain)
    return value.clamp(min=0)


@pytest.mark.parametrize("sizes", [(4, 6, 1), (3, 4, 4, 1), (4, 1)])
@pytest.mark.parametrize("free_column", [False, True])
def test_shells_and_pieces_are_above_all_that_is_tried_and_close_to_it(sizes, free_column):
    problem = column_problem(sizes, free_column=free_column)
    x = random_points(problem, 6, 1)
    found = tried(problem, x, LAM)
    shells = Local(problem, None).upper(x, LAM)
    assert (shells >= found - 1e-9).all()
    if can_be_cut(problem):
        local = cut(problem, random_points(problem, 6, 2), 0.01, LAM, most=80)
        upper = local.upper(x, LAM)
        assert (upper >= found - 1e-9).all()
        assert (upper <= shells + 1e-9).all()
        if not free_column:
            assert upper.mean() <= 1.15 * found.mean()


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_shells_hold_for_any_sigma_and_several_outputs(outputs):
    g = torch.Generator().manual_seed(1)
    root = torch.randn(4, 4, generator=g, dtype=torch.float64)
    root[:, 0] = 0.0
    box = Box(-torch.ones(4), torch.ones(4), binary=[0])
    problem = Problem(random_layers((4, 6, outputs), 3), FairMetric(sigma=root.T @ root), box)
    assert not problem.separable
    x = random_points(problem, 10, 4)
    assert (Local(problem, None).upper(x, LAM) >= tried(problem, x, LAM) - 1e-9).all()


def test_close_to_a_person_the_bound_is_exact():
    """Within the innermost shells no ReLU changes sign: sup (s + a rho)^2 - lam rho^2 = s^2 / (1 - a^2 / lam)."""
    problem = column_problem((2, 1), seed=2)
    x = torch.zeros(1, 2, dtype=torch.float64)
    x[0, 0] = -1.0
    (w,) = problem.layers[0].weight
    flip, slope = (2 * w[0]).item(), (w[1] / problem.sigma[1, 1].sqrt()).item()
    lam = 50 * slope**2
    exact = flip**2 / (1 - slope**2 / lam)
    assert Local(problem, None).upper(x, lam).item() == pytest.approx(exact, rel=0.02)
    assert shell_values(problem, x, [lam])[0, 0, 0].item() >= flip**2


def test_a_row_alone_gets_the_same_bound():
    problem = column_problem((3, 4, 4, 1))
    local = cut(problem, random_points(problem, 4, 2), 0.01, LAM, most=30)
    x = random_points(problem, 4, 5)
    torch.testing.assert_close(local.upper(x, LAM)[2:3], local.upper(x[2:3], LAM))


def test_units_of_columns_do_not_matter():
    units = torch.tensor([1.0, 30.0, 0.1, 3.0], dtype=torch.float64)
    plain, other = column_problem(), column_problem(units=units)
    x = random_points(plain, 3, 1)
    both = [
        cut(p, random_points(plain, 4, 2) * u, 0.01, LAM, most=20).upper(x * u, LAM)
        for p, u in ((plain, torch.ones(4, dtype=torch.float64)), (other, units))
    ]
    torch.testing.assert_close(both[0], both[1], rtol=1e-6, atol=1e-9)
