"""A walk gives the head's output at x + A u + v and turns slopes as autograd does, in float64 to rounding."""

import pytest
import torch
from torch import nn

from evenhand.search.head import NORMS, Head
from evenhand.search.walks import LinearWalk, NormedWalk, beside, walk_along

N, D, H, K = 11, 5, 6, 2
HEADS = {"no norm": None} | {norm.__name__: norm for norm in NORMS}


def setting(name, reuse):
    """The walk, the head as a function of u and v, and moves."""
    torch.manual_seed(0)
    norm = None if HEADS[name] is None else HEADS[name](D).double().eval()
    for parameter in () if norm is None else norm.parameters():
        nn.init.normal_(parameter)
    linear, x = nn.Linear(D, H).double(), torch.randn(N, D, dtype=torch.float64)
    directions = torch.randn(D, K, dtype=torch.float64)
    head = Head(linear, norm, beside=reuse).now()
    walk = walk_along(head, x, head.walked(x).detach(), directions, reuse)

    def there(u, v):
        moved = x + u @ directions.T + v
        return linear(moved if norm is None else norm(moved)).detach(), head.walked(moved).detach()

    def slopes(u, v, slope):
        u, v = u.clone().requires_grad_(True), v.clone().requires_grad_(True)
        with torch.enable_grad():
            moved = x + u @ directions.T + v
            z = linear(moved if norm is None else norm(moved))
            return torch.autograd.grad((z * slope).sum(), (u, v))

    u, v, slope = (torch.randn(N, width, dtype=torch.float64) for width in (K, D, H))
    return walk, there, slopes, u, v, slope


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)


both = pytest.mark.parametrize("reuse", [False, True])
every = pytest.mark.parametrize("name", HEADS)


@both
@every
def test_the_expected_walk_is_taken(name, reuse):
    normed = name in ("LayerNorm", "RMSNorm")
    assert type(setting(name, reuse)[0]) is (NormedWalk if normed else LinearWalk)


@both
@every
def test_in_the_subspace(name, reuse):
    walk, there, slopes, u, v, slope = setting(name, reuse)
    still = torch.zeros_like(v)
    with torch.no_grad():
        for move in (u, 3 * u):  # twice, so that a buffer or a cached point of the first is seen in the second
            close(walk.settle(move), there(move, still)[0])
            expected = slopes(move, still, slope)
            close(walk.slope_u(slope), expected[0])
            close(walk.slope_v(slope), expected[1])


@both
@every
def test_beyond_the_subspace(name, reuse):
    walk, there, slopes, u, v, slope = setting(name, reuse)
    with torch.no_grad():
        walk.settle(u)
        for move in (v, -2 * v):
            close(walk.move(move), there(u, move)[0])
            expected = slopes(u, move, slope)
            close(walk.slope_u(slope), expected[0])
            close(walk.slope_v(slope), expected[1])
        walk.settle(2 * u)  # and a second start from there
        close(walk.move(v), there(2 * u, v)[0])


@both
@every
@pytest.mark.parametrize("rows", [[], [3], list(range(9))], ids=["none", "one", "most"])
def test_only_the_rows_that_move(name, reuse, rows):
    walk, there, _, u, v, _ = setting(name, reuse)
    still = torch.ones(N, dtype=torch.bool)
    still[rows] = False
    v[still] = 0
    with torch.no_grad():
        walk.settle(u)
        close(walk.move(v, torch.tensor(rows, dtype=torch.long)), there(u, v)[0])


@both
@every
@pytest.mark.parametrize("from_v", [False, True], ids=["from the subspace", "from a move"])
def test_on_a_line(name, reuse, from_v):
    walk, there, slopes, u, v, slope = setting(name, reuse)
    start = v.flip(0) if from_v else torch.zeros_like(v)
    with torch.no_grad():
        walk.settle(u)
        if from_v:
            walk.move(start)
        walk.start_line()
        walk.move(v)
        for t in (torch.linspace(0, 1, N, dtype=torch.float64), torch.full((N,), 0.3, dtype=torch.float64)):
            point = torch.lerp(start, v, t[:, None])
            close(walk.on_line(t), there(u, point)[0])
            close(walk.slope_v(slope), slopes(u, point, slope)[1])
        close(walk.walked_at(u, point, torch.ones(N, dtype=torch.bool)), there(u, point)[1])


@both
@every
def test_what_is_walked_of_rows_that_stand_elsewhere(name, reuse):
    walk, there, _, u, v, _ = setting(name, reuse)
    v[::2] = 0
    current = torch.arange(N) < 4
    with torch.no_grad():
        walk.settle(torch.where(current[:, None], u, 0.0))
        walk.move(torch.where(current[:, None], v, 1.0))
        close(walk.walked_at(u, v, current), there(u, v)[1])


def test_beside_puts_individuals_next_to_each_other():
    matrix = beside(torch.zeros(4, 3), 2)
    assert matrix.shape == (4, 2)
    assert matrix.stride() == (1, 4)


@pytest.mark.parametrize("name", [name for name in HEADS if name in ("LayerNorm", "RMSNorm")])
@pytest.mark.parametrize("k", [1, 2])
def test_the_smallest_norm_that_u_can_lead_to(name, k):
    """By least squares over u; the walk may be trusted where that is not far below the norm at x."""
    torch.manual_seed(0)
    norm, x = HEADS[name](D).double(), torch.randn(N, D, dtype=torch.float64)
    directions = torch.linalg.qr(torch.randn(D, k, dtype=torch.float64)).Q
    head = Head(nn.Linear(D, H).double(), norm).now()
    for size in (1.0, 1e3, 1e9):
        far = x + size * directions[:, 0]
        centred, across = head.norm.centred(far), head.norm.centred(directions.T)
        rest = centred - (centred @ torch.linalg.pinv(across)) @ across
        least = (rest.square().mean(1) / centred.square().mean(1)).min()
        walk = walk_along(head, far, head.walked(far).detach(), directions)
        assert walk.keeps_digits() == bool(least > 2e-12)
