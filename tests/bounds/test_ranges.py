"""The range: nobody's r_lam is above it at any lam, it falls as lam rises, and some lam is best without looking."""

import pytest

from bounds.nets import other_points, random_points, random_problem
from evenhand.bounds.ranges import CONFIDENT, FEWEST_STEPS, Ranges, affordable_steps

EPS = 0.05


@pytest.mark.parametrize(("sizes", "k"), [((5, 12, 2), 1), ((4, 6, 6, 1), 2), ((6, 10, 3), 0)])
def test_nobody_is_above(sizes, k):
    problem = random_problem(sizes, k=k, seed=3, discrete=False)
    ranges = Ranges(problem, EPS, 8)
    x = random_points(problem, 30, 1)
    points = other_points(problem, x, 400, 2)
    lam, most = ranges.for_all
    found = [(lam, most), *ranges.prices(0.3 * lam, lambda price: price[0] * EPS + price[1])]
    assert len(found) > len(CONFIDENT)
    for at, largest in found:
        assert problem.gain(x[:, None], points, at).max() <= largest + 1e-12
    highest = max(at for at, _ in found)
    assert ranges.largest(1.5 * highest) <= min(largest for _, largest in found)  # r_lam falls as lam rises
    assert ranges.joint <= min(ranges.ceiling, (lam * EPS + most) * (1 + 1e-9))


def test_large_duals_are_given_fewer_steps():
    steps = [affordable_steps(400, size) for size in (100, 300, 600, 1100, 2000, 100_000)]
    assert steps[:3] == [400, 400, 200]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] == FEWEST_STEPS


def test_without_time_the_range_of_the_outputs_is_left():
    problem = random_problem((5, 12, 2), k=1, seed=3, discrete=False)
    ranges, whole = Ranges(problem, EPS, 8, lambda: True), Ranges(problem, EPS, 8)
    assert ranges.for_all is None
    assert ranges.joint == ranges.ceiling == whole.ceiling
    for lam in (0.1, 1.0, 10.0):
        assert whole.largest(lam) <= ranges.largest(lam)
