"""Column by column: the search for models that are constant almost everywhere, such as trees."""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.search.attack import Attack
from evenhand.search.climbs import jump, worth

NUMBERS_AT_ONCE = 2**22
STEPS = 8  # to either side: a half of the range, a quarter, and so on
RANKS = (1, 2, 3, 4, 6, 9, 14, 21)  # or, where thresholds are known, so many of them to either side


def sweep(attack: Attack, x: Tensor, h_x: Tensor, start: Tensor, lam: float, rounds: int, beam: int = 4) -> Tensor:
    """Other values of one column at a time, (N, d) -> (N, d): never below the start.

    The best changes of ``beam`` columns are followed even where they do not pay by themselves: in a tree one change
    may open the way to another.
    """
    if not len(attack.continuous):
        for _ in range(rounds):
            start = jump(attack, x, h_x, start, lam)
        return start
    each = beam * len(attack.continuous) * (2 + 2 * STEPS) * x.shape[1]
    parts = zip(*(torch.split(t, max(1, NUMBERS_AT_ONCE // each)) for t in (x, h_x, start)))
    return torch.cat([_sweep(attack, some, h, from_, lam, rounds, beam) for some, h, from_ in parts])


def _sweep(attack: Attack, x: Tensor, h_x: Tensor, start: Tensor, lam: float, rounds: int, beam: int) -> Tensor:
    rows = torch.arange(len(x))
    best, points = start, start[:, None]
    for step in range(rounds):
        if attack.discrete:
            points = torch.cat([points, jump(attack, x, h_x, best, lam)[:, None]], 1)
        points = _changed(attack, x, h_x, points, lam, 0.7**step, beam)
        points = torch.cat([best[:, None], points], 1)
        gain = worth(attack.d_y(h_x, points), attack.d_x(points - x[:, None]), lam)
        best = points[rows, gain.argmax(1)]
        order = gain[:, 1:].topk(min(beam, gain.shape[1] - 1), dim=1).indices + 1
        points = points.gather(1, order[..., None].expand(-1, -1, x.shape[1]))
    return best


def _changed(attack: Attack, x: Tensor, h_x: Tensor, points: Tensor, lam: float, size: float, beam: int) -> Tensor:
    """The best single changes of points (n, b, d), each of another column or point, and the best of them together."""
    columns = attack.continuous
    n, b, d = points.shape
    flat = points.reshape(n * b, d)
    values = _values(attack, x.repeat_interleave(b, 0)[:, columns], flat[:, columns], size)  # (n b, c, q)
    c, q = values.shape[1:]
    at, column, choice = _new(values, flat[:, columns]).nonzero(as_tuple=True)
    tried = flat[at]
    tried[torch.arange(len(at)), columns[column]] = values[at, column, choice]
    person = at // b
    gain = flat.new_full((n * b, c, q), -torch.inf)
    gain[at, column, choice] = worth(attack.d_y_of(h_x[person], attack.h(tried)), attack.d_x(tried - x[person]), lam)
    gain, which = gain.reshape(n, b * c, q).max(2)
    top = gain.topk(min(beam, b * c), dim=1).indices  # of (point, column)
    chosen = values.reshape(n, b * c, q).gather(2, which[..., None])[..., 0].gather(1, top)
    alone = points.gather(1, (top // c)[..., None].expand(-1, -1, d)).scatter(
        2, columns[top % c][..., None], chosen[..., None]
    )
    together = [alone[:, 0]]
    for rank in range(1, top.shape[1]):
        together.append(together[-1].scatter(1, columns[top[:, rank] % c][:, None], chosen[:, rank, None]))
    return attack.geometry.box.round(torch.cat([alone, torch.stack(together[1:] or together, 1)], 1))


def _new(values: Tensor, here: Tensor) -> Tensor:
    """Which values change anything and come for the first time: (N, c, q), (N, c) -> (N, c, q) bool. Most columns of a
    one-hot block have one threshold, so that few of their values differ; and no change must not fill the beam."""
    fresh = values != here[..., None]
    for i in range(1, values.shape[2]):
        fresh[..., i] &= (values[..., :i] != values[..., i : i + 1]).all(-1)
    return fresh


def _values(attack: Attack, x: Tensor, point: Tensor, size: float) -> Tensor:
    """Values to try for each column, (N, c) -> (N, c, q): back, half way back, and steps to either side."""
    box, columns = attack.geometry.box, attack.continuous
    low, high, span = (side[columns, None] for side in (box.low, box.high, attack.span))
    back = torch.stack([x, (x + point) / 2], 2)
    if attack.thresholds is None:
        reach = size * torch.tensor([0.5**i for i in range(1, STEPS + 1)], dtype=torch.float64)
        aside = point[..., None] + span * torch.cat([reach, -reach])
    else:
        aside = torch.stack([_across(attack.thresholds[j], point[:, i]) for i, j in enumerate(columns.tolist())], 1)
    return torch.cat([back, aside], 2).clamp(low, high)


def _across(marks: Tensor, here: Tensor) -> Tensor:
    """Just behind the next thresholds to either side: (N,) -> (N, q)."""
    if not len(marks):
        return here[:, None].expand(-1, 2 * len(RANKS))
    ranks = torch.tensor(RANKS)
    place = torch.searchsorted(marks, here.contiguous())[:, None]  # marks[place - 1] < here <= marks[place]
    up, down = place + ranks - 1, place - ranks
    rises = _after(marks[up.clamp(max=len(marks) - 1)])
    falls = _until(marks[down.clamp(min=0)])
    return torch.cat([rises, falls], 1)


def _after(mark: Tensor) -> Tensor:
    """The next number behind a threshold; in float32, in which many trees compare."""
    near = mark.float()
    return torch.where(near.double() > mark, near, torch.nextafter(near, torch.full_like(near, torch.inf))).double()


def _until(mark: Tensor) -> Tensor:
    """The last number that is not behind a threshold; in float32."""
    near = mark.float()
    return torch.where(near.double() <= mark, near, torch.nextafter(near, torch.full_like(near, -torch.inf))).double()
