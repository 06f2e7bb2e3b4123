"""The local bound: nothing tried lies above it, it is nearly exact on tiny nets, and each row is on its own."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import Bounds, LinearConstraint, milp

from bounds.nets import other_points, random_layers, random_points, with_activations
from evenhand.bounds import local, partition
from evenhand.bounds.local import (
    LARGEST_WORK,
    LEAST_WORK,
    WORK,
    WORK_BY_SIGNS,
    Local,
    affordable,
    can_be_cut,
    cut,
    shells_lam,
)
from evenhand.bounds.problem import Problem
from evenhand.bounds.shells import Shells, kept_numbers, shell_values
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
    shells = Local(problem, None).upper(x, LAM)[0]
    assert (shells >= found - 1e-9).all()
    if can_be_cut(problem):
        local = cut(problem, random_points(problem, 6, 2), 0.01, LAM, work=600)
        upper = local.upper(x, LAM)[0]
        assert (upper >= found - 1e-9).all()
        assert (upper <= shells + 1e-9).all()
        if not free_column:
            assert upper.mean() <= 1.15 * found.mean()


@pytest.mark.parametrize("free_column", [False, True])
def test_pieces_cut_by_columns_alone_are_above_all_that_is_tried_and_close_to_it(monkeypatch, free_column):
    monkeypatch.setattr(partition, "FEW_RELUS", 0)
    monkeypatch.setattr(partition, "FEW_UNSURE", 0)
    problem = column_problem((3, 5, 5, 1), free_column=free_column)
    x = random_points(problem, 6, 1)
    found, shells = tried(problem, x, LAM), Local(problem, None).upper(x, LAM)[0]
    local = cut(problem, random_points(problem, 6, 2), 0.01, LAM, work=300)
    upper = local.upper(x, LAM, found)[0]
    assert (local.pieces.sign == 0).all()
    assert 64 < len(local.pieces) <= 400
    assert (upper >= found - 1e-9).all()
    assert (upper <= shells + 1e-9).all()
    if not free_column:
        assert upper.mean() <= 1.05 * found.mean()


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_shells_hold_for_any_sigma_and_several_outputs(outputs):
    g = torch.Generator().manual_seed(1)
    root = torch.randn(4, 4, generator=g, dtype=torch.float64)
    root[:, 0] = 0.0
    box = Box(-torch.ones(4), torch.ones(4), binary=[0])
    problem = Problem(random_layers((4, 6, outputs), 3), FairMetric(sigma=root.T @ root), box)
    assert not problem.separable
    x = random_points(problem, 10, 4)
    assert (Local(problem, None).upper(x, LAM)[0] >= tried(problem, x, LAM) - 1e-9).all()


def test_close_to_a_person_the_bound_is_exact():
    """Within the innermost shells no ReLU changes sign: sup (s + a rho)^2 - lam rho^2 = s^2 / (1 - a^2 / lam)."""
    problem = column_problem((2, 1), seed=2)
    x = torch.zeros(1, 2, dtype=torch.float64)
    x[0, 0] = -1.0
    (w,) = problem.layers[0].weight
    flip, slope = (2 * w[0]).item(), (w[1] / problem.sigma[1, 1].sqrt()).item()
    lam = 50 * slope**2
    exact = flip**2 / (1 - slope**2 / lam)
    assert Local(problem, None).upper(x, lam)[0].item() == pytest.approx(exact, rel=0.02)
    assert shell_values(problem, x, [lam])[0, 0, 0].item() >= flip**2


def test_the_pieces_show_an_x_that_comes_near_the_bound():
    problem = column_problem((3, 4, 4, 1))
    local = cut(problem, random_points(problem, 4, 2), 0.01, LAM, work=200)
    x = random_points(problem, 12, 5)
    upper, points, _ = local.upper(x, LAM)
    assert ((points >= problem.box.low - 1e-9) & (points <= problem.box.high + 1e-9)).all()
    gain = problem.gain(x, points, LAM)
    assert (gain <= upper + 1e-9).all()
    far = (points != x).any(1)
    assert far.sum() > 3
    assert (gain[far] / upper[far]).median() > 0.95


def test_a_row_alone_gets_the_same_bound():
    problem = column_problem((3, 4, 4, 1))
    local = cut(problem, random_points(problem, 4, 2), 0.01, LAM, work=200)
    x = random_points(problem, 4, 5)
    torch.testing.assert_close(local.upper(x, LAM)[0][2:3], local.upper(x[2:3], LAM)[0])


def test_units_of_columns_do_not_matter():
    units = torch.tensor([1.0, 30.0, 0.1, 3.0], dtype=torch.float64)
    plain, other = column_problem(), column_problem(units=units)
    x = random_points(plain, 3, 1)
    both = [
        cut(p, random_points(plain, 4, 2) * u, 0.01, LAM, work=100).upper(x * u, LAM)[0]
        for p, u in ((plain, torch.ones(4, dtype=torch.float64)), (other, units))
    ]
    torch.testing.assert_close(both[0], both[1], rtol=1e-6, atol=1e-9)


def exact(problem, x, lam, pieces=24, tangents=40):
    """r_lam of one person, (lower, upper), by mixed-integer programmes (HiGHS) over a one-hidden-layer net.

    On a piece of the range of t = f(x') - f(x) the square is below its chord; d_X is above its tangents. What is left
    is linear in x', the ReLUs' outputs p and their signs b: p >= 0, p >= z, p <= z - low (1 - b), p <= high b.
    """
    (w1, b1), (w2, b2) = ((layer.weight.numpy(), layer.bias.numpy()) for layer in problem.layers)
    low, high, d, h = problem.box.low.numpy(), problem.box.high.numpy(), problem.d, len(b1)
    reach = np.abs(w1) @ np.maximum(np.abs(low), np.abs(high))
    least, most = b1 - reach, b1 + reach
    at, f_x, price = x[0].numpy(), problem.f(x)[0, 0].item(), problem.sigma.diagonal().numpy()
    size = 2 * d + 2 * h  # x', e >= (x' - x)^2, p, b
    eye, none = np.eye(h), np.zeros
    rows = [(np.hstack([-w1, none((h, d)), eye, none((h, h))]), b1, np.inf)]
    rows += [(np.hstack([-w1, none((h, d)), eye, -np.diag(least)]), -np.inf, b1 - least)]
    rows += [(np.hstack([none((h, 2 * d)), eye, -np.diag(most)]), -np.inf, none(h))]
    for point in np.linspace(-1, 1, tangents):
        move = point * (high - low)  # e >= 2 move (x' - x) - move^2
        rows += [(np.hstack([-2 * np.diag(move), np.eye(d), none((d, 2 * h))]), -2 * move * at - move**2, np.inf)]
    limits = Bounds(
        np.concatenate([low, none(d), none(2 * h)]),
        np.concatenate([high, (high - low) ** 2, np.maximum(most, 0), np.ones(h)]),
    )
    whole = np.concatenate([none(2 * d + h), np.ones(h)])
    whole[list(problem.box.binary)] = 0.0  # the ends of a binary column are enforced below
    lower, upper = 0.0, 0.0
    widest = float(np.abs(w2[0]) @ np.maximum(most, 0)) + abs(b2[0] - f_x)
    for ends in itertools.pairwise(np.linspace(-widest, widest, pieces + 1)):
        slope = sum(ends)
        cost = -np.concatenate([none(d), -lam * price, slope * w2[0], none(h)])
        constant = slope * (b2[0] - f_x) - ends[0] * ends[1]
        change = np.concatenate([none(2 * d), w2[0], none(h)])[None]
        inside = [(change, ends[0] + f_x - b2[0], ends[1] + f_x - b2[0])]
        for pin in (low[0], high[0]):
            pinned = np.zeros((1, size))
            pinned[0, 0] = 1.0
            found = milp(
                cost,
                constraints=[LinearConstraint(*row) for row in [*rows, *inside, (pinned, pin, pin)]],
                integrality=whole,
                bounds=limits,
            )
            if found.x is not None:
                upper = max(upper, -found.fun + constant)
                reached = problem.box.round(torch.from_numpy(found.x[None, :d]))
                lower = max(lower, problem.gain(x, reached, lam).item())
    return lower, upper


def test_pieces_bracket_the_exact_supremum():
    problem = column_problem((3, 5, 1), seed=4)
    x = random_points(problem, 2, 1)
    upper = cut(problem, random_points(problem, 6, 2), 0.01, LAM, work=600).upper(x, LAM)[0]
    for i in range(2):
        least, most = exact(problem, x[i : i + 1], LAM)
        assert least <= upper[i].item() + 1e-9
        assert upper[i].item() <= 1.03 * most + 1e-3
        assert most <= 1.2 * least + 0.02  # the oracle knows what it speaks of


def test_of_a_large_network_fewer_pieces_are_made_and_of_a_small_one_more(monkeypatch):
    """Of those that are cut by columns; where signs are split the number is fixed."""
    small, large = column_problem((4, 13, 13, 1)), column_problem((4, 150, 150, 1))
    assert LEAST_WORK <= Local(large, None).work < WORK < Local(small, None).work <= LARGEST_WORK
    assert Local(column_problem((4, 13, 1)), None).work == WORK_BY_SIGNS
    x = random_points(large, 3, 0)
    sizes = []
    for usual in (local.USUAL, 8 * local.USUAL):
        monkeypatch.setattr(local, "USUAL", usual)
        sizes.append(len(cut(large, x, 0.01, LAM, work=600).pieces))
    assert sizes[0] < sizes[1]


def test_which_problems_are_cut():
    """d_X by column, one output of ReLUs, not too many of them; for others the pieces' bounds would not hold."""
    assert can_be_cut(column_problem((4, 6, 1)))
    assert not can_be_cut(column_problem((4, 6, 2)))
    assert not can_be_cut(column_problem((4, 1)))
    assert not can_be_cut(column_problem((4, local.MOST_RELUS + 1, 1)))
    box = Box(-torch.ones(4), torch.ones(4))
    tanh = with_activations(random_layers((4, 6, 1), 0), "tanh")
    diagonal = torch.eye(4, dtype=torch.float64)
    assert can_be_cut(Problem(random_layers((4, 6, 1), 0), FairMetric(sigma=diagonal), box))
    assert not can_be_cut(Problem(tanh, FairMetric(sigma=diagonal), box))
    assert not can_be_cut(Problem(random_layers((4, 6, 1), 0), FairMetric(sigma=diagonal + 0.1), box))


def test_rounding_is_paid_for():
    problem = column_problem((4, 6, 1))
    x, bound = random_points(problem, 3, 0), torch.tensor([0.0, 2.0, 5.0], dtype=torch.float64)
    more = Local(problem, None)._rounded(x, bound) - bound
    size = problem.f(x)[:, 0].square()
    torch.testing.assert_close(more, 1e-9 * bound + 1e-13 * size, rtol=1e-5, atol=1e-17)


def test_shells_of_the_last_groups_are_kept_where_they_are_small(monkeypatch):
    problem, wide = column_problem((4, 6, 1)), column_problem((4, 6, 2))
    groups = [random_points(problem, 2, seed) for seed in range(local.REMEMBERED + 1)]
    first = local._shells(problem, groups[0])
    assert local._shells(problem, groups[0]) is first
    for group in groups[1:]:
        local._shells(problem, group)
    assert len(local._KEPT[problem]) == local.REMEMBERED
    assert local._shells(problem, groups[0]) is not first
    monkeypatch.setattr(local, "KEPT", 2 * kept_numbers(wide) - 1)
    local._shells(wide, groups[0])
    assert wide not in local._KEPT


def test_no_more_pieces_are_made_for_a_person_than_may_be():
    problem = column_problem((4, 13, 13, 1))
    x = random_points(problem, 6, 1)
    local = Local(problem, partition.whole(problem))
    free, _, used = local.upper(x, LAM)
    assert used.max() > 100
    capped, _, fewer = local.upper(x, LAM, most=40)
    assert (fewer <= 40 + 2 * 16).all()  # a round is not broken off
    assert (capped >= free - 1e-12).all()
    assert capped.mean() > free.mean()


def test_who_needs_little_leaves_more_for_the_others():
    used = torch.tensor([0, 10, 1000, 3000])
    assert affordable(used, 100) == 195  # 0, 10, 195, 195
    assert affordable(used, 750) == 1990
    assert affordable(used, 2000) == 3000
    assert affordable(torch.tensor([5, 5]), 0.1) == 1


def test_cutting_that_leads_nowhere_ends():
    """A bound of work^-p is 1000^-p after 1000 of work, and hoped to fall by 100^-2p in the rest of 10^5: to .0079 and
    .1995."""
    for power, hoped, vain in [(0.3, 0.009, False), (0.3, 0.007, True), (0.1, 0.19, True), (0.1, 0.21, False)]:
        course = [(spent, float(spent) ** -power) for spent in (10, 100, 1000)]
        assert local._in_vain(course, 100_000, hoped) is vain
    assert not local._in_vain([(10, 1.0)], 100_000, 1e-9)  # nothing is known yet


def test_pieces_are_fewer_where_the_hope_is_vain():
    problem = column_problem((4, 6, 6, 1))
    x = random_points(problem, 4, 0)
    lam = 0.05 * float(problem.reach) ** -2
    all_work, little = (cut(problem, x, 1e-3, lam, work=300, hoped=hoped) for hoped in (np.inf, 1e-9))
    assert len(little.pieces) < 0.7 * len(all_work.pieces)
    assert (little.upper(x, lam)[0] >= tried(problem, x, lam) - 1e-9).all()


def test_the_lam_of_shells_is_the_best_of_those_that_there_is_time_for():
    problem = column_problem()
    x = random_points(problem, 20, 0)

    def objective(lam):
        return lam * 0.01 + float(Shells(problem, x).values([lam]).amax(2).clamp(min=0).mean())

    lams = [0.1 * 1.5**k for k in range(20)]
    best = shells_lam(problem, x, 0.01, 0.1)
    assert objective(best) == min(map(objective, lams))
    asked = []
    few = shells_lam(problem, x, 0.01, 0.1, lambda: asked.append(0) or len(asked) == 5)
    assert objective(few) == min(map(objective, lams[::4]))
