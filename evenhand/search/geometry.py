"""Who is near whom: d_X and the set of possible people in float64, the moves that cost nothing cut into cells."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from evenhand.domain import Box, FreeBox
from evenhand.fair_metrics.metric import FairMetric, orthonormal_basis

PINNED_AT_MOST = 6  # 2^6 combinations of binary columns are enumerated, not more


@dataclass(frozen=True)
class Cells:
    """Parts of Dom, one a row: pinned columns at ``pins``, free coordinates zeta within ``half`` of ``centre``."""

    person: Tensor  # (N,) which row of x
    pins: Tensor  # (N, number of pinned columns)
    centre: Tensor  # (N, k)
    half: Tensor  # (N, k)

    def __len__(self) -> int:
        return self.person.shape[0]

    def __getitem__(self, rows: Tensor) -> Cells:
        return Cells(self.person[rows], self.pins[rows], self.centre[rows], self.half[rows])

    @staticmethod
    def join(first: Cells, second: Cells) -> Cells:
        pairs = zip(
            (first.person, first.pins, first.centre, first.half),
            (second.person, second.pins, second.centre, second.half),
            strict=True,
        )
        return Cells(*(torch.cat(pair) for pair in pairs))

    def halve(self, direction: Tensor) -> Cells:
        """Each cell as two, cut in the middle of the given direction: 2N cells, the lower halves first."""
        half = self.half.clone()
        step = torch.zeros_like(half)
        if half.shape[1]:
            index = direction[:, None]
            half.scatter_(1, index, self.half.gather(1, index) / 2)
            step.scatter_(1, index, self.half.gather(1, index) / 2)
        lower = Cells(self.person, self.pins, self.centre - step, half)
        return Cells.join(lower, Cells(self.person, self.pins, self.centre + step, half))


class Geometry:
    """Who is near whom: d_X and Dom in float64.

    Binary columns which are sensitive (a move along them is free, or nearly) are *pinned*: every combination of their
    values is a part of Dom of its own. ``basis`` spans the remaining moves which cost nothing, on the ``free`` columns.
    """

    def __init__(self, fair_metric: FairMetric, box: Box) -> None:
        if fair_metric.d != box.d:
            raise ValueError(
                f"fair_metric was built for {fair_metric.d} features but bounds have {box.d}; "
                "both must speak of the encoded columns that the model sees"
            )
        self.box = box
        self.sigma, directions = exact_sigma(fair_metric)
        self.directions = directions if fair_metric.factor is None else None  # Sigma = I - Q Q^T: products cost d k
        self.factor = None if fair_metric.factor is None else fair_metric.factor.detach().to("cpu", torch.float64)
        self.nothing_free = not directions.shape[1]
        self.magnitude = box.low.abs().maximum(box.high.abs())
        weight_along = directions.square().sum(1)
        pinned = sorted(box.binary, key=lambda j: -float(weight_along[j]))
        touched = box.touched if isinstance(box, FreeBox) else torch.zeros(box.d, dtype=torch.bool)
        most = min(PINNED_AT_MOST, box.d - 1)  # at least one column is left to move in
        self.pinned = sorted(j for j in pinned[:most] if weight_along[j] > 0.25 and not touched[j])
        self.free = [j for j in range(box.d) if j not in set(self.pinned)]
        self.free_box = box.restrict(self.free)
        self.sigma_free = self.sigma[self.free]  # (d_F, d)
        self.basis = null_basis(self.sigma_free[:, self.free])
        self.zeta_low = -self.free_box.support(-self.basis.T)
        self.zeta_high = self.free_box.support(self.basis.T)
        choices = [(float(box.low[j]), float(box.high[j])) for j in self.pinned]
        combinations = torch.tensor(list(itertools.product(*choices)), dtype=torch.float64)
        self.pin_values = combinations.reshape(2 ** len(self.pinned), len(self.pinned))

    @property
    def d(self) -> int:
        return self.box.d

    @property
    def k(self) -> int:
        """How many moves cost nothing, apart from pinned columns."""
        return self.basis.shape[1]

    def pull(self, delta: Tensor) -> Tensor:
        """Sigma delta of each move, half the gradient of its price: (..., d) -> (..., d)."""
        if self.directions is None:
            return delta @ self.sigma
        return delta - (delta @ self.directions) @ self.directions.T

    def d_x(self, delta: Tensor) -> Tensor:
        if self.factor is not None:  # Sigma = F^T F; the square of a product forgets less than the product of squares
            return (delta @ self.factor.T).square().sum(-1)
        return self.pull(delta).square().sum(-1)

    def price(self, delta: Tensor) -> Tensor:
        """d_X of moves (..., d), 0 where it is nothing but rounding: a move whose price cannot be told from that of a
        move along the free directions, once both people are written down in float64."""
        price = self.d_x(delta)
        if self.nothing_free:  # a move of the size of rounding costs what it costs
            return price
        unsure = price <= self._rounding(self.magnitude)
        if unsure.any():
            moved = torch.where(delta[unsure] != 0, self.magnitude, torch.zeros_like(self.magnitude))
            price[unsure] = torch.where(price[unsure] <= self._rounding(moved), 0.0, price[unsure])
        return price

    def _rounding(self, size: Tensor) -> Tensor:
        """Largest d_X that rounding alone can give to columns of this size: (..., d) -> (...)."""
        if self.factor is not None:
            spread = size @ self.factor.abs().T
        else:
            assert self.directions is not None
            spread = size + (size @ self.directions.abs()) @ self.directions.abs().T
        return (8 * torch.finfo(torch.float64).eps * spread).square().sum(-1)

    def grid(self, n: int, cells: list[int]) -> Cells:
        """For each of n people all combinations of pinned values with a grid of cells over the free coordinates."""
        half = (self.zeta_high - self.zeta_low) / 2 / torch.tensor(cells, dtype=torch.float64)
        axes = [
            self.zeta_low[j] + (2 * torch.arange(m, dtype=torch.float64) + 1) * half[j] for j, m in enumerate(cells)
        ]
        if axes:
            centres = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(-1, self.k)
        else:
            centres = torch.zeros(1, 0, dtype=torch.float64)
        combos, size = self.pin_values.shape[0], centres.shape[0]
        pins = self.pin_values.repeat_interleave(size, 0).repeat(n, 1)
        person = torch.arange(n).repeat_interleave(combos * size)
        return Cells(person, pins, centres.repeat(combos * n, 1), half.expand(len(person), self.k).clone())

    def reference(self, x: Tensor, cells: Cells, rounds: int = 30) -> tuple[Tensor, Tensor]:
        """A point of Dom in (or near) each cell that is close to the person (N, d), and the normal to Dom's faces there
        that keeps it from being closer (N, d_F). Any point would be sound."""
        start = x[cells.person][:, self.free]
        tau = cells.centre - start @ self.basis
        inside = self.free_box.project(start + tau @ self.basis.T)
        near = 1e-12 * (self.zeta_high - self.zeta_low)
        for _ in range(rounds if self.k else 0):  # dual ascent for: nearest point with basis^T x' = centre
            gap = cells.centre - inside @ self.basis
            rows = (gap.abs() > near).any(1).nonzero()[:, 0]
            if not len(rows):
                break
            tau[rows] = tau[rows] + 1.5 * gap[rows]
            inside[rows] = self.free_box.project(start[rows] + tau[rows] @ self.basis.T)
        point = torch.empty(len(cells), self.d, dtype=torch.float64)
        point[:, self.free] = inside
        point[:, self.pinned] = cells.pins
        return point, start + tau @ self.basis.T - inside


def exact_sigma(fair_metric: FairMetric) -> tuple[Tensor, Tensor]:
    """Sigma and its directions rebuilt in float64, so that Sigma is positive semi-definite to rounding."""
    if fair_metric.factor is not None:
        factor = fair_metric.factor.detach().to(device="cpu", dtype=torch.float64)
        sigma = factor.T @ factor
        return sigma, null_basis(sigma)
    directions = fair_metric.directions.detach().to(device="cpu", dtype=torch.float64)
    q = torch.linalg.qr(directions).Q if directions.shape[1] else directions
    return torch.eye(directions.shape[0], dtype=torch.float64) - q @ q.T, q


def null_basis(sigma: Tensor, tolerance: float = 1e-9) -> Tensor:
    """Orthonormal basis of the null space of a positive semi-definite matrix: (d, k).

    The cut is made in units of the matrix's own diagonal, so that it does not depend on the units of the columns.
    """
    root = sigma.diagonal().clamp(min=0).sqrt()
    unit = torch.where(root > 0, root, torch.ones_like(root))
    scaled = sigma / unit[:, None] / unit
    values, vectors = torch.linalg.eigh((scaled + scaled.T) / 2)
    free: Tensor = vectors[:, values <= tolerance * values.abs().max().clamp(min=1e-300)]
    if bool((unit == unit[0]).all()):
        return free
    return orthonormal_basis(free / unit[:, None])
