"""Finite sets of counterfactuals: the worst case by enumeration, exact, for any model."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evenhand.certify.certificate import Certificate
from evenhand.dual.confidence import UpperBound
from evenhand.dual.moves import choose_move
from evenhand.dual.order import shuffled
from evenhand.dual.pool import Pool
from evenhand.fair_metrics.metric import FairMetric
from evenhand.judged import Judged
from evenhand.output_distances import OutputDistance, absolute_probability, total_variation
from evenhand.search.geometry import exact_sigma
from evenhand.variations import Variations


def certify_variations(
    model: Any,
    held_out: Variations,
    fair_metric: FairMetric | None,
    eps: float,
    tuning: Variations | None,
    confidence: float,
    output_distance: OutputDistance,
    interval: UpperBound,
    d_y_max: float | None,
) -> Certificate:
    """R(h) when x' must be one of a person's versions. On the sample it is exact: r_low = r_high.

    Without fair_metric all versions of a person are at distance 0. The confidence bound needs to know how large d_Y can
    be: 1 for probabilities, otherwise ``d_y_max``.
    """
    began = time.perf_counter()
    if output_distance in (absolute_probability, total_variation):
        d_y_max = 1.0
    if d_y_max is None:
        raise ValueError(
            "the confidence bound needs the largest possible output distance: use total_variation or "
            "absolute_probability, or give d_y_max, a bound known before the data were seen"
        )
    rows = np.arange(len(held_out), dtype=np.intp)
    if not isinstance(tuning, Variations):
        if len(held_out) < 2:
            raise ValueError(f"a certificate needs people to tune on beside those held out; got {len(held_out)} in all")
        order, count = shuffled(len(held_out)), max(1, len(held_out) // 5)
        rows = np.sort(order[count:])
        tuning, held_out = _people(held_out, order[:count]), _people(held_out, rows)
    judged = Judged.of(model)
    tune_y, tune_x, tune_least = _distances(judged, tuning, fair_metric, output_distance)
    d_y, d_x, d_x_least = _distances(judged, held_out, fair_metric, output_distance)
    if float(d_y.max(initial=0)) > d_y_max * (1 + 1e-12):
        raise ValueError(f"a held-out output distance is {d_y.max():g}, above d_y_max = {d_y_max:g}")
    tuned, pool, widest = Pool(), Pool(), Pool()
    tuned.add(tune_y, tune_least)
    pool.add(d_y, d_x)
    widest.add(d_y, d_x_least)
    lam, alpha = tuned.minimise(eps).lam, (1 - confidence) / 2
    move = choose_move(tune_y, tune_x, eps)
    moved_y, moved_x = (each[shuffled(len(d_y))] for each in move(d_y, d_x))
    gains = np.minimum(widest.gains(lam), d_y_max)[shuffled(len(d_y))]
    upper = min(lam * eps + interval(gains, d_y_max, alpha), d_y_max)
    return Certificate(
        r_low=pool.minimise(eps).value,
        r_high=widest.minimise(eps).value,
        lower=min(move.lower(moved_y, moved_x, eps, alpha, interval), upper),
        upper=upper,
        lam=lam,
        r_lam_max=d_y_max,
        delta_everywhere=d_y_max,
        eps=eps,
        n=len(d_y),
        confidence=confidence,
        distance=f"{getattr(output_distance, '__name__', 'd_Y').replace('_', ' ')}, finite sets",
        each_low=np.where(d_x <= eps, d_y, 0.0).max(1),
        each_high=np.where(d_x_least <= eps, d_y, 0.0).max(1),
        rows=rows,
        tuning_rows=len(tune_y),
        seconds=time.perf_counter() - began,
    )


def _people(variations: Variations, rows: NDArray[np.intp]) -> Variations:
    return Variations(variations.values[rows], np.arange(len(rows)), variations.like)


def _distances(
    judged: Judged, variations: Variations, fair_metric: FairMetric | None, output_distance: OutputDistance
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """d_Y, d_X and the least that d_X can be, given that the metric's numbers and the versions' are rounded: (g, m)."""
    g, m = variations.values.shape[:2]
    if g == 0:
        raise ValueError("there is nobody in the variations; the certificate needs people who have versions")
    x = judged.encode(variations.flat())
    judged.check_function(x[:256])
    with torch.no_grad():
        h = judged.outputs(x)
        d_y = output_distance(h.reshape(g, m, -1)[:, :1].expand(g, m, h.shape[1]), h.reshape(g, m, -1))
    if fair_metric is None:
        return d_y.numpy(), np.zeros((g, m)), np.zeros((g, m))
    fair_metric.check_width(x)
    sigma, directions = exact_sigma(fair_metric)
    versions = x.reshape(g, m, -1)
    delta = versions - versions[:, :1]
    if fair_metric.factor is None:
        length = (delta - (delta @ directions) @ directions.T).norm(dim=-1)
    else:
        length = (delta @ fair_metric.factor.double().T).norm(dim=-1)
    stretch = float(torch.linalg.matrix_norm(sigma, 2)) ** 0.5
    unit = max(_rounding(fair_metric.directions.dtype), _rounding(variations.values.dtype))
    slack = 4 * unit * stretch * (versions.norm(dim=-1) + versions[:, :1].norm(dim=-1))
    free = length <= slack  # along a sensitive direction, to the precision that the direction is written in
    d_x = torch.where(free, torch.zeros_like(length), length.square())
    return d_y.numpy(), d_x.numpy(), (length - slack).clamp(min=0).square().numpy()


def _rounding(dtype: torch.dtype | np.dtype[Any]) -> float:
    """Unit roundoff of numbers as they were given; float64 for anything that is not a float of fewer digits."""
    single = dtype == torch.float32 or dtype == np.float32
    return 2.0**-24 if single else 2.0**-11 if dtype in (torch.float16, np.float16) else 2.0**-53
