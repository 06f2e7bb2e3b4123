"""The domain with free directions against brute force over its vertices."""

import copy
import itertools
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from evenhand.domain import Box, FreeBox

BOX = Box([-1.0, 0, 0, 0, 0, 2], [2.0, 1, 1, 1, 1, 3], blocks=[(1, 2, 3)], binary=[4])


def vertices():
    hot = torch.eye(3, dtype=torch.float64)
    return torch.stack(
        [
            torch.cat([torch.tensor([a]), hot[i], torch.tensor([b, c])]).double()
            for a, i, b, c in itertools.product((-1.0, 2.0), range(3), (0.0, 1.0), (2.0, 3.0))
        ]
    )


def free_box(seed=0, k=1):
    """BOX, freed along k random directions that leave the binary column alone."""
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(6, k, generator=generator, dtype=torch.float64)
    directions[4] = 0
    people = BOX.round(4 * torch.randn(30, 6, generator=generator, dtype=torch.float64))
    return BOX.freed(directions, people), people


def corners_of(free):
    """All M p + A z with p a vertex of the box and z at its ends."""
    ends = itertools.product(*zip(free.free_low.tolist(), free.free_high.tolist(), strict=True))
    z = torch.tensor(list(ends), dtype=torch.float64)
    p = vertices()
    return (p - p @ free.free @ free.free.T)[:, None] + (z @ free.free.T)[None]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-5, 5), min_size=6, max_size=6), st.integers(0, 5), st.sampled_from([1, 2]))
def test_a_free_box_against_its_vertices(values, seed, k):
    free, people = free_box(seed, k)
    direction = torch.tensor(values, dtype=torch.float64)
    corners = corners_of(free).reshape(-1, 6)
    assert free.support(direction).item() == pytest.approx((corners @ direction).max().item(), abs=1e-9)
    torch.testing.assert_close(free.low, corners.amin(0))
    torch.testing.assert_close(free.high, corners.amax(0))
    nearest = free.project(direction[None])[0]
    assert ((corners - nearest) @ (direction - nearest)).max().item() <= 1e-5  # Kolmogorov's criterion
    probes = torch.randn(200, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert (probes @ nearest <= free.support(probes) + 1e-6).all()  # inside every half-space that holds Dom
    rounded = free.round(direction[None])
    assert free.contains(rounded).all()
    assert free.contains(people).all()
    torch.testing.assert_close(free.round(people), people)
    assert free.contains(corners).all()


def test_a_free_direction_runs_over_its_range_in_the_data_and_no_further():
    free, people = free_box()
    z = people @ free.free
    moved = people[:1] + (z.amax() - z[0]) * free.free.T
    assert not BOX.contains(moved).any()
    assert free.contains(moved).all()
    assert not free.contains(moved + 0.01 * free.free.T).any()
    across = torch.tensor([[9.0, 0, 0, 0, 0, 0]], dtype=torch.float64)
    assert not free.contains(people[:1] + across).any()
    half = people[:1].clone()
    half[0, 4] = 0.5  # binary and untouched: still two values
    assert not free.contains(half).any()


def test_sensitive_binary_columns_keep_their_two_values():
    directions = torch.eye(6, dtype=torch.float64)[:, [4, 0]]
    directions[4, 1] = 1.0  # the second direction mixes the binary column in: what is left of it is column 0
    free = BOX.freed(directions, vertices())
    torch.testing.assert_close(free.free.abs(), torch.eye(6, dtype=torch.float64)[:, :1])
    assert not free.touched[4]
    assert BOX.freed(torch.eye(6, dtype=torch.float64)[:, [4]], vertices()) is BOX
    assert free.restrict([0, 1, 2, 3, 5]).free.shape == (5, 1)
    mixed = torch.tensor([[1.0], [0], [0], [0], [0.8], [0]], dtype=torch.float64)
    assert BOX.freed(mixed, vertices()).touched[4]  # a binary column that only goes along is carried beyond its values
    with pytest.raises(ValueError, match=r"use the column\(s\) \[0\]"):
        free.restrict([4, 5])
    assert repr(free) == f"{BOX!r}, free along 1 directions"


def test_one_binary_column_that_is_carried_along_has_one_of_its_values_somewhere_on_the_way():
    """From (1.2, 1.6) along (1, 1) the square is entered at (0.6, 1); the person there is (0, 0.4)."""
    half = 0.5**0.5
    free = FreeBox(Box(0.0, 1.0, binary=[0], d=2), [[half], [half]], [-9.0], [9.0])
    x = torch.tensor([[1.2, 1.6], [1.6, 1.2], [0.2, 1.8]], dtype=torch.float64)
    assert free.contains(x).tolist() == [True, True, False]


def test_a_free_box_survives_a_copy():
    free, people = free_box()
    free.turned(free.free)
    again = pickle.loads(pickle.dumps(copy.deepcopy(free)))
    torch.testing.assert_close(again.low, free.low)
    assert again.contains(people).all()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((torch.ones(5, 1), [0.0], [1.0]), r"must be \(6, k\)"),
        ((torch.eye(6)[:, :1], [0.0, 0.0], [1.0]), "k limits"),
        ((torch.ones(6, 1), [0.0], [1.0]), "orthonormal"),
        ((torch.eye(6)[:, :2] * torch.tensor([1.0, 2.0]), [0.0, 0.0], [1.0, 1.0]), "orthonormal"),
        ((torch.eye(6)[:, :1], [2.0], [1.0]), "low <= high"),
        ((torch.eye(6)[:, :2], [0.0, 2.0], [1.0, 1.0]), "low <= high"),
        ((torch.eye(6)[:, :1], [0.0], [float("inf")]), "finite"),
    ],
)
def test_impossible_free_directions_are_refused(given, says):
    with pytest.raises(ValueError, match=says):
        FreeBox(BOX, *given)


