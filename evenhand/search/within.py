"""Somebody similar: the people within the budget d_X <= eps of a person, made of what a search has found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.search.thorough import Attack


@dataclass(frozen=True)
class Similar:
    """For each person x' with d_X(x, x') <= eps, all of them possible people; the person itself where there is none."""

    points: Tensor  # (n, m, d)
    h: Tensor  # (n, m, K) their outputs
    d_y: Tensor  # (n, m)
    d_x: Tensor  # (n, m)

    def joined(self, d_y: Tensor, d_x: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Their distances beside those of other candidates: small moves of everybody are a way to spend the budget."""
        return torch.cat([d_y, self.d_y], 1).numpy(), torch.cat([d_x, self.d_x], 1).numpy()


def within(attack: Attack, x: Tensor, found: Tensor, eps: float) -> Similar:
    """Of points found for each person (n, m, d): those within the budget, and the others drawn back to where they are,
    in their own direction and in the opposite one, since a decision may turn either way. Versions stay what they are.
    """
    points = torch.cat([x[:, None], found if attack.versions is not None else _drawn_back(attack, x, found, eps)], 1)
    h = attack.h(points)
    d_y = attack.d_y_of(h[:, 0], h)
    d_x = attack.d_x(points - x[:, None])
    allowed = d_x <= eps
    itself = torch.zeros_like(d_y)
    keep = allowed[..., None]
    return Similar(
        torch.where(keep, points, points[:, :1]),
        torch.where(keep, h, h[:, :1]),
        torch.where(allowed, d_y, itself),
        torch.where(allowed, d_x, itself),
    )


def _drawn_back(attack: Attack, x: Tensor, found: Tensor, eps: float) -> Tensor:
    geometry = attack.geometry
    person = x[:, None].expand_as(found)
    base = person.clone()
    base[..., geometry.pinned] = found[..., geometry.pinned]  # what is pinned is flipped or not, never half
    base = torch.where((attack.d_x(base - person) <= eps)[..., None], base, person)
    price = attack.d_x(found - base)
    share = torch.where(price > eps, (0.999999 * eps / price).sqrt(), torch.ones_like(price))[..., None]
    step = share * (found - base)
    drawn = geometry.box.round(torch.cat([base + step, base - step], 1))
    return torch.cat([found, drawn, base], 1)
