"""Long ways through Dom: steps of a set length uphill, from places far away, so that no near summit holds them up.

``climbs`` finds the summit of the hill where it starts. A network has many hills, and at a small eps a single person
who can go far decides on R(h).
"""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.search.attack import Attack

PRICES = (0.4, 1.0)  # times lam: a lower price leads farther
STARTS = 20
STEPS = 24
FEWER = {6: 10, 12: 5}  # after so many steps so many ways of each person go on
LONGEST = 0.3  # of a column's range: the first step


def roam(attack: Attack, x: Tensor, h_x: Tensor, lam: float) -> Tensor:
    """The best point met at each price, (n, d) people and (n, K) outputs -> (n, len(PRICES), d)."""
    if not len(attack.continuous):
        return x[:, None][:, :0]
    start = _starts(attack, x)
    return torch.stack([_best_met(attack, x, h_x, start, factor * lam) for factor in PRICES], 1)


def _starts(attack: Attack, x: Tensor) -> Tensor:
    """Some columns elsewhere, half of them at an end of their range; the same draws for everybody: (n, m, d)."""
    generator = torch.Generator().manual_seed(attack.seed)
    box, shape = attack.geometry.box, (STARTS, x.shape[1])
    place = torch.rand(shape, generator=generator, dtype=torch.float64)
    place = torch.where(torch.rand(shape, generator=generator) < 0.5, place.round(), place)
    few = torch.where(torch.arange(STARTS) % 2 == 0, 0.2, 1.0)[:, None]
    moved = torch.rand(shape, generator=generator) < few
    points = torch.where(moved, box.low + (box.high - box.low) * place, x[:, None])
    points[..., attack.fixed] = x[:, None][..., attack.fixed].expand(-1, STARTS, -1)
    pins = attack.geometry.pin_values
    points[..., attack.geometry.pinned] = pins[torch.arange(STARTS) % len(pins)]
    return box.round(points)


def _best_met(attack: Attack, x: Tensor, h_x: Tensor, start: Tensor, lam: float) -> Tensor:
    """Along the ways that promise most: at some steps only the best part of everybody's ways goes on."""
    n, m, d = start.shape
    geometry, tiny = attack.geometry, torch.finfo(torch.float64).tiny
    people, outputs, point = x.repeat_interleave(m, 0), h_x.repeat_interleave(m, 0), start.reshape(n * m, d)
    best, summit = torch.full((n * m,), -torch.inf, dtype=torch.float64), point
    lift = attack.lift(point)
    for step in range(STEPS + 1):
        d_y, slope = attack.value_and_slope(outputs, point)
        pull = geometry.pull(point - people)
        value = d_y - lam * (pull * (point - people)).sum(1)
        better = value > best
        best, summit = torch.where(better, value, best), torch.where(better[:, None], point, summit)
        if step in FEWER and FEWER[step] < m:
            top = best.reshape(n, m).topk(FEWER[step], dim=1).indices
            rows = (top + m * torch.arange(n)[:, None]).flatten()
            people, outputs, point, best, summit, slope, pull, lift = (
                t[rows] for t in (people, outputs, point, best, summit, slope, pull, lift)
            )
            m = FEWER[step]
        uphill = (slope - 2 * lam * pull) * attack.span
        uphill[:, attack.fixed] = 0.0
        uphill = uphill / uphill.abs().amax(1, keepdim=True).clamp(min=tiny)
        length = LONGEST * (1 - step / (STEPS + 1)) ** 1.5
        point, lift = attack.carry(point + length * attack.span * uphill, lift)
    summit = summit.reshape(n, m, d)[torch.arange(n), best.reshape(n, m).argmax(1)]
    return geometry.box.round(summit)
