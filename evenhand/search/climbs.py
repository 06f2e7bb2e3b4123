"""Ways uphill from a start, row by row: through Dom, along what costs nothing, and by jumps of discrete columns.

What happens to a row depends on that row alone. No way ends below its start.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.search.attack import Attack

TINY = torch.finfo(torch.float64).tiny  # where the slope is 0 the step is, too
MOST_JUMPS = 64  # jumps tried from one point; of more the most promising


def worth(d_y: Tensor, d_x: Tensor, lam: Tensor | float) -> Tensor:
    """d_Y - lam * d_X, also for lam = inf, where only free moves are worth something."""
    price = torch.as_tensor(lam, dtype=d_x.dtype) * d_x
    return d_y - torch.where(d_x > 0, price, torch.zeros_like(d_x))


def climb(attack: Attack, x: Tensor, h_x: Tensor, start: Tensor, lam: float, steps: int, hull: bool = False) -> Tensor:
    """Damped steps (see ``Damped``) that are taken if they lead up: (N, d) people and starts -> (N, d).

    hull: discrete columns move too, through the convex hull of Dom; the result is then no possible person.
    """
    damped = attack.damped_hull if hull else attack.damped
    if not len(damped.columns):
        return start
    best = start.clone()
    rows = torch.arange(len(x))
    point, price = start, torch.full((len(x), 1), lam, dtype=torch.float64)
    d_y, slope = attack.value_and_slope(h_x, point)
    value = worth(d_y, attack.d_x(point - x), lam)
    damping: Tensor | None = None
    lift = attack.lift(point, hull)
    for _ in range(steps):
        uphill = _inside(attack, point, slope - 2 * price * attack.geometry.pull(point - x))
        if damping is None:
            damping = (damped.size(uphill) / (0.25 * len(damped.columns) ** 0.5)).clamp(min=TINY)
            least = (1e-12 * damping).clamp(min=TINY)
        step = _inside(attack, point, damped(uphill, price, damping))
        step = step.clamp(-4 * attack.span, 4 * attack.span)  # across Dom, and not so far that numbers fail
        trial, carried = attack.carry(point + step, lift, hull)
        alive = ((uphill * (trial - point)).sum(1) > 1e-6 * value.abs()) & (trial != point).any(1)
        alive |= value <= 0
        if not alive.any():
            break
        if not alive.all():
            x, h_x, rows, trial = x[alive], h_x[alive], rows[alive], trial[alive]
            point, value, slope = point[alive], value[alive], slope[alive]
            price, damping, least = price[alive], damping[alive], least[alive]
            lift, carried = lift[alive], carried[alive]
        d_y, there, reached = _try(attack, x, h_x, trial, lam, value)
        better = reached > value
        point = torch.where(better[:, None], trial, point)
        lift = torch.where(better[:, None], carried, lift)
        slope = torch.where(better[:, None], there, slope)
        value = torch.where(better, reached, value)
        damping = torch.where(better[:, None], (damping / 4).maximum(least), damping * 5)
        best[rows] = point
    return best


def _try(
    attack: Attack, x: Tensor, h_x: Tensor, trial: Tensor, lam: float, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """d_Y, its slope and the objective at trial points; a black box is differentiated only where it has risen."""
    d_x = attack.d_x(trial - x)
    if attack.differentiable:
        d_y, slope = attack.value_and_slope(h_x, trial)
        return d_y, slope, worth(d_y, d_x, lam)
    d_y, slope = attack.d_y(h_x, trial), torch.zeros_like(trial)
    reached = worth(d_y, d_x, lam)
    up = reached > value
    if up.any():
        slope[up] = attack.value_and_slope(h_x[up], trial[up])[1]
    return d_y, slope, reached


def _inside(attack: Attack, point: Tensor, move: Tensor) -> Tensor:
    """The move without what would leave the ranges at once."""
    return torch.where(_leaves(attack, point, move), torch.zeros_like(move), move)


def along_free(attack: Attack, h_x: Tensor, start: Tensor, steps: int) -> Tensor:
    """Uphill along moves that cost nothing, within the ranges: (N, d) -> (N, d). The price stays that of the start."""
    basis = attack.free_moves
    if not basis.shape[1]:
        return start
    point = start
    d_y, slope = attack.value_and_slope(h_x, point)
    share = torch.ones(len(start), 1, dtype=torch.float64)
    for _ in range(steps):
        move, most = free_move(attack, point, slope, basis)
        trial = point + share * most * move
        trial = trial.clamp(attack.geometry.box.low, attack.geometry.box.high)
        there_y, there = attack.value_and_slope(h_x, trial)
        better = (there_y > d_y)[:, None]
        point = torch.where(better, trial, point)
        slope = torch.where(better, there, slope)
        d_y = torch.where(better[:, 0], there_y, d_y)
        share = torch.where(better, torch.ones_like(share), share / 3)
    return point


def free_move(attack: Attack, point: Tensor, slope: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
    """A free move uphill that leaves columns at the end of their range where they are, (N, d), and how many times it
    fits into the ranges, (N, 1). Of several ways to stay inside the one that promises most."""
    raw = slope @ basis @ basis.T
    first = _leaves(attack, point, raw)
    move = _staying(attack, slope, basis, first)
    then = _leaves(attack, point, move)
    ways = [move, _staying(attack, slope, basis, first | then)]
    pressing = (first | then) * (raw.abs() / attack.span)
    for column in pressing.topk(min(3, pressing.shape[1]), dim=1).indices.unbind(1):  # often one of them is enough
        one = torch.zeros_like(first).scatter(1, column[:, None], True)
        ways.append(_staying(attack, slope, basis, one & (first | then)))
    fits = [_fits(attack, point, way) for way in ways]
    promise = torch.stack([(slope * way).sum(1) * fit[:, 0] for way, fit in zip(ways, fits)], 1)
    best = promise.argmax(1)
    rows = torch.arange(len(point))
    return torch.stack(ways, 1)[rows, best], torch.stack(fits, 1)[rows, best]


def _leaves(attack: Attack, point: Tensor, move: Tensor) -> Tensor:
    """Which columns are at the end of their range and would leave it: (N, d)."""
    box, tiny = attack.geometry.box, 1e-9 * attack.span
    return ((point <= box.low + tiny) & (move < 0)) | ((point >= box.high - tiny) & (move > 0))


def _staying(attack: Attack, slope: Tensor, basis: Tensor, held: Tensor) -> Tensor:
    """The free move uphill, basis times c, among those that do not move the columns held, (N, d)."""
    blocked = (basis / attack.span[:, None]) * held[..., None]  # (N, d, k)
    values, vectors = torch.linalg.eigh(blocked.transpose(1, 2) @ blocked)
    kept = vectors * (values <= 1e-12 * values.amax(1, keepdim=True))[:, None]
    c = (kept @ (kept.transpose(1, 2) @ (slope @ basis)[..., None]))[..., 0]
    return torch.where(held, torch.zeros_like(slope), c @ basis.T)


def _fits(attack: Attack, point: Tensor, move: Tensor) -> Tensor:
    """How many times the move fits into the ranges: (N, 1)."""
    box = attack.geometry.box
    room = torch.where(move > 0, box.high - point, box.low - point)
    times = torch.where(move != 0, room / torch.where(move != 0, move, torch.ones_like(move)), torch.inf)
    most = times.clamp(min=0).amin(1, keepdim=True)
    return torch.where(most.isfinite(), most, torch.zeros_like(most))


def jump(attack: Attack, x: Tensor, h_x: Tensor, point: Tensor, lam: float) -> Tensor:
    """The best change of one binary column or one-hot block, if it leads up: (N, d) -> (N, d).

    Each is tried alone, and with the move of the continuous columns that makes it cheapest.
    """
    points = jumps(attack, x, point)
    if not points.shape[1]:
        return point
    points = torch.cat([point[:, None], points], 1)
    gain = worth(attack.d_y(h_x, points), attack.d_x(points - x[:, None]), lam)
    return points[torch.arange(len(x)), gain.argmax(1)]


def jumps(attack: Attack, x: Tensor, point: Tensor) -> Tensor:
    """Points which differ from the given ones in one binary column or one-hot block: (N, d) -> (N, m, d)."""
    box = attack.geometry.box
    moves = []
    for group in attack.discrete:
        j = group[0]
        ends = [(j, float(box.low[j])), (j, float(box.high[j]))] if j in box.binary else [(j, 1.0) for j in group]
        moves += [(group, column, end) for column, end in ends]
    if len(moves) > MOST_JUMPS:
        price = attack.geometry.sigma.diagonal() * attack.span.square()
        moves = sorted(moves, key=lambda move: float(price[move[1]]))[:MOST_JUMPS]
    points = point[:, None].repeat(1, len(moves), 1)
    for i, (columns, j, value) in enumerate(moves):
        points[:, i, columns] = 0.0
        points[:, i, j] = value
    if not moves or not len(attack.continuous):
        return points
    return torch.cat([points, compensated(attack, x, points)], 1)


def compensated(attack: Attack, x: Tensor, points: Tensor) -> Tensor:
    """The points with their continuous columns where they are cheapest: Sigma_CC delta_C = -Sigma_CD delta_D."""
    n, m, d = points.shape
    flat, base = points.reshape(n * m, d), x.repeat_interleave(m, 0)
    pull = attack.geometry.pull(flat - base)
    one = torch.ones(n * m, 1, dtype=torch.float64)
    step = attack.damped(-2 * pull, one, 1e-9 * one * attack.damped.scale)
    return attack.project(flat + step).reshape(n, m, d)
