"""Where a search begins: points of Dom that are likely to be treated differently, found without climbing."""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.domain import FreeBox
from evenhand.search.attack import Attack
from evenhand.search.climbs import along_free, free_move, jumps

PRICES = (0.25, 2.0, 16.0, 128.0)  # of the first steps along the slope, in units of eps: few people use most of it
ENDS_UP_TO = 32  # columns of which each is moved to both of its ends


def starts(attack: Attack, x: Tensor, h_x: Tensor, eps: float) -> list[Tensor]:
    """Families of starts, possible people all of them, each (n, m, d)."""
    families = [_pins(attack, x), _possible(attack, jumps(attack, x, x))]
    if not attack.stepwise and len(attack.continuous):
        slopes = attack.output_slopes(x)
        families += [_paid(attack, x, slopes, eps), _free(attack, x, h_x, slopes)]
    families.append(_possible(attack, _ends(attack, x)))
    if attack.neighbours is not None and len(attack.neighbours):
        families.append(_nearest(attack, x))
    families.append(_noise(attack, x, eps))
    return [family for family in families if family.shape[1]]


def _possible(attack: Attack, points: Tensor) -> Tensor:
    """Points within the ranges of the columns, which of a ``FreeBox`` hold more than itself."""
    return attack.geometry.box.round(points) if isinstance(attack.geometry.box, FreeBox) else points


def _paid(attack: Attack, x: Tensor, slopes: Tensor, eps: float) -> Tensor:
    """Along Sigma^+ slope, both ways, at several prices: d_Y itself is flat at x' = x."""
    points = []
    for slope in slopes.unbind(1):
        move = attack.damped.paid(slope)
        price = attack.geometry.d_x(move)[:, None]
        share = (eps / torch.where(price > 0, price, torch.ones_like(price))).sqrt() * (price > 0)
        points += [x + sign * factor**0.5 * share * move for factor in PRICES for sign in (1, -1)]
    return attack.geometry.box.round(torch.stack(points, 1))


def _free(attack: Attack, x: Tensor, h_x: Tensor, slopes: Tensor) -> Tensor:
    """Along the moves that cost nothing, both ways, and on from there."""
    basis = attack.free_moves
    if not basis.shape[1]:
        return x[:, None][:, :0]
    points = []
    for slope in slopes.unbind(1):
        for sign in (1, -1):
            move, most = free_move(attack, x, sign * slope, basis)
            points += [x + 0.5 * most * move, along_free(attack, h_x, x + most * move, 4)]
    return attack.geometry.box.round(torch.stack(points, 1))


def _pins(attack: Attack, x: Tensor) -> Tensor:
    """Every combination of the binary columns that cost nothing, or little; with a grid along one or two free moves,
    unless these pass through one-hot columns, which cannot follow."""
    geometry = attack.geometry
    along = {1: 9, 2: 4}.get(geometry.k, 1)
    if geometry.k > 2 or not geometry.k or (geometry.box.blocks and not isinstance(geometry.box, FreeBox)):
        points = x[:, None].repeat(1, len(geometry.pin_values), 1)
        points[..., geometry.pinned] = geometry.pin_values
        return points
    cells = geometry.grid(len(x), [along] * geometry.k)
    return geometry.box.round(geometry.reference(x, cells, rounds=12)[0].reshape(len(x), -1, x.shape[1]))


def _ends(attack: Attack, x: Tensor) -> Tensor:
    """One column at a time to its ends."""
    columns = attack.continuous.tolist()
    if len(columns) > ENDS_UP_TO:
        return x[:, None][:, :0]
    points = x[:, None].repeat(1, 2 * len(columns), 1)
    for i, j in enumerate(columns):
        points[:, 2 * i, j], points[:, 2 * i + 1, j] = attack.geometry.box.low[j], attack.geometry.box.high[j]
    return points


def _noise(attack: Attack, x: Tensor, eps: float) -> Tensor:
    """The same random moves for every person, some of about the price eps, some across the ranges."""
    generator = torch.Generator().manual_seed(attack.seed)
    count = round(4 * attack.effort)
    moves = torch.randn(count, x.shape[1], generator=generator, dtype=torch.float64) * attack.span
    moves[:, attack.fixed] = 0.0
    price = attack.geometry.d_x(moves)[:, None]
    near = moves * (8 * eps / torch.where(price > 0, price, torch.ones_like(price))).sqrt()
    far = moves * 0.5 / x.shape[1] ** 0.5
    return attack.geometry.box.round(x[:, None] + torch.cat([near, far]))


def _nearest(attack: Attack, x: Tensor, count: int = 4) -> Tensor:
    """The places of the most similar of the other people."""
    others = attack.neighbours
    assert others is not None
    centre = others.mean(0)
    pulled = attack.geometry.pull(others - centre)
    squares = (pulled * (others - centre)).sum(1)
    distance = squares - 2 * (x - centre) @ pulled.T
    near = distance.topk(min(count, len(others)), dim=1, largest=False).indices
    return attack.geometry.box.round(others[near])