def test_the_nearest_point_is_found_though_one_direction_is_in_place_already():
    """Free along (1, 1, 0) and (0, 0, 1): across them people differ by (x_0 - x_1) / sqrt(2), at most 1 / sqrt(2)."""
    half = 0.5**0.5
    free = FreeBox(Box(0.0, 1.0, d=3), [[half, 0.0], [half, 0.0], [0.0, 1.0]], [-9.0, -9.0], [9.0, 9.0])
    nearest = free.project(torch.tensor([[2.0, 0.5, 0.5]], dtype=torch.float64))[0]
    torch.testing.assert_close(nearest, torch.tensor([1.75, 0.75, 0.5], dtype=torch.float64))


def test_a_domain_with_free_directions_takes_any_precision():
    """A search of one's own hands over float32, as the model sees it."""
    generator = torch.Generator().manual_seed(0)
    box = Box([0.0] * 3, [1.0] * 3).freed(torch.tensor([[1.0], [1.0], [0.0]]), torch.rand(20, 3, generator=generator))
    x = 3 * torch.randn(50, 3, generator=generator)
    for change in (box.project, box.round):
        assert change(x).dtype == torch.float32
        assert torch.allclose(change(x).double(), change(x.double()), atol=1e-6)
    assert torch.equal(box.contains(x), box.contains(x.double()))


def test_projection_does_not_depend_on_units():
    generator = torch.Generator().manual_seed(1)
    direction = torch.tensor([[1.0], [1.0], [-0.5]])
    people, x = torch.rand(20, 3, generator=generator).double(), 3 * torch.randn(50, 3, generator=generator).double()
    one = Box([0.0] * 3, [1.0] * 3).freed(direction, people).project(x)
    for unit in (1e-9, 1e9):
        other = Box([0.0] * 3, [unit] * 3).freed(direction, people * unit).project(x * unit)
        assert torch.allclose(other / unit, one, atol=1e-7)


def test_what_is_pulled_back_is_inside_and_nearly_the_nearest():
    rng = np.random.default_rng(0)
    box = Box([-1.0] * 3 + [0.0] * 4, [1.0] * 7, blocks=[[3, 4, 5, 6]])
    seen = box.round(torch.from_numpy(rng.uniform(-1, 1, (50, 7))))
    domain = box.freed(torch.from_numpy(rng.normal(size=(7, 2))), seen).hull()
    away = torch.from_numpy(3 * rng.normal(size=(200, 7)))
    back, nearest = domain.pull_back(away), domain.project(away)
    ways = torch.from_numpy(rng.normal(size=(500, 7)))
    assert (back @ ways.T <= domain.support(ways) + 1e-9).all()
    far, least = ((p - away).square().sum(1) for p in (back, nearest))
    assert (far >= least - 1e-9).all()
    assert far.sum() <= 1.02 * least.sum()
    assert torch.equal(box.pull_back(away), box.project(away))


