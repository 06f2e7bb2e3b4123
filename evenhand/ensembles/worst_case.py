"""sup over x' in Dom of d_Y(h(x), h(x')) - lam * d_X(x, x') for a tree ensemble, by best-first branch and bound.

Dom is cut into boxes. In a box each tree lies between two values found by one walk (a split whose weight is somewhere
in [g_low, g_high] gives at most the larger of its two ends), and d_X = q(x' - x) is at least its tangent at any point:
q(e) + 2 (Sigma e) . (x' - x - e), least over the box in closed form, one-hot blocks included. So the bound is sound
wherever the search stops, and exact once no split of a box is open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.ensembles.trees import Floats, Ints, TreeEnsemble


@dataclass(frozen=True, eq=False)
class People:
    """Dom and d_X as arrays: ranges, which columns hold only their two ends, one-hot blocks, Sigma."""

    low: Floats
    high: Floats
    discrete: NDArray[np.bool_]  # binary columns and those of blocks
    block: Ints  # (d,) the block of each column, -1 for none
    sigma: Floats  # (d, d)

    @property
    def blocks(self) -> int:
        return int(self.block.max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class Found:
    """lower <= sup <= upper for each person; ``witness`` reaches lower."""

    lower: Floats
    upper: Floats
    witness: Floats
    boxes: NDArray[np.int64]


def worst_case(
    ensemble: TreeEnsemble,
    people: People,
    x: Floats,
    *,
    lam: float = 0.0,
    radius: float = np.inf,
    scale: float = 1.0,
    weights: Floats | None = None,
    boxes: int = 2000,
    tolerance: float = 0.01,
    floor: float = 0.0,
) -> Found:
    """sup of scale * |h(x') - h(x)|^2 - lam * d_X over d_X <= radius, each person for themselves.

    weights (K,): instead the sup of weights . (h(x') - h(x)), for ranges of scores. A person is done when the bracket
    is within ``tolerance`` (relative) or ``floor`` (absolute), or after so many boxes.
    """
    from evenhand.ensembles.branching import search

    rows = np.ascontiguousarray(x, dtype=np.float64)
    n, d = rows.shape
    lower, upper, used = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
    witness = rows.copy()
    squared = weights is None
    w = np.ones(ensemble.outputs) if weights is None else np.asarray(weights, dtype=np.float64)
    largest = max(float(np.linalg.eigvalsh(people.sigma)[-1]), 1e-300) if d else 1.0
    sigma, at_x = np.ascontiguousarray(people.sigma), ensemble(rows)
    free = ~people.discrete
    curvature = 0.0  # q(delta) >= curvature * |delta|^2 for moves of the continuous columns alone
    if free.any() and bool((ensemble.width > 0).any()):
        curvature = max(float(np.linalg.eigvalsh(people.sigma[np.ix_(free, free)])[0]) - 1e-9 * largest, 0.0)
    search(  # type: ignore[no-untyped-call]
        rows,
        at_x,
        ensemble.arrays(),
        ensemble.base,
        (people.low, people.high, people.discrete, people.block, people.blocks, sigma, 1.0 / largest),
        lam,
        radius,
        scale,
        squared,
        w,
        boxes,
        tolerance,
        floor,
        curvature,
        _apart(people.sigma),
        lower,
        upper,
        witness,
        used,
    )
    return Found(lower, upper, witness, used)


def _apart(sigma: Floats) -> tuple[float, Floats, Floats]:
    """Sigma = level * I - B B^T + P with P positive semi-definite: level, B^T (k, d), P. B spans what is free."""
    values, vectors = np.linalg.eigh((sigma + sigma.T) / 2)
    free = values <= 1e-9 * max(values[-1], 1e-300)
    if free.all():
        return 0.0, np.zeros((0, len(values))), np.zeros_like(sigma)
    level = float(values[~free][0])
    rest = np.where(free, 0.0, np.maximum(values - level, 0.0))
    along = np.sqrt(level) * vectors[:, free].T
    return level * (1 - 1e-9), np.ascontiguousarray(along), np.ascontiguousarray((vectors * rest) @ vectors.T)