@pytest.mark.parametrize("k", [1, 2])
def test_what_is_carried_stays_inside_and_walks_to_the_nearest_point(k):
    g = torch.Generator().manual_seed(k)
    box = Box([0.0] * 5 + [-1.0], [1.0] * 5 + [1.0], blocks=[[0, 1, 2]])
    inside = box.round(torch.rand(60, 6, generator=g, dtype=torch.float64))
    free = box.freed(torch.randn(6, k, generator=g, dtype=torch.float64), inside)
    x = free.project(inside + 0.1)
    lift = free.lifted(x)
    far, ways = (torch.randn(m, 6, generator=g, dtype=torch.float64) for m in (60, 300))
    far = x + far
    for _ in range(200):  # the same step again and again
        there, lift = free.carried(far, lift)
        assert (there @ ways.T <= free.support(ways) + 1e-9).all()
    torch.testing.assert_close(there, free.project(far), atol=1e-3, rtol=0)
    still, _ = free.carried(x, free.lifted(x))
    torch.testing.assert_close(still, x, atol=1e-6, rtol=0)
    plain, nothing = box.carried(far, box.lifted(far))
    torch.testing.assert_close(plain, box.project(far))
    assert nothing.shape == (60, 0)


def test_a_point_whose_moves_are_held_by_one_column_at_a_time():
    """Newton's matrix is nearly singular there, and stays so for many steps: it was once solved without any damping."""
    free = [
        [0.04240472303976823, 0.8748848587141931],
        [0.7509397377631067, -0.2749288570180936],
        [0.40136677611133087, 0.1312932767432641],
        [0.15176536363794335, -0.11350660514001194],
        [0.39208451484298845, 0.3583497991843987],
        [0.21981925092316337, -0.014794718202928625],
        [-0.219345766519335, 0.015345076760130279],
    ]
    low = [
        -1.3975964784622192,
        -0.7130318880081177,
        -0.1516464352607727,
        -0.18623539805412292,
        -0.24770331382751465,
        0,
        0,
    ]
    high = [3.81011962890625, 7.091024875640869, 19.254501342773438, 24.27342414855957, 14.138068199157715, 1, 1]
    dom = FreeBox(Box(low, high, binary=[5, 6]), free, [-0.9966847994605342, -3.831785184062677], [10.54, 4.26])
    x = [3.8650397537694374, 6.209998427418694, 4.962218629042804, 0.9184024072158397]
    x = torch.tensor([[*x, 5.929089991373545, 3.3597226551586394, -2.351678268356879]], dtype=torch.float64)
    a = dom.free.numpy()
    across = np.eye(7) - a @ a.T
    nearest = lsq_linear(across, across @ x[0].numpy(), (low, high), tol=1e-14)
    found = across @ (dom.project(x)[0] - x[0]).numpy()
    assert np.square(found).sum() == pytest.approx(2 * nearest.cost, rel=1e-6)


def test_rounding_of_large_columns_does_not_put_people_outside():
    """Their free coordinate may be small where they are large: 64-bit people, who are seen in 32 bits."""
    generator = torch.Generator().manual_seed(0)
    x = 1000 + torch.randn(50, 4, generator=generator, dtype=torch.float64)
    across = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]], dtype=torch.float64)
    free = Box(x.amin(0), x.amax(0)).freed(across, x)
    assert free.contains(x.float()).all()
    farthest = (x @ across)[:, 0].argmax()
    assert not free.contains(x[farthest] + 0.1 * across.T).any()


@pytest.mark.parametrize(("seed", "k"), [(0, 1), (1, 1), (2, 2), (3, 2)])
def test_a_person_who_moves_freely_stays_what_she_is_across(seed, k):
    """To the last digit but rounding, though a discrete column that a move carries along is between its values."""
    generator = torch.Generator().manual_seed(seed)
    people = BOX.round(4 * torch.randn(40, 6, generator=generator, dtype=torch.float64))
    free = BOX.freed(torch.randn(6, k, generator=generator, dtype=torch.float64), people)
    assert free.touched[4]
    z = free.free_low + (free.free_high - free.free_low) * torch.rand(40, k, generator=generator, dtype=torch.float64)
    moved = people + (z - people @ free.free) @ free.free.T
    torch.testing.assert_close(free.round(moved), moved, atol=1e-14, rtol=0)
    torch.testing.assert_close(free.hull().project(moved), moved, atol=1e-14, rtol=0)
    beyond = moved + 100 * free.free[:, :1].T
    across = free.round(beyond) - people
    across = across - across @ free.free @ free.free.T
    assert across.abs().max() < 1e-12
